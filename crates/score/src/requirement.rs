//! Requirements on metrics, the values of `--require`.

use crate::baseline::{BaselineReport, CheckerChange};
use crate::group::Dimension;
use crate::metrics::{self, MetricValue, Metrics};
use crate::report::{CheckerReport, Report};
use crate::tally::Tally;
use crate::verdict::RequirementVerdict;
use std::collections::BTreeSet;

/// A requirement: `[CHECKER:]METRIC[{GROUP=VALUE}] OP NUMBER`.
///
/// Examples: `recall>=0.99`, `auto:decision.chars.p90 <= 200`, `auto:recall{api=gemini}>=99.5%`. A
/// requirement that names no checker applies to every checker. OP is one of `>= <= > < == !=`;
/// GROUP is one of `api provider model tag corpus`. A checker's name may contain any characters,
/// including `:` and `=`.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    text: String,
    checker: Option<String>,
    metric: String,
    group: Option<(Dimension, String)>,
    op: &'static str,
    bound: f64,
    /// The bound as a decimal number, for messages.
    shown: String,
}

/// Why a requirement is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// The requirement has no operator.
    #[error(
        "not a comparison; write METRIC, then one of >= <= > < == !=, then a number, as in recall>=0.99"
    )]
    Operator,
    /// The text after the operator is not a number.
    #[error("{0:?} is not a number; write 0.99 or 99%")]
    Number(String),
    /// The metric is unknown.
    #[error("unknown metric {name:?}, did you mean {near:?}? The metrics are {METRICS}")]
    Metric {
        /// The name that the user typed.
        name: String,
        /// The known metric with the most similar name.
        near: String,
    },
    /// The metric is known, but not counted by group.
    #[error("{0} is not counted by group; of the distances only decision.chars is")]
    NotByGroup(String),
    /// The run has no checker with this name.
    #[error("no checker {name:?} in this run; it has {known}")]
    Checker {
        /// The name that the user typed.
        name: String,
        /// The checkers of the run.
        known: String,
    },
}

/// A short list of the metrics, for messages.
const METRICS: &str = "streams, calls, true_positives, false_positives, true_negatives, false_negatives, undecided, \
    undecided.calls, accuracy, precision, recall, f1, mcc, waited, waited.stream, revised, split, \
    {decision,late}.{events,chars,bytes,ms}.{p50,p90,p99,max}, saved.ms.{p50,p90,p99,max}, \
    calls.{expected,read,exact,in_order,repaired,incomplete}, \
    baseline.{broken,fixed,changed,earlier,later,p,new,vanished,relabelled,compared}";

/// The comparison of an operator, between a value and a bound.
type Holds = fn(&f64, &f64) -> bool;

/// The operators; longer ones come first.
const OPERATORS: [(&str, Holds); 6] = [
    (">=", f64::ge),
    ("<=", f64::le),
    ("==", f64::eq),
    ("!=", f64::ne),
    (">", f64::gt),
    ("<", f64::lt),
];

impl Requirement {
    /// Parses a requirement.
    ///
    /// # Errors
    /// Fails if the text is not a requirement, or if its metric is unknown.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        // Only the number follows the last operator; a name before it may contain operators too.
        let end = text
            .rfind(['<', '>', '=', '!'])
            .ok_or(RequirementError::Operator)?
            + 1;
        let (op, left) = OPERATORS
            .into_iter()
            .find_map(|(op, _)| Some((op, text[..end].strip_suffix(op)?.trim())))
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

    /// Checks that the run has the checker that the requirement names, if it names one.
    ///
    /// # Errors
    /// Fails if the run does not have the checker.
    pub fn check_name(&self, checkers: &[String]) -> Result<(), RequirementError> {
        match &self.checker {
            Some(name) if !checkers.contains(name) => Err(RequirementError::Checker {
                name: name.clone(),
                known: checkers.join(", "),
            }),
            _ => Ok(()),
        }
    }

    /// Whether the requirement is about a comparison with a baseline.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        self.metric.starts_with("baseline.")
    }

    /// Whether the requirement limits how many streams may break compared with the baseline.
    #[must_use]
    pub fn is_about_regressions(&self) -> bool {
        matches!(
            self.metric.as_str(),
            "baseline.broken" | "baseline.changed" | "baseline.p"
        )
    }

    /// Checks the requirement against a report. Returns one verdict per checker, or a single one if
    /// the metric does not depend on a checker. An undefined metric fails the requirement.
    #[must_use]
    pub fn check(&self, report: &Report) -> Vec<RequirementVerdict> {
        let fails = |checker: Option<&str>, why: &str| {
            self.verdict(checker, &Metrics::default(), Some(why))
        };
        let only = self.checker.as_deref();
        let group = match &self.group {
            None => None,
            Some((by, name)) => match report.groups_by(*by).find(|group| group.name == *name) {
                None => return vec![fails(only, "no stream is in this group")],
                group => group,
            },
        };
        let of_streams = group.map_or(&report.streams, |group| &group.streams);
        if only.is_none() && of_streams.get(&self.metric).is_some() {
            return vec![self.verdict(None, of_streams, None)];
        }
        let of_checker = |(index, checker): (usize, &CheckerReport)| {
            let name = Some(checker.name.as_str());
            if self.needs_baseline() {
                let Some(baseline) = &report.baseline else {
                    return fails(name, "the run has no --baseline");
                };
                return match baseline.metrics(&checker.name) {
                    Some(metrics) => self.verdict(name, &metrics, None),
                    None => fails(name, "the baseline does not have this checker"),
                };
            }
            let metrics = group.map_or(&checker.metrics, |group| &group.checkers[index].metrics);
            let is_here = metrics.get(&self.metric).is_some();
            self.verdict(name, if is_here { metrics } else { of_streams }, None)
        };
        let checkers = report.checkers.iter().enumerate();
        let wanted = checkers.filter(|(_, checker)| only.is_none_or(|only| only == checker.name));
        let verdicts: Vec<_> = wanted.map(of_checker).collect();
        if verdicts.is_empty() {
            return vec![fails(only, "the report has no such checker")];
        }
        verdicts
    }

    fn verdict(
        &self,
        checker: Option<&str>,
        metrics: &Metrics,
        reason: Option<&str>,
    ) -> RequirementVerdict {
        let value = metrics.get(&self.metric).unwrap_or(MetricValue::Undefined);
        let group = self.group.as_ref();
        let group = group.map_or(String::new(), |(by, name)| format!("{{{by}={name}}}"));
        let number = value.number();
        let undefined = number
            .is_none()
            .then(|| metrics::why_undefined(&self.metric));
        RequirementVerdict {
            requirement: self.text.clone(),
            checker: checker.map(str::to_owned),
            metric: format!("{}{group}", self.metric),
            value,
            part: metrics::part(metrics, &self.metric),
            required: format!("{} {}", self.op, self.shown),
            is_met: number.is_some_and(|value| {
                let mut operators = OPERATORS.into_iter();
                operators.any(|(op, holds)| op == self.op && holds(&value, &self.bound))
            }),
            reason: reason.or(undefined).map(str::to_owned),
        }
    }
}

/// Parses a number, or a percentage as a fraction; returns it also as a decimal.
fn number(text: &str) -> Result<(f64, String), RequirementError> {
    let digits = text.strip_suffix('%').map(str::trim_end);
    // The percentage is parsed with an exponent, so that 99.9% becomes the number nearest to 0.999
    // instead of a hundredth of a number near 99.9.
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

/// Returns the text before the group, and the group at its end, such as `{api=gemini}`. Checkers
/// and values may also contain brackets, so the group starts at the first bracket that follows the
/// name of a metric.
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

/// Returns the names of all metrics, or only of those that each group has.
#[must_use]
pub fn names(in_group: bool) -> Vec<String> {
    let tally = Tally::new(&["any".to_owned()]);
    let streams = metrics::of_streams(&tally.streams);
    let checkers = tally
        .counts
        .iter()
        .zip(&tally.details)
        .map(|(counts, details)| metrics::of_checker(counts, (!in_group).then_some(details)));
    let baseline = BaselineReport {
        checkers: vec![CheckerChange::default()],
        ..BaselineReport::default()
    };
    let baseline = baseline.metrics("").filter(|_| !in_group);
    let metrics = checkers.chain([streams]).chain(baseline);
    let names = metrics.flat_map(|metrics| {
        let names = metrics.iter().map(|(name, _)| name.to_owned());
        names.collect::<Vec<_>>()
    });
    names.collect::<BTreeSet<_>>().into_iter().collect()
}
