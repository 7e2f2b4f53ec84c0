//! A report as JUnit XML, the form in which CI systems list tests.
//!
//! A suite for each checker, in which each requirement is a test, and each stream that broke since
//! the baseline is a failed one. Wrong streams are listed as skipped tests with a message: whether
//! the run passes is decided by the requirements, and a CI system that counted failures of its own
//! would disagree with the exit status.

use super::words::{self, Named};
use crate::command_line::explain;
use crate::report::{CheckerReport, Report};
use crate::verdict::Verdict;
use crate::visible;
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
    let wrong = words::wrong(checker);
    let wrong = || {
        let all = wrong.iter();
        all.flat_map(|(kind, _, streams)| streams.iter().map(move |stream| (kind, stream)))
    };
    let list: String = wrong()
        .map(|(_, stream)| format!("{}\n", of_wrong(&checker.name, stream)))
        .collect();
    for verdict in &report.verdicts {
        if verdict.checker.as_deref() == Some(&*checker.name) {
            let is_explained = is_about_answers(&verdict.metric);
            cases.push(requirement(verdict, if is_explained { &list } else { "" }));
        }
    }
    let changes = report
        .baseline
        .iter()
        .flat_map(|baseline| &baseline.checkers);
    for change in changes.filter(|change| change.checker == checker.name) {
        let [(_, _, broken), _] = words::changed(change);
        for stream in broken {
            let name = format!("baseline: {}", name_of(&stream));
            let message = format!("{} now: {}", stream.answer, stream.reason);
            let command = explain(stream.corpus, stream.id, &checker.name);
            cases.push(Case::new(&name, Status::Failure(message, command)));
        }
    }
    for (kind, stream) in wrong() {
        let name = format!("{kind}: {}", name_of(stream));
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

fn name_of(stream: &Named<'_>) -> String {
    let [corpus, id] = [stream.corpus, stream.id].map(|name| visible(name, NAME));
    format!("{corpus} {id}")
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
fn of_wrong(checker: &str, stream: &Named<'_>) -> String {
    let Named { answer, reason, .. } = stream;
    let command = explain(stream.corpus, stream.id, checker);
    format!("{}: {answer} ({reason}); {command}", name_of(stream))
}
