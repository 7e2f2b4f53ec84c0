//! The answers of each checker in an earlier run, and the changes since then.
//!
//! A baseline consists of JSON lines: a [`BaselineHeader`], one [`BaselineStream`] per stream in
//! the order of the corpus, and a [`BaselineEnd`], without which the file was truncated.

use crate::group::cut;
use crate::mcnemar::p_value;
use crate::metrics::{MetricValue, Metrics};
use crate::{Answer, Measured, Place};
use serde::{Deserialize, Serialize};

/// The version of the format, the `tc_eval_baseline` member of the header.
pub const BASELINE_FORMAT: u32 = 1;

/// Maximum length of a name in a report, in characters; longer names are cut, so that hostile names
/// do not fill the memory.
const NAME_LIMIT: usize = 1_000;
/// Maximum length of a reason, in characters.
const REASON_LIMIT: usize = 300;

/// The first line of a baseline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BaselineHeader {
    /// The version of the format, [`BASELINE_FORMAT`].
    pub tc_eval_baseline: u32,
    /// The version of the command that wrote the file.
    pub version: String,
    /// The checkers, in the order of the outcomes of each stream.
    pub checkers: Vec<String>,
    /// The corpora, in the order in which they were read.
    pub corpora: Vec<String>,
}

/// The results for one stream in a baseline.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct BaselineStream {
    /// The corpus that contains the stream.
    pub corpus: String,
    /// The id of the stream, unique in its corpus.
    pub id: String,
    /// Whether the stream calls a tool, according to its label at that time.
    pub has_tool_call: bool,
    /// The outcome of each checker, in the order of the header.
    pub outcomes: Vec<BaselineOutcome>,
}

/// The answer of one checker for one stream.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct BaselineOutcome {
    /// The first answer.
    pub answer: Answer,
    /// The place of that answer; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// The checker's reason. Baseline files contain no reasons.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The last line of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BaselineEnd {
    /// The number of streams in the file.
    pub end: u64,
}

impl BaselineStream {
    /// Returns the measurements of one stream with their reasons, each cut after 300 characters.
    pub fn of(measured: &Measured) -> Self {
        let outcomes = measured.outcomes.iter().map(|outcome| BaselineOutcome {
            answer: outcome.answer,
            at: outcome.at,
            reason: cut(&outcome.reason, REASON_LIMIT),
        });
        BaselineStream {
            corpus: measured.corpus.to_string(),
            id: measured.id.to_string(),
            has_tool_call: measured.has_tool_call,
            outcomes: outcomes.collect(),
        }
    }
}

/// The changes since a baseline, a section of a report.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct BaselineReport {
    /// The number of streams that are both in the baseline and in this run.
    pub compared: u64,
    /// The number of streams that are only in this run.
    pub new: u64,
    /// The first of these streams.
    pub new_streams: Vec<BaselineName>,
    /// The number of streams that are only in the baseline.
    pub vanished: u64,
    /// The first of these streams.
    pub vanished_streams: Vec<BaselineName>,
    /// The number of compared streams whose label changed between a call and no call. Both answers
    /// are scored against the label of this run.
    pub relabelled: u64,
    /// The changes for each checker that is both in this run and in the baseline.
    pub checkers: Vec<CheckerChange>,
    /// Checkers that are only in this run.
    pub unknown_checkers: Vec<String>,
}

/// The name of a stream, unique across several corpora.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BaselineName {
    /// The corpus.
    pub corpus: String,
    /// The id in the corpus, cut after 1,000 characters.
    pub id: String,
}

/// The changes for one checker.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct CheckerChange {
    /// The name of the checker.
    pub checker: String,
    /// The number of streams whose answer was correct in the baseline and is not correct now
    /// (undecided is not correct): the `b` of McNemar's test.
    pub broken: u64,
    /// The number of streams whose answer was not correct in the baseline and is correct now: the
    /// `c` of McNemar's test.
    pub fixed: u64,
    /// The number of streams with a different answer: those of `broken` and `fixed`, and changes
    /// between a wrong answer and undecided.
    pub changed: u64,
    /// The number of streams with the same answer, but given earlier in the text, or at an earlier
    /// event at the same place in the text.
    pub earlier: u64,
    /// The number of streams with the same answer, but given later.
    pub later: u64,
    /// The exact two-sided p-value of McNemar's test on `broken` and `fixed`; 1 if both are 0.
    pub p: f64,
    /// The first broken streams.
    pub broken_streams: Vec<AnswerChange>,
    /// The first fixed streams.
    pub fixed_streams: Vec<AnswerChange>,
}

/// A stream on which a checker's answer changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct AnswerChange {
    /// The corpus of the stream.
    pub corpus: String,
    /// The id in the corpus, cut after 1,000 characters.
    pub id: String,
    /// Whether the stream calls a tool, according to its label in this run.
    pub has_tool_call: bool,
    /// The answer in the baseline.
    pub was: Answer,
    /// The answer in this run.
    pub is: Answer,
    /// The checker's reason in this run.
    pub reason: String,
}

impl BaselineReport {
    /// Returns the metrics `baseline.NAME` of a checker; `None` if the baseline does not have the
    /// checker.
    pub fn metrics(&self, checker: &str) -> Option<Metrics> {
        let of = self.checkers.iter().find(|of| of.checker == checker)?;
        let mut metrics = Metrics::default();
        for (name, count) in [
            ("broken", of.broken),
            ("fixed", of.fixed),
            ("changed", of.changed),
            ("earlier", of.earlier),
            ("later", of.later),
            ("new", self.new),
            ("vanished", self.vanished),
            ("relabelled", self.relabelled),
            ("compared", self.compared),
        ] {
            metrics.add(&format!("baseline.{name}"), count);
        }
        metrics.add("baseline.p", MetricValue::Real(of.p));
        Some(metrics)
    }

    /// Whether any stream broke for any checker.
    pub fn has_regressions(&self) -> bool {
        self.checkers.iter().any(|change| change.broken > 0)
    }
}

/// Collects the differences between a baseline and a run, one stream at a time. Memory is bounded
/// by `shown` names of each kind.
#[derive(Debug)]
pub struct Comparison {
    report: BaselineReport,
    /// For each checker of `report.checkers`, its index in the outcomes of the baseline and in
    /// those of the run.
    columns: Vec<(usize, usize)>,
    shown: usize,
}

impl Comparison {
    /// Starts comparing the checkers of a run with those of a baseline. The report names at most
    /// `shown` streams of each kind.
    pub fn new(baseline: &BaselineHeader, checkers: &[String], shown: usize) -> Self {
        let mut report = BaselineReport::default();
        let mut columns = Vec::new();
        for (now, checker) in checkers.iter().enumerate() {
            match baseline.checkers.iter().position(|known| known == checker) {
                Some(then) => {
                    columns.push((then, now));
                    report.checkers.push(CheckerChange {
                        checker: checker.clone(),
                        ..CheckerChange::default()
                    });
                }
                None => report.unknown_checkers.push(checker.clone()),
            }
        }
        Comparison {
            report,
            columns,
            shown,
        }
    }

    /// Compares a stream that is in both: `was` from the baseline, `is` from the run. A missing
    /// outcome counts as undecided.
    pub fn pair(&mut self, was: &BaselineStream, is: &BaselineStream) {
        self.report.compared += 1;
        self.report.relabelled += u64::from(was.has_tool_call != is.has_tool_call);
        for (change, (then, now)) in self.report.checkers.iter_mut().zip(&self.columns) {
            change.add(
                is,
                was.outcomes.get(*then),
                is.outcomes.get(*now),
                self.shown,
            );
        }
    }

    /// Counts a stream of the run that the baseline does not have.
    pub fn new_stream(&mut self, is: &BaselineStream) {
        self.report.new += 1;
        name(&mut self.report.new_streams, is, self.shown);
    }

    /// Counts a stream of the baseline that the run does not have.
    pub fn vanished_stream(&mut self, was: &BaselineStream) {
        self.report.vanished += 1;
        name(&mut self.report.vanished_streams, was, self.shown);
    }

    /// Returns all differences, after the last stream.
    pub fn finish(mut self) -> BaselineReport {
        for change in &mut self.report.checkers {
            change.p = p_value(change.broken, change.fixed);
        }
        self.report
    }
}

impl CheckerChange {
    /// Counts one stream.
    fn add(
        &mut self,
        stream: &BaselineStream,
        was: Option<&BaselineOutcome>,
        is: Option<&BaselineOutcome>,
        shown: usize,
    ) {
        let [before, after] =
            [was, is].map(|outcome| outcome.map_or(Answer::Undecided, |outcome| outcome.answer));
        if before == after {
            let place =
                |outcome: Option<&BaselineOutcome>| outcome?.at.map(|at| (at.chars, at.events));
            match (place(was), place(is)) {
                (Some(before), Some(after)) if after < before => self.earlier += 1,
                (Some(before), Some(after)) if after > before => self.later += 1,
                _ => {}
            }
            return;
        }
        self.changed += 1;
        let right = if stream.has_tool_call {
            Answer::Yes
        } else {
            Answer::No
        };
        let (count, names) = match (before == right, after == right) {
            (true, false) => (&mut self.broken, &mut self.broken_streams),
            (false, true) => (&mut self.fixed, &mut self.fixed_streams),
            _ => return,
        };
        *count += 1;
        if names.len() < shown {
            names.push(AnswerChange {
                corpus: cut(&stream.corpus, NAME_LIMIT),
                id: cut(&stream.id, NAME_LIMIT),
                has_tool_call: stream.has_tool_call,
                was: before,
                is: after,
                reason: is.map(|outcome| outcome.reason.clone()).unwrap_or_default(),
            });
        }
    }
}

/// Appends the name of a stream, unless `shown` names are already listed.
fn name(names: &mut Vec<BaselineName>, stream: &BaselineStream, shown: usize) {
    if names.len() < shown {
        names.push(BaselineName {
            corpus: cut(&stream.corpus, NAME_LIMIT),
            id: cut(&stream.id, NAME_LIMIT),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stream with one outcome per pair of `answers`: `y`, `n` or `u`, and the number of
    /// characters before the decision.
    fn stream(id: &str, has_tool_call: bool, answers: &[(char, u64)]) -> BaselineStream {
        let outcome = |&(letter, chars): &(char, u64)| BaselineOutcome {
            answer: match letter {
                'y' => Answer::Yes,
                'n' => Answer::No,
                _ => Answer::Undecided,
            },
            at: Some(Place {
                chars,
                ..Place::default()
            }),
            reason: format!("because of {letter}"),
        };
        let outcomes = answers.iter().map(outcome).collect();
        BaselineStream {
            corpus: "c".to_owned(),
            id: id.to_owned(),
            has_tool_call,
            outcomes,
        }
    }

    fn header(checkers: &[&str]) -> BaselineHeader {
        let checkers = checkers.iter().map(|&name| name.to_owned()).collect();
        BaselineHeader {
            tc_eval_baseline: BASELINE_FORMAT,
            version: "1".to_owned(),
            checkers,
            corpora: Vec::new(),
        }
    }

    #[test]
    fn counts_what_broke_and_what_was_fixed_by_the_name_of_the_checker() {
        let checkers = ["b", "a", "x"].map(str::to_owned);
        let mut comparison = Comparison::new(&header(&["a", "b"]), &checkers, 1);
        // The baseline lists a first, the run lists b first.
        comparison.pair(
            &stream("1", true, &[('y', 0), ('n', 9)]),
            &stream("1", true, &[('y', 4), ('n', 3), ('y', 0)]),
        );
        comparison.pair(
            &stream("2", true, &[('y', 0), ('n', 9)]),
            &stream("2", true, &[('n', 9), ('u', 9), ('y', 0)]),
        );
        comparison.pair(
            &stream("3", false, &[('n', 5), ('y', 9)]),
            &stream("3", false, &[('u', 9), ('n', 2), ('y', 0)]),
        );
        comparison.new_stream(&stream("4", true, &[]));
        comparison.new_stream(&stream("5", true, &[]));
        comparison.vanished_stream(&stream("0", true, &[]));
        let report = comparison.finish();
        let [b, a] = &report.checkers[..] else {
            panic!("{report:?}")
        };
        assert_eq!(
            (b.broken, b.fixed, b.changed, b.earlier, b.later),
            (0, 1, 2, 0, 0),
            "{b:?}"
        );
        assert_eq!(
            (a.broken, a.fixed, a.changed, a.earlier, a.later),
            (2, 0, 2, 1, 0),
            "{a:?}"
        );
        assert_eq!(a.broken_streams.len(), 1, "only the first is named");
        assert_eq!(
            (a.broken_streams[0].id.as_str(), a.broken_streams[0].is),
            ("1", Answer::No)
        );
        assert_eq!(a.broken_streams[0].reason, "because of n");
        assert_eq!((report.compared, report.new, report.vanished), (3, 2, 1));
        assert_eq!(
            (
                report.new_streams.len(),
                report.vanished_streams[0].id.as_str()
            ),
            (1, "0")
        );
        assert_eq!(report.unknown_checkers, ["x"]);
        let metrics = report.metrics("a").unwrap();
        assert_eq!(metrics.get("baseline.broken"), Some(MetricValue::Count(2)));
        assert_eq!(report.metrics("x"), None);
    }

    #[test]
    fn a_label_that_was_mended_judges_both_answers() {
        let mut comparison = Comparison::new(&header(&["a"]), &["a".to_owned()], 9);
        comparison.pair(
            &stream("1", false, &[('n', 0)]),
            &stream("1", true, &[('n', 0)]),
        );
        comparison.pair(
            &stream("2", false, &[('n', 0)]),
            &stream("2", true, &[('y', 0)]),
        );
        let report = comparison.finish();
        assert_eq!(
            (
                report.relabelled,
                report.checkers[0].broken,
                report.checkers[0].fixed
            ),
            (2, 0, 1)
        );
    }

    #[test]
    fn a_stream_is_a_line_of_json_and_back() {
        let mut stream = stream("a\n\"b\u{1b}", true, &[('y', 7), ('u', 0)]);
        stream.outcomes[1].at = None;
        let line = serde_json::to_string(&stream).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(
            serde_json::from_str::<BaselineStream>(&line).unwrap(),
            stream
        );
    }
}
