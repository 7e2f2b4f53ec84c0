//! Formats a report as JUnit XML, in which CI systems list tests.
//!
//! Each checker is a suite, in which each requirement is a test, and each stream that broke since
//! the baseline is a failed test. Wrong streams are skipped tests with a message: the requirements
//! decide whether the run passes, and a CI system that counted wrong streams as failures would
//! disagree with the exit status.

use super::words::{self, Named, NamedStreams};
use crate::report::{CheckerReport, Report};
use crate::verdict::RequirementVerdict;
use crate::visible;
use maud::{Markup, PreEscaped, html};

/// Maximum length of a name in characters.
const NAME: usize = 200;
/// Maximum length of a message in characters.
const MESSAGE: usize = 1_000;

/// The tests of a checker, or of the corpus.
struct Suite {
    name: String,
    cases: Vec<Case>,
}

/// A test.
struct Case {
    name: String,
    result: CaseResult,
    /// The message of a test that did not succeed.
    message: String,
    more: String,
}

#[derive(Clone, Copy, PartialEq)]
enum CaseResult {
    Success,
    Skipped,
    Failure,
    Error,
}

impl Suite {
    fn count(&self, result: CaseResult) -> usize {
        let cases = self.cases.iter();
        cases.filter(|case| case.result == result).count()
    }

    fn xml(&self) -> Markup {
        html! {
            testsuite name=(self.name) tests=(self.cases.len())
                failures=(self.count(CaseResult::Failure)) errors=(self.count(CaseResult::Error))
                skipped=(self.count(CaseResult::Skipped)) {
                "\n"
                @for Case { name, result, message, more } in &self.cases {
                    testcase name=(name) classname="tc-eval" {
                        @match result {
                            CaseResult::Success => {}
                            CaseResult::Skipped => { skipped message=(message) {} }
                            CaseResult::Failure => { failure message=(message) { (more) } }
                            CaseResult::Error => { error message=(message) {} }
                        }
                    }
                    "\n"
                }
            }
        }
    }
}

/// Returns the report as JUnit XML.
pub fn junit(report: &Report) -> String {
    let of_streams = report.verdicts.iter();
    let of_streams = of_streams.filter(|verdict| verdict.checker.is_none());
    let mut corpus = Suite {
        name: "corpus".to_owned(),
        cases: of_streams.map(|verdict| requirement(verdict, "")).collect(),
    };
    if report.unreadable > 0 {
        corpus.cases.push(Case {
            name: "recordings".to_owned(),
            result: CaseResult::Error,
            message: format!(
                "{} recordings cannot be read, see standard error",
                report.unreadable
            ),
            more: String::new(),
        });
    }
    let checkers = report.checkers.iter();
    let suites: Vec<Suite> = [corpus]
        .into_iter()
        .filter(|corpus| !corpus.cases.is_empty())
        .chain(checkers.map(|checker| of_checker(report, checker)))
        .collect();
    let sum = |count: &dyn Fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>();
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="tc-eval" tests=(sum(&|suite| suite.cases.len()))
            failures=(sum(&|suite| suite.count(CaseResult::Failure)))
            errors=(sum(&|suite| suite.count(CaseResult::Error)))
            skipped=(sum(&|suite| suite.count(CaseResult::Skipped))) {
            "\n"
            @for suite in &suites { (suite.xml()) "\n" }
        }
        "\n"
    }
    .into_string()
}

fn of_checker(report: &Report, checker: &CheckerReport) -> Suite {
    let wrong = words::wrong(report, checker);
    // Each wrong stream gets a line with the command that shows more.
    let line = |kind: &NamedStreams<'_>, stream: &Named<'_>| {
        let Named { answer, reason, .. } = stream;
        let command = kind.command(stream).unwrap_or_default();
        format!("{}: {answer} ({reason}); {command}", name_of(stream))
    };
    let skipped: Vec<Case> = wrong
        .iter()
        .flat_map(|kind| kind.streams.iter().map(move |stream| (kind, stream)))
        .map(|(kind, stream)| Case {
            name: format!("{}: {}", kind.kind, name_of(stream)),
            result: CaseResult::Skipped,
            message: line(kind, stream),
            more: String::new(),
        })
        .collect();
    let list: String = skipped
        .iter()
        .map(|case| format!("{}\n", case.message))
        .collect();
    let verdicts = report.verdicts.iter();
    let mut cases: Vec<Case> = verdicts
        .filter(|verdict| verdict.checker.as_deref() == Some(&*checker.name))
        .map(|verdict| {
            let is_explained = is_about_answers(&verdict.metric);
            requirement(verdict, if is_explained { &list } else { "" })
        })
        .collect();
    let baseline = report.baseline.iter();
    let changes = baseline.flat_map(|baseline| &baseline.checkers);
    for change in changes.filter(|change| change.checker == checker.name) {
        let [broken, _] = words::changed(report, change);
        cases.extend(broken.streams.iter().map(|stream| Case {
            name: format!("baseline: {}", name_of(stream)),
            result: CaseResult::Failure,
            message: format!("{} now: {}", stream.answer, stream.reason),
            more: broken.command(stream).unwrap_or_default(),
        }));
    }
    cases.extend(skipped);
    if cases.is_empty() {
        // Several CI systems reject a suite without tests.
        cases.push(Case {
            name: "no stream is wrong".to_owned(),
            result: CaseResult::Success,
            message: String::new(),
            more: String::new(),
        });
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

/// Returns the test for a requirement; a failed one lists the wrong streams.
fn requirement(verdict: &RequirementVerdict, wrong: &str) -> Case {
    Case {
        name: visible(&format!("{} {}", verdict.metric, verdict.required), NAME),
        result: if verdict.is_met {
            CaseResult::Success
        } else {
            CaseResult::Failure
        },
        message: visible(&verdict.message(), MESSAGE),
        more: wrong.to_owned(),
    }
}
