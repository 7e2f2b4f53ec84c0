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
        suite.add_test_case(requirement(verdict, &streams));
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
        suite.add_test_case(failed(NonSuccessKind::Failure, &name, &message, &command));
    }
    for stream in wrong {
        let mut status = TestCaseStatus::skipped();
        status.set_message(of_wrong(&checker.name, stream));
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
        suite.add_test_case(case(&name, status));
    }
    if suite.test_cases.is_empty() {
        // Several CI systems reject a suite without tests.
        suite.add_test_case(case("no stream is wrong", TestCaseStatus::success()));
    }
    suite
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
