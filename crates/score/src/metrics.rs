//! The metrics by name; requirements, JSON and the docs use the same names.

use crate::clusters::Cell;
use crate::counts::{Counts, Details, SHARE_UNIT, StreamCounts};
use crate::histogram::Histogram;
use crate::statistics::{f1, mcc, ratio};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of a metric. In JSON it is a number, or `null` if it is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MetricValue {
    /// A count.
    Count(u64),
    /// A fraction from 0 to 1, a correlation, or milliseconds.
    Real(f64),
    /// Undefined, such as a fraction of 0 streams.
    Undefined,
}

impl MetricValue {
    /// Returns the number; `None` if it is undefined.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(count as f64),
            Self::Real(real) => Some(real),
            Self::Undefined => None,
        }
    }
}

impl From<Option<u64>> for MetricValue {
    fn from(count: Option<u64>) -> Self {
        count.map_or(Self::Undefined, Self::Count)
    }
}

impl From<Option<f64>> for MetricValue {
    fn from(real: Option<f64>) -> Self {
        real.map_or(Self::Undefined, Self::Real)
    }
}

/// Values by metric name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Metrics(BTreeMap<String, MetricValue>);

impl Metrics {
    /// Returns the value of a metric; `None` if the metric is not counted here.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<MetricValue> {
        self.0.get(name).copied()
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, MetricValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    pub(crate) fn add(&mut self, name: &str, value: impl Into<MetricValue>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Adds the quantiles of a distance, converted by `convert`.
    fn quantiles(&mut self, name: &str, histogram: &Histogram, convert: fn(u64) -> MetricValue) {
        for (quantile, value) in [
            ("p50", histogram.percentile(50)),
            ("p90", histogram.percentile(90)),
            ("p99", histogram.percentile(99)),
            ("max", histogram.max()),
        ] {
            let value = value.map_or(MetricValue::Undefined, convert);
            self.add(&format!("{name}.{quantile}"), value);
        }
    }
}

impl From<u64> for MetricValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// Returns the metrics of streams, which do not depend on the checkers.
#[must_use]
pub(crate) fn of_streams(counts: &StreamCounts) -> Metrics {
    let mut metrics = Metrics::default();
    metrics.add("streams", counts.streams);
    metrics.add("calls", counts.calling);
    metrics.add("calls.expected", counts.expected);
    metrics.add("calls.read", counts.read);
    metrics.add("calls.exact", ratio(counts.exact, counts.expected));
    metrics.add("calls.in_order", ratio(counts.in_order, counts.calling));
    metrics.add("calls.repaired", counts.repaired);
    metrics.add("calls.incomplete", counts.incomplete);
    metrics.quantiles("saved.ms", &counts.saved_us, milliseconds);
    metrics
}

/// Returns the metrics of one checker; without `details`, only those that each group has.
#[must_use]
pub(crate) fn of_checker(counts: &Counts, details: Option<&Details>) -> Metrics {
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
    metrics.quantiles("decision.chars", &counts.decision_chars, MetricValue::Count);
    if let Some(details) = details {
        metrics.quantiles("late.chars", &details.late_chars, MetricValue::Count);
        for (name, distances) in [("decision", &details.decision), ("late", &details.late)] {
            metrics.quantiles(
                &format!("{name}.events"),
                &distances.events,
                MetricValue::Count,
            );
            metrics.quantiles(
                &format!("{name}.bytes"),
                &distances.bytes,
                MetricValue::Count,
            );
            metrics.quantiles(&format!("{name}.ms"), &distances.us, milliseconds);
        }
    }
    metrics
}

/// Returns the cells in the numerator and those in the denominator of a metric that is a fraction;
/// `None` for other metrics.
#[must_use]
pub(crate) fn cells(metric: &str) -> Option<(&'static [Cell], &'static [Cell])> {
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

/// Converts microseconds to milliseconds.
fn milliseconds(us: u64) -> MetricValue {
    MetricValue::Real(us as f64 / 1000.0)
}

impl<'de> Deserialize<'de> for MetricValue {
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

/// Returns the numerator and the denominator of a metric that is a fraction of streams (for
/// `calls.exact`: of calls). Returns `None` for other metrics, including `waited`, whose characters
/// are not counted here.
#[must_use]
pub(crate) fn part(metrics: &Metrics, name: &str) -> Option<(u64, u64)> {
    let all = |names: &[&str]| {
        let counts = names.iter().filter_map(|name| match metrics.get(name) {
            Some(MetricValue::Count(count)) => Some(count),
            _ => None,
        });
        counts.fold(0, u64::saturating_add)
    };
    let whole = match name {
        "accuracy" => all(&[
            "true_positives",
            "false_positives",
            "true_negatives",
            "false_negatives",
        ]),
        "precision" => all(&["true_positives", "false_positives"]),
        "recall" | "calls.in_order" => all(&["calls"]),
        "calls.exact" => all(&["calls.expected"]),
        _ => return None,
    };
    let share = metrics.get(name)?.number()?;
    Some(((share * whole as f64).round() as u64, whole))
}

/// Returns the reason why a metric is undefined.
#[must_use]
pub(crate) fn why_undefined(name: &str) -> &'static str {
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
        _ if name.starts_with("late.") => "no correct yes has a known place",
        _ => "no decision has a known place",
    }
}
