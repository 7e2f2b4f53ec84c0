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
use quick_junit::{NonSuccessKind, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// Characters of a name.
const NAME: usize = 200;
/// Characters of a message.
const MESSAGE: usize = 1_000;

/// The report as JUnit XML.
///
/// # Errors
/// None that a report can cause; the writer of XML reports its own.
pub fn junit(report: &Report) -> Result<String, SerializeError> {
    let mut suites = quick_junit::Report::new("tc-eval");
    let of_streams: Vec<_> = report
        .verdicts
        .iter()
        .filter(|verdict| verdict.checker.is_none())
        .collect();
    if !of_streams.is_empty() || report.unreadable > 0 {
        let mut suite = TestSuite::new("corpus");
        suite.add_test_cases(
            of_streams
                .into_iter()
                .map(|verdict| requirement(verdict, "")),
        );
        if report.unreadable > 0 {
            let message = format!(
                "{} recordings cannot be read, see standard error",
                report.unreadable
            );
            suite.add_test_case(failed(NonSuccessKind::Error, "recordings", &message, ""));
        }
        suites.add_test_suite(suite);
    }
    for checker in &report.checkers {
        suites.add_test_suite(of_checker(report, checker));
    }
    suites.to_string()
}

fn of_checker(report: &Report, checker: &CheckerReport) -> TestSuite {
    let mut suite = TestSuite::new(visible(&checker.name, NAME));
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
            suite.add_test_case(requirement(verdict, if is_explained { &list } else { "" }));
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
            suite.add_test_case(failed(NonSuccessKind::Failure, &name, &message, &command));
        }
    }
    for (kind, stream) in wrong() {
        let mut status = TestCaseStatus::skipped();
        status.set_message(of_wrong(&checker.name, stream));
        suite.add_test_case(case(&format!("{kind}: {}", name_of(stream)), status));
    }
    if suite.test_cases.is_empty() {
        // Several CI systems reject a suite without tests.
        suite.add_test_case(case("no stream is wrong", TestCaseStatus::success()));
    }
    suite
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
fn requirement(verdict: &Verdict, wrong: &str) -> TestCase {
    let name = visible(&format!("{} {}", verdict.metric, verdict.required), NAME);
    if verdict.is_met {
        return case(&name, TestCaseStatus::success());
    }
    failed(
        NonSuccessKind::Failure,
        &name,
        &visible(&verdict.message(), MESSAGE),
        wrong,
    )
}

fn failed(kind: NonSuccessKind, name: &str, message: &str, more: &str) -> TestCase {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message);
    if !more.is_empty() {
        status.set_description(more);
    }
    case(name, status)
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname("tc-eval");
    case
}

/// What a checker answered on a stream, and the command that shows more.
fn of_wrong(checker: &str, stream: &Named<'_>) -> String {
    let Named { answer, reason, .. } = stream;
    let command = explain(stream.corpus, stream.id, checker);
    format!("{}: {answer} ({reason}); {command}", name_of(stream))
}
