//! A report as JUnit XML, the form in which CI systems list tests.
//!
//! A suite for each checker, in which each requirement is a test, and each stream that broke since
//! the baseline is a failed one. Wrong streams are listed as skipped tests with a message: whether
//! the run passes is decided by the requirements, and a CI system that counted failures of its own
//! would disagree with the exit status.

use super::number::characters;
use crate::baseline::{AnswerChange, BaselineReport};
use crate::command_line::explain;
use crate::measured::Answer;
use crate::report::{CheckerReport, Report};
use crate::verdict::Verdict;
use crate::visible;
use crate::wrong::WrongStream;
use maud::{Markup, PreEscaped, html};

/// Characters of a name.
const NAME: usize = 200;
/// Characters of a message.
const MESSAGE: usize = 1_000;

/// The tests of a checker, or of the corpus.
struct Suite {
    name: String,
    cases: Vec<Case>,
}

/// A test.
struct Case {
    name: String,
    status: Status,
}

enum Status {
    Success,
    /// A message.
    Skipped(String),
    /// A message, and further lines.
    Failure(String, String),
    /// A message.
    Error(String),
}

impl Suite {
    fn count(&self, counts: impl Fn(&Status) -> bool) -> usize {
        let cases = self.cases.iter();
        cases.filter(|case| counts(&case.status)).count()
    }

    fn failures(&self) -> usize {
        self.count(|status| matches!(status, Status::Failure(..)))
    }

    fn errors(&self) -> usize {
        self.count(|status| matches!(status, Status::Error(_)))
    }

    fn xml(&self) -> Markup {
        html! {
            testsuite name=(self.name) tests=(self.cases.len())
                failures=(self.failures()) errors=(self.errors()) {
                "\n"
                @for case in &self.cases { (case.xml()) "\n" }
            }
        }
    }
}

impl Case {
    fn new(name: &str, status: Status) -> Case {
        let name = name.to_owned();
        Case { name, status }
    }

    fn xml(&self) -> Markup {
        html! {
            testcase name=(self.name) classname="tc-eval" {
                @match &self.status {
                    Status::Success => {}
                    Status::Skipped(message) => { skipped message=(message) {} }
                    Status::Failure(message, more) => { failure message=(message) { (more) } }
                    Status::Error(message) => { error message=(message) {} }
                }
            }
        }
    }
}

/// The report as JUnit XML.
pub fn junit(report: &Report) -> String {
    let mut suites = Vec::new();
    let of_streams = report
        .verdicts
        .iter()
        .filter(|verdict| verdict.checker.is_none());
    let mut corpus = Suite {
        name: "corpus".to_owned(),
        cases: of_streams.map(|verdict| requirement(verdict, "")).collect(),
    };
    if report.unreadable > 0 {
        let message = format!(
            "{} recordings cannot be read, see standard error",
            report.unreadable
        );
        corpus
            .cases
            .push(Case::new("recordings", Status::Error(message)));
    }
    if !corpus.cases.is_empty() {
        suites.push(corpus);
    }
    suites.extend(
        report
            .checkers
            .iter()
            .map(|checker| of_checker(report, checker)),
    );
    let sum = |count: fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>();
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="tc-eval" tests=(sum(|suite| suite.cases.len()))
            failures=(sum(Suite::failures)) errors=(sum(Suite::errors)) {
            "\n"
            @for suite in &suites { (suite.xml()) "\n" }
        }
        "\n"
    }
    .into_string()
}

fn of_checker(report: &Report, checker: &CheckerReport) -> Suite {
    let mut cases = Vec::new();
    let wrong: Vec<_> = checker.missed.iter().chain(&checker.false_yes).collect();
    let list: Vec<_> = wrong
        .iter()
        .map(|stream| format!("{}\n", of_wrong(&checker.name, stream)))
        .collect();
    for verdict in report
        .verdicts
        .iter()
        .filter(|verdict| verdict.checker.as_deref() == Some(&*checker.name))
    {
        let streams = if is_about_answers(&verdict.metric) {
            list.concat()
        } else {
            String::new()
        };
        cases.push(requirement(verdict, &streams));
    }
    for change in broken(report.baseline.as_ref(), &checker.name) {
        let name = format!(
            "baseline: {} {}",
            visible(&change.corpus, NAME),
            visible(&change.id, NAME)
        );
        let message = format!(
            "was {}, is {} now: {}",
            change.was.name(),
            change.is.name(),
            visible(&change.reason, MESSAGE)
        );
        let command = explain(&change.corpus, &change.id, &checker.name);
        cases.push(Case::new(&name, Status::Failure(message, command)));
    }
    for stream in wrong {
        let kind = if stream.answer == Answer::Yes {
            "false yes"
        } else {
            "missed"
        };
        let name = format!(
            "{kind}: {} {}",
            visible(&stream.corpus, NAME),
            visible(&stream.id, NAME)
        );
        cases.push(Case::new(
            &name,
            Status::Skipped(of_wrong(&checker.name, stream)),
        ));
    }
    if cases.is_empty() {
        // Several CI systems reject a suite without tests.
        cases.push(Case::new("no stream is wrong", Status::Success));
    }
    Suite {
        name: visible(&checker.name, NAME),
        cases,
    }
}

/// The streams on which a checker was right in the baseline.
fn broken<'r>(
    baseline: Option<&'r BaselineReport>,
    checker: &str,
) -> impl Iterator<Item = &'r AnswerChange> {
    let of = baseline.and_then(|baseline| {
        baseline
            .checkers
            .iter()
            .find(|change| change.checker == checker)
    });
    of.into_iter().flat_map(|change| &change.broken_streams)
}

/// Whether wrong streams explain the value of a metric.
fn is_about_answers(metric: &str) -> bool {
    ![
        "waited",
        "decision.",
        "late.",
        "saved.",
        "calls",
        "streams",
        "baseline.",
        "revised",
        "split",
    ]
    .iter()
    .any(|other| metric.starts_with(other))
}

/// A test of a requirement; a failed one lists the wrong streams.
fn requirement(verdict: &Verdict, wrong: &str) -> Case {
    let name = visible(&format!("{} {}", verdict.metric, verdict.required), NAME);
    let status = if verdict.is_met {
        Status::Success
    } else {
        Status::Failure(visible(&verdict.message(), MESSAGE), wrong.to_owned())
    };
    Case { name, status }
}

/// What a checker answered on a stream, and the command that shows more.
fn of_wrong(checker: &str, stream: &WrongStream) -> String {
    let at = match (stream.events, stream.chars) {
        (Some(events), Some(chars)) => format!(" at event {events}, after {}", characters(chars)),
        _ => String::new(),
    };
    let reason = visible(&stream.reason, MESSAGE);
    format!(
        "{} {}: {}{at} ({reason}); {}",
        visible(&stream.corpus, NAME),
        visible(&stream.id, NAME),
        stream.answer.name(),
        explain(&stream.corpus, &stream.id, checker)
    )
}
