//! Requirements on metrics: what `--require` takes.

use crate::group::Dimension;
use crate::metrics::{self, Metrics, Value};
use crate::report::Report;
use crate::tally::Tally;
use crate::verdict::Verdict;
use std::str::FromStr;

/// A requirement: `[CHECKER:]METRIC[{GROUP=VALUE}] OP NUMBER`.
///
/// `recall>=0.99`, `auto:decision.chars.p90 <= 200`, `auto:recall{api=gemini}>=99.5%`. Without a
/// checker it holds for each. OP is one of `>= <= > < == !=`; GROUP is one of
/// `api provider model tag corpus`. A checker's name may hold any characters, `:` and `=` included.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    text: String,
    checker: Option<String>,
    metric: String,
    group: Option<(Dimension, String)>,
    op: Op,
    bound: f64,
    /// The bound as a decimal number.
    shown: String,
}

/// Why a requirement cannot be checked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// It has no operator.
    #[error(
        "no comparison; write METRIC, then one of >= <= > < == !=, then a number, as in recall>=0.99"
    )]
    Operator,
    /// What follows the operator is not a number.
    #[error("{0:?} is not a number; write 0.99 or 99%")]
    Number(String),
    /// The metric is not known.
    #[error("unknown metric {name:?}, did you mean {near:?}? The metrics are {METRICS}")]
    Metric {
        /// What was typed.
        name: String,
        /// The metric whose name is nearest.
        near: String,
    },
    /// The metric is known, and not counted by group.
    #[error("{0} is not counted by group; of the distances only decision.chars is")]
    NotByGroup(String),
    /// The run has no checker of this name.
    #[error("no checker {name:?} in this run; it has {known}")]
    Checker {
        /// What was typed.
        name: String,
        /// The checkers of the run.
        known: String,
    },
}

/// The metrics in few words, for messages.
const METRICS: &str = "streams, calls, true_positives, false_positives, true_negatives, false_negatives, undecided, \
    undecided.calls, accuracy, precision, recall, f1, mcc, waited, waited.stream, revised, split, \
    {decision,late}.{events,chars,bytes,ms}.{p50,p90,p99,max}, saved.ms.{p50,p90,p99,max}, \
    calls.{expected,read,exact,in_order,repaired,incomplete}, \
    baseline.{broken,fixed,changed,earlier,later,p,new,vanished,relabelled,compared}";
/// The metrics of a comparison with a baseline.
const BASELINE: [&str; 10] = [
    "broken",
    "fixed",
    "changed",
    "earlier",
    "later",
    "p",
    "new",
    "vanished",
    "relabelled",
    "compared",
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
    NotEqual,
}

impl Op {
    const ALL: [(&str, Self); 6] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        (">", Self::Above),
        ("<", Self::Below),
    ];

    fn text(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(_, op)| *op == self)
            .map_or("", |(text, _)| text)
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
            Self::Above => value > bound,
            Self::Below => value < bound,
            Self::Equal => value == bound,
            Self::NotEqual => value != bound,
        }
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        Self::parse(text)
    }
}

impl Requirement {
    /// Reads a requirement.
    ///
    /// # Errors
    /// When it is not one, or its metric is not known.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        // Only the number follows the last operator; a name before it may hold others.
        let end = text
            .rfind(['<', '>', '=', '!'])
            .ok_or(RequirementError::Operator)?
            + 1;
        let (op, left) = Op::ALL
            .into_iter()
            .find_map(|(name, op)| Some((op, text[..end].strip_suffix(name)?.trim())))
            .ok_or(RequirementError::Operator)?;
        let (bound, shown) = number(text[end..].trim())?;
        let (left, group) = split_group(left);
        let (checker, metric) = match left.rsplit_once(':') {
            Some((checker, metric)) => (Some(checker.trim().to_owned()), metric.trim()),
            None => (None, left),
        };
        known(metric, group.is_some())?;
        Ok(Self {
            text: text.to_owned(),
            checker,
            metric: metric.to_owned(),
            group,
            op,
            bound,
            shown,
        })
    }

    /// Checks that the checker, if the requirement has one, is in the run.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_name(&self, checkers: &[String]) -> Result<(), RequirementError> {
        match &self.checker {
            Some(name) if !checkers.contains(name) => Err(RequirementError::Checker {
                name: name.clone(),
                known: checkers.join(", "),
            }),
            _ => Ok(()),
        }
    }

    /// Whether it is about a comparison with a baseline.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        self.metric.starts_with("baseline.")
    }

    /// Whether it limits how many streams a checker may get wrong that were right in the baseline.
    #[must_use]
    pub fn is_about_regressions(&self) -> bool {
        matches!(
            self.metric.as_str(),
            "baseline.broken" | "baseline.changed" | "baseline.p"
        )
    }

    /// What the report shows of it: one verdict for each checker, or a single one where the metric
    /// does not depend on a checker. A metric that is not defined is a requirement that is missed.
    #[must_use]
    pub fn check(&self, report: &Report) -> Vec<Verdict> {
        let group = self.group.as_ref().map(|(by, name)| {
            // Empty where no stream is in the group.
            report.groups_by(*by).find(|group| group.name == *name)
        });
        if matches!(group, Some(None)) {
            return vec![self.verdict(
                self.checker.clone(),
                None,
                Some("no stream is in this group".to_owned()),
            )];
        }
        let group = group.flatten();
        let of_streams = group.map_or(&report.streams, |group| &group.streams);
        if self.checker.is_none() && of_streams.get(&self.metric).is_some() {
            return vec![self.verdict(None, Some(of_streams), None)];
        }
        let of_checker = |index: usize, name: &str| match group {
            _ if self.needs_baseline() => self.of_baseline(report, name),
            None => self.of(name, &report.checkers[index].metrics, of_streams),
            Some(group) => self.of(name, &group.checkers[index].metrics, of_streams),
        };
        let names = report
            .checkers
            .iter()
            .map(|checker| checker.name.as_str())
            .enumerate();
        let verdicts: Vec<_> = names
            .filter(|(_, name)| self.checker.as_deref().is_none_or(|only| only == *name))
            .map(|(index, name)| of_checker(index, name))
            .collect();
        if verdicts.is_empty() {
            return vec![self.verdict(
                self.checker.clone(),
                None,
                Some("the report has no such checker".to_owned()),
            )];
        }
        verdicts
    }

    fn of(&self, checker: &str, metrics: &Metrics, of_streams: &Metrics) -> Verdict {
        let metrics = if metrics.get(&self.metric).is_some() {
            metrics
        } else {
            of_streams
        };
        self.verdict(Some(checker.to_owned()), Some(metrics), None)
    }

    fn of_baseline(&self, report: &Report, checker: &str) -> Verdict {
        let name = self.metric.strip_prefix("baseline.").unwrap_or_default();
        let Some(baseline) = &report.baseline else {
            return self.verdict(
                Some(checker.to_owned()),
                None,
                Some("the run has no --baseline".to_owned()),
            );
        };
        let value = baseline.metric(checker, name);
        let reason = value
            .is_none()
            .then(|| "the baseline does not have this checker".to_owned());
        let mut verdict = self.verdict(Some(checker.to_owned()), None, reason);
        if let Some(value) = value {
            let is_count = value.fract() == 0.0 && value < 1e15 && name != "p";
            verdict.value = if is_count {
                Value::Count(value as u64)
            } else {
                Value::Real(value)
            };
            verdict.is_met = self.op.holds(value, self.bound);
        }
        verdict
    }

    fn verdict(
        &self,
        checker: Option<String>,
        metrics: Option<&Metrics>,
        reason: Option<String>,
    ) -> Verdict {
        let value = metrics
            .and_then(|metrics| metrics.get(&self.metric))
            .unwrap_or(Value::Undefined);
        let group = self
            .group
            .as_ref()
            .map(|(by, name)| format!("{{{by}={name}}}"))
            .unwrap_or_default();
        let is_undefined = value == Value::Undefined;
        Verdict {
            requirement: self.text.clone(),
            checker,
            metric: format!("{}{group}", self.metric),
            value,
            part: metrics.and_then(|metrics| metrics::part(metrics, &self.metric)),
            required: format!("{} {}", self.op.text(), self.shown),
            is_met: value
                .number()
                .is_some_and(|value| self.op.holds(value, self.bound)),
            reason: reason
                .or_else(|| is_undefined.then(|| metrics::why_undefined(&self.metric).to_owned())),
        }
    }
}

/// A number, or a percentage as its share; and the same as a decimal.
fn number(text: &str) -> Result<(f64, String), RequirementError> {
    let digits = text.strip_suffix('%').map(str::trim_end);
    // As an exponent, so that 99.9% is the number nearest to 0.999 and not a hundredth of one near
    // 99.9.
    let parsed = match digits {
        Some(digits) if !digits.contains(['e', 'E']) => format!("{digits}e-2").parse::<f64>(),
        Some(_) => "".parse(),
        None => text.parse(),
    };
    match parsed {
        Ok(number) if number.is_finite() => Ok((number, number.to_string())),
        _ => Err(RequirementError::Number(text.to_owned())),
    }
}

/// The group at the end of a text, `{api=gemini}`, and what precedes it. Checkers and values may
/// hold brackets too, so the group begins at the first bracket that follows the name of a metric.
fn split_group(text: &str) -> (&str, Option<(Dimension, String)>) {
    let Some(inner) = text.strip_suffix('}') else {
        return (text, None);
    };
    let starts = inner.match_indices('{').filter_map(|(start, _)| {
        let (by, value) = inner[start + 1..].split_once('=')?;
        Some((
            inner[..start].trim_end(),
            (by.parse().ok()?, value.to_owned()),
        ))
    });
    let mut first = None;
    for (before, group) in starts {
        let metric = before.rsplit(':').next().unwrap_or_default().trim();
        if known(metric, false).is_ok() {
            return (before, Some(group));
        }
        first.get_or_insert((before, Some(group)));
    }
    first.unwrap_or((text, None))
}

/// Checks the name of a metric.
fn known(metric: &str, in_group: bool) -> Result<(), RequirementError> {
    let all = names(false);
    if !all.iter().any(|name| name == metric) {
        let score = |name: &&String| strsim::jaro_winkler(name, metric);
        let near = all
            .iter()
            .max_by(|one, other| score(one).total_cmp(&score(other)));
        return Err(RequirementError::Metric {
            name: metric.to_owned(),
            near: near.cloned().unwrap_or_default(),
        });
    }
    if in_group && !names(true).iter().any(|name| name == metric) {
        return Err(RequirementError::NotByGroup(metric.to_owned()));
    }
    Ok(())
}

/// The names of all metrics, or of those that each group has.
#[must_use]
pub fn names(in_group: bool) -> Vec<String> {
    let tally = Tally::new(&["any".to_owned()]);
    let streams = metrics::of_streams(&tally.streams);
    let checkers = tally
        .counts
        .iter()
        .zip(&tally.details)
        .map(|(counts, details)| metrics::of_checker(counts, (!in_group).then_some(details)));
    let mut names: Vec<String> = Vec::new();
    for metrics in checkers.chain([streams]) {
        for (name, _) in metrics.iter() {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    if !in_group {
        names.extend(BASELINE.map(|name| format!("baseline.{name}")));
    }
    names
}
