//! What a report holds, whatever its form. As JSON it is one object with the names of these fields.

use crate::baseline::BaselineReport;
use crate::clusters::Cell;
use crate::counts::Counts;
use crate::group::{Dimension, Group};
use crate::histogram::Ranges;
use crate::metrics::{self, Metrics};
use crate::statistics::{Interval, wilson};
use crate::tally::Tally;
use crate::verdict::RequirementVerdict;
use crate::wrong::WrongStream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How good checkers are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Report {
    /// The version of this format, 1. A field may be added without a new version.
    pub version: u32,
    /// Recordings that could not be read. They are in no other number.
    pub unreadable: u64,
    /// Streams whose label has no answer yet. They are in no other number.
    pub unlabelled: u64,
    /// The metrics that do not depend on a checker, by name.
    pub streams: Metrics,
    /// One report for each checker, in the order in which the user named them.
    pub checkers: Vec<CheckerReport>,
    /// The same by API, provider, model, tag and corpus.
    pub groups: Vec<GroupReport>,
    /// Each requirement with the value that was found, in the order in which the user named them.
    pub verdicts: Vec<RequirementVerdict>,
    /// What changed since a baseline; `None` without one.
    pub baseline: Option<BaselineReport>,
    /// The option and its value that name a checker whose name alone does not: `--checker` and
    /// `mine=cmd:./mine` for `mine`. For the commands in a report; not a part of its JSON.
    #[serde(skip)]
    pub named_by: BTreeMap<String, [String; 2]>,
}

/// How good one checker is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct CheckerReport {
    /// Its name.
    pub name: String,
    /// All answers.
    pub confusion: Confusion,
    /// Its metrics by name; `null` where one is not defined.
    pub metrics: Metrics,
    /// The intervals of 95 % of `accuracy`, `precision` and `recall`; a metric that is not defined
    /// has none.
    pub intervals: BTreeMap<String, Interval>,
    /// Decisions by the characters of text before them.
    pub decision_chars: Ranges,
    /// Decisions by the part of the text before them: twenty counts, each of 5 % of the text.
    /// Streams without text are not counted.
    pub decision_parts: Vec<u64>,
    /// Those of `decision_chars` that were a yes; the others were a no.
    pub yes_chars: Ranges,
    /// Those of `decision_parts` that were a yes.
    pub yes_parts: Vec<u64>,
    /// The first streams with a call to which the answer was not yes, by corpus and id.
    pub missed: Vec<WrongStream>,
    /// The first streams without a call to which the answer was yes.
    pub false_yes: Vec<WrongStream>,
}

/// The answers of a checker against the labels. A positive is a stream that calls a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Confusion {
    /// Yes, and the stream calls a tool.
    pub true_positives: u64,
    /// Yes, and it does not.
    pub false_positives: u64,
    /// No, and it does not.
    pub true_negatives: u64,
    /// No, and it calls a tool.
    pub false_negatives: u64,
    /// No answer, and it calls a tool.
    pub undecided_calls: u64,
    /// No answer, and it does not.
    pub undecided_others: u64,
}

/// One value of one dimension.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GroupReport {
    /// By what the report is split here.
    pub by: Dimension,
    /// The value: `(unknown)` for labels without one, `(other)` for all values after the first 300
    /// of the alphabet.
    pub name: String,
    /// The metrics that do not depend on a checker.
    pub streams: Metrics,
    /// The checkers, in the same order as in the report.
    pub checkers: Vec<GroupChecker>,
}

/// How good a checker is on the streams of a group.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GroupChecker {
    /// The name of the checker.
    pub name: String,
    /// Its metrics. Of the distances only `decision.chars` is counted.
    pub metrics: Metrics,
    /// The intervals of 95 % of `accuracy`, `precision` and `recall`.
    pub intervals: BTreeMap<String, Interval>,
}

impl Report {
    /// The report of these counts.
    #[must_use]
    pub fn of(tally: &Tally) -> Self {
        Self {
            version: 1,
            unreadable: tally.unreadable,
            unlabelled: tally.unlabelled,
            streams: metrics::of_streams(&tally.streams),
            checkers: (0..tally.checkers.len())
                .filter_map(|index| CheckerReport::of(tally, index))
                .collect(),
            groups: groups(tally),
            verdicts: Vec::new(),
            baseline: None,
            named_by: BTreeMap::new(),
        }
    }

    /// The groups of a dimension.
    pub fn groups_by(&self, by: Dimension) -> impl Iterator<Item = &GroupReport> {
        self.groups.iter().filter(move |group| group.by == by)
    }
}

impl CheckerReport {
    /// The number of a metric, which is `None` where it is not defined.
    #[must_use]
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.number()
    }

    /// The report of the checker at this index; `None` where the counts have none.
    fn of(tally: &Tally, index: usize) -> Option<Self> {
        let counts = tally.counts.get(index)?;
        let details = tally.details.get(index)?;
        let wrong = tally.wrong.get(index)?;
        Some(Self {
            name: tally.checkers.get(index)?.clone(),
            confusion: Confusion::of(counts),
            metrics: metrics::of_checker(counts, Some(details)),
            intervals: intervals(counts),
            decision_chars: counts.decision_chars.ranges(),
            decision_parts: details.parts.to_vec(),
            yes_chars: details.yes_chars.ranges(),
            yes_parts: details.yes_parts.to_vec(),
            missed: wrong.missed().iter().cloned().collect(),
            false_yes: wrong.false_yes().iter().cloned().collect(),
        })
    }
}

impl Confusion {
    /// Streams with a call to which the answer was not yes.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.false_negatives.saturating_add(self.undecided_calls)
    }

    /// The streams with and without calls, each with how often the answer was yes, no or none.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, [u64; 3]); 2] {
        let calls = [
            self.true_positives,
            self.false_negatives,
            self.undecided_calls,
        ];
        let others = [
            self.false_positives,
            self.true_negatives,
            self.undecided_others,
        ];
        [("calls a tool", calls), ("calls no tool", others)]
    }

    fn of(counts: &Counts) -> Self {
        Self {
            true_positives: counts.cell(Cell::TruePositive),
            false_positives: counts.cell(Cell::FalsePositive),
            true_negatives: counts.cell(Cell::TrueNegative),
            false_negatives: counts.cell(Cell::FalseNegative),
            undecided_calls: counts.cell(Cell::UndecidedCall),
            undecided_others: counts.cell(Cell::UndecidedText),
        }
    }
}

/// The metrics that are shares of streams and have an interval.
pub(crate) const WITH_INTERVAL: [&str; 3] = ["accuracy", "precision", "recall"];

fn intervals(counts: &Counts) -> BTreeMap<String, Interval> {
    let of = |metric: &str| {
        let (hits, of) = metrics::cells(metric)?;
        Some((metric.to_owned(), wilson(&counts.clusters.share(hits, of))?))
    };
    WITH_INTERVAL.into_iter().filter_map(of).collect()
}

fn groups(tally: &Tally) -> Vec<GroupReport> {
    let mut reports = Vec::new();
    for groups in &tally.groups {
        reports.extend(groups.iter().map(|(name, group)| GroupReport {
            by: groups.dimension(),
            name: match name {
                Some("") => "(unknown)".to_owned(),
                Some(name) => name.to_owned(),
                None => "(other)".to_owned(),
            },
            streams: metrics::of_streams(&group.streams),
            checkers: of_group(tally, group),
        }));
    }
    reports
}

fn of_group(tally: &Tally, group: &Group) -> Vec<GroupChecker> {
    let of = |(name, counts): (&String, &Counts)| GroupChecker {
        name: name.clone(),
        metrics: metrics::of_checker(counts, None),
        intervals: intervals(counts),
    };
    tally.checkers.iter().zip(&group.counts).map(of).collect()
}
