//! The contents of a report in any format. In JSON it is one object with the names of these fields.

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

/// The scores of checkers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Report {
    /// The version of this format, 1. Added fields do not change the version.
    pub version: u32,
    /// The number of recordings that could not be read. No other number includes them.
    pub unreadable: u64,
    /// The number of streams whose label has no answer yet. No other number includes them.
    pub unlabelled: u64,
    /// The metrics that do not depend on a checker, by name.
    pub streams: Metrics,
    /// One report per checker, in the order in which the user named them.
    pub checkers: Vec<CheckerReport>,
    /// The same metrics by API, provider, model, tag and corpus.
    pub groups: Vec<GroupReport>,
    /// Each requirement with the measured value, in the order in which the user gave them.
    pub verdicts: Vec<RequirementVerdict>,
    /// The changes since a baseline; `None` without a baseline.
    pub baseline: Option<BaselineReport>,
    /// The option and value that select a checker whose name alone is not enough: `--checker` and
    /// `mine=cmd:./mine` for `mine`. The commands in a report use them; the JSON does not include
    /// them.
    #[serde(skip)]
    pub named_by: BTreeMap<String, [String; 2]>,
}

/// The scores of one checker.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct CheckerReport {
    /// The name of the checker.
    pub name: String,
    /// The confusion matrix of all answers.
    pub confusion: Confusion,
    /// The metrics of the checker by name; `null` if undefined.
    pub metrics: Metrics,
    /// The 95 % intervals of `accuracy`, `precision` and `recall`; an undefined metric has no
    /// interval.
    pub intervals: BTreeMap<String, Interval>,
    /// The number of decisions by the characters of text before them.
    pub decision_chars: Ranges,
    /// The number of decisions by the fraction of the text before them: twenty counts, each for 5 %
    /// of the text. Streams without text are not counted.
    pub decision_parts: Vec<u64>,
    /// The decisions of `decision_chars` that were a yes; the others were a no.
    pub yes_chars: Ranges,
    /// The decisions of `decision_parts` that were a yes.
    pub yes_parts: Vec<u64>,
    /// The first streams with a call and an answer other than yes, by corpus and id.
    pub missed: Vec<WrongStream>,
    /// The first streams without a call and with the answer yes.
    pub false_yes: Vec<WrongStream>,
}

/// The confusion matrix of a checker. A positive is a stream that calls a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Confusion {
    /// Answer yes, and the stream calls a tool.
    pub true_positives: u64,
    /// Answer yes, but the stream does not call a tool.
    pub false_positives: u64,
    /// Answer no, and the stream does not call a tool.
    pub true_negatives: u64,
    /// Answer no, but the stream calls a tool.
    pub false_negatives: u64,
    /// Undecided, and the stream calls a tool.
    pub undecided_calls: u64,
    /// Undecided, and the stream does not call a tool.
    pub undecided_others: u64,
}

/// The scores for one value of one dimension.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GroupReport {
    /// The dimension.
    pub by: Dimension,
    /// The value; `(unknown)` for labels without a value, `(other)` for all values after the first
    /// 300 in alphabetical order.
    pub name: String,
    /// The metrics that do not depend on a checker.
    pub streams: Metrics,
    /// The checkers, in the same order as in the report.
    pub checkers: Vec<GroupChecker>,
}

/// The scores of a checker for the streams of a group.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct GroupChecker {
    /// The name of the checker.
    pub name: String,
    /// The metrics of the checker. The only distances among them are those of `decision.chars`.
    pub metrics: Metrics,
    /// The 95 % intervals of `accuracy`, `precision` and `recall`.
    pub intervals: BTreeMap<String, Interval>,
}

impl Report {
    /// Returns the report for these counts.
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

    /// Iterates over the groups of a dimension.
    pub fn groups_by(&self, by: Dimension) -> impl Iterator<Item = &GroupReport> {
        self.groups.iter().filter(move |group| group.by == by)
    }
}

impl CheckerReport {
    /// Returns the number of a metric; `None` if it is undefined.
    #[must_use]
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.number()
    }

    /// Returns the report of the checker at this index; `None` if there is no such checker.
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
    /// Returns the number of streams with a call and an answer other than yes.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.false_negatives.saturating_add(self.undecided_calls)
    }

    /// Returns two rows, for the streams with and without calls, each with the number of yes, no
    /// and undecided answers.
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

/// The metrics that are fractions of streams and have an interval.
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
