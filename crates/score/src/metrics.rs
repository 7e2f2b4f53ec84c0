//! The metrics by name: the same names in requirements, in JSON and in the docs.

use crate::clusters::Cell;
use crate::counts::{Counts, Details, SHARE_UNIT, StreamCounts};
use crate::histogram::Histogram;
use crate::statistics::{f1, mcc, ratio};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The value of a metric. In JSON it is a number, or `null` where it is not defined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A share from 0 to 1, a correlation, or milliseconds.
    Real(f64),
    /// Not defined, as the share of nothing.
    Undefined,
}

impl Value {
    /// Its number.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(count as f64),
            Self::Real(real) => Some(real),
            Self::Undefined => None,
        }
    }
}

impl From<Option<u64>> for Value {
    fn from(count: Option<u64>) -> Self {
        count.map_or(Self::Undefined, Self::Count)
    }
}

impl From<Option<f64>> for Value {
    fn from(real: Option<f64>) -> Self {
        real.map_or(Self::Undefined, Self::Real)
    }
}

/// Values by the name of their metric, in the order of the docs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Vec<(Cow<'static, str>, Value)>);

impl Metrics {
    /// The value of a metric; `None` where it is not counted here.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.push((Cow::Borrowed(name), value.into()));
    }

    fn quantiles(
        &mut self,
        names: [&'static str; 4],
        histogram: &Histogram,
        convert: fn(u64) -> Value,
    ) {
        let values = [50, 90, 99].map(|percent| histogram.percentile(percent));
        for (name, value) in names
            .into_iter()
            .zip(values.into_iter().chain([histogram.max()]))
        {
            self.add(name, value.map_or(Value::Undefined, convert));
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// The four quantiles of a distance.
macro_rules! quantiles {
    ($name:literal) => {
        [
            concat!($name, ".p50"),
            concat!($name, ".p90"),
            concat!($name, ".p99"),
            concat!($name, ".max"),
        ]
    };
}

/// The metrics of streams, whatever the checkers answered.
#[must_use]
pub fn of_streams(counts: &StreamCounts) -> Metrics {
    let mut metrics = Metrics::default();
    metrics.add("streams", counts.streams);
    metrics.add("calls", counts.calling);
    metrics.add("calls.expected", counts.expected);
    metrics.add("calls.read", counts.read);
    metrics.add("calls.exact", ratio(counts.exact, counts.expected));
    metrics.add("calls.in_order", ratio(counts.in_order, counts.calling));
    metrics.add("calls.repaired", counts.repaired);
    metrics.add("calls.incomplete", counts.incomplete);
    metrics.quantiles(quantiles!("saved.ms"), &counts.saved_us, milliseconds);
    metrics
}

/// The metrics of one checker; without `details` those that each group has.
#[must_use]
pub fn of_checker(counts: &Counts, details: Option<&Details>) -> Metrics {
    let [tp, fp, tn, fn_, undecided_call, undecided_text] = counts.cells;
    let sum = |counts: &[u64]| {
        counts
            .iter()
            .fold(0u64, |sum, count| sum.saturating_add(*count))
    };
    let mut metrics = Metrics::default();
    metrics.add("streams", sum(&counts.cells));
    metrics.add("calls", sum(&[tp, fn_, undecided_call]));
    metrics.add("true_positives", tp);
    metrics.add("false_positives", fp);
    metrics.add("true_negatives", tn);
    metrics.add("false_negatives", fn_);
    metrics.add("undecided", sum(&[undecided_call, undecided_text]));
    metrics.add("undecided.calls", undecided_call);
    metrics.add("accuracy", ratio(sum(&[tp, tn]), sum(&[tp, fp, tn, fn_])));
    metrics.add("precision", ratio(tp, sum(&[tp, fp])));
    metrics.add("recall", ratio(tp, sum(&[tp, fn_, undecided_call])));
    metrics.add("f1", f1(tp, fp, sum(&[fn_, undecided_call])));
    metrics.add("mcc", mcc(tp, fp, tn, fn_));
    metrics.add("waited", ratio(counts.waited, counts.text));
    let unit = SHARE_UNIT as f64;
    metrics.add(
        "waited.stream",
        ratio(counts.waited_shares, counts.texts).map(|share| share / unit),
    );
    metrics.add("revised", counts.revised);
    metrics.add("split", counts.split);
    if let Some(details) = details {
        metrics.quantiles(
            quantiles!("decision.events"),
            &details.decision.events,
            Value::Count,
        );
    }
    metrics.quantiles(
        quantiles!("decision.chars"),
        &counts.decision_chars,
        Value::Count,
    );
    if let Some(details) = details {
        metrics.quantiles(
            quantiles!("decision.bytes"),
            &details.decision.bytes,
            Value::Count,
        );
        metrics.quantiles(
            quantiles!("decision.ms"),
            &details.decision.us,
            milliseconds,
        );
        metrics.quantiles(
            quantiles!("late.events"),
            &details.late.events,
            Value::Count,
        );
        metrics.quantiles(quantiles!("late.chars"), &details.late_chars, Value::Count);
        metrics.quantiles(quantiles!("late.bytes"), &details.late.bytes, Value::Count);
        metrics.quantiles(quantiles!("late.ms"), &details.late.us, milliseconds);
    }
    metrics
}

/// The cells of the share that a metric is: those that count as hits, and those of which they are a
/// share.
#[must_use]
pub fn cells(metric: &str) -> Option<(&'static [Cell], &'static [Cell])> {
    use Cell::{FalseNegative, FalsePositive, TrueNegative, TruePositive, UndecidedCall};
    match metric {
        "accuracy" => Some((
            &[TruePositive, TrueNegative],
            &[TruePositive, FalsePositive, TrueNegative, FalseNegative],
        )),
        "precision" => Some((&[TruePositive], &[TruePositive, FalsePositive])),
        "recall" => Some((
            &[TruePositive],
            &[TruePositive, FalseNegative, UndecidedCall],
        )),
        _ => None,
    }
}

/// Microseconds as milliseconds.
fn milliseconds(us: u64) -> Value {
    Value::Real(us as f64 / 1000.0)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => to.serialize_u64(*count),
            Self::Real(real) => to.serialize_f64(*real),
            Self::Undefined => to.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Some(number) = Option::<serde_json::Number>::deserialize(from)? else {
            return Ok(Self::Undefined);
        };
        match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Ok(Self::Count(count)),
            (None, Some(real)) => Ok(Self::Real(real)),
            (None, None) => Err(de::Error::custom("a number that is too large")),
        }
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Metrics;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("metrics by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    metrics.0.push((Cow::Owned(name), value));
                }
                Ok(metrics)
            }
        }
        from.deserialize_map(Entries)
    }
}

/// Of how many streams (of `calls.exact`: calls, of `waited`: nothing, since characters are not
/// counted here) how many have the property whose share the metric is.
#[must_use]
pub fn part(metrics: &Metrics, name: &str) -> Option<(u64, u64)> {
    let count = |name: &str| match metrics.get(name) {
        Some(Value::Count(count)) => count,
        _ => 0,
    };
    let all = |names: &[&str]| {
        names
            .iter()
            .fold(0u64, |sum, name| sum.saturating_add(count(name)))
    };
    let whole = match name {
        "accuracy" => all(&[
            "true_positives",
            "false_positives",
            "true_negatives",
            "false_negatives",
        ]),
        "precision" => all(&["true_positives", "false_positives"]),
        "recall" | "calls.in_order" => count("calls"),
        "calls.exact" => count("calls.expected"),
        _ => return None,
    };
    let share = metrics.get(name)?.number()?;
    Some(((share * whole as f64).round() as u64, whole))
}

/// Why a metric has no value.
#[must_use]
pub fn why_undefined(name: &str) -> &'static str {
    match name {
        "accuracy" => "no stream is decided",
        "precision" => "no answer is yes",
        "recall" | "calls.in_order" => "no stream calls a tool",
        "calls.exact" => "no label has a call",
        "f1" => "no stream calls a tool and no answer is yes",
        "mcc" => "all answers or all labels are alike",
        "waited" | "waited.stream" => "no stream without a call has text",
        _ if name.starts_with("saved.") => "no recording with times has a complete call",
        _ if name.contains(".ms.") => "no recording with such a decision has times",
        _ if name.starts_with("late.") => "no right yes has a known place",
        _ => "no decision has a known place",
    }
}
