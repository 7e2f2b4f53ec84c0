//! A report as one page of HTML, with its plots.
//!
//! The page has no scripts and loads nothing, and its first line forbids both to the browser. Names
//! and reasons come from files, so all of them are text (maud escapes them) whose hidden characters
//! are written out, and the number of rows is bounded.

mod baseline;
mod checker;
mod groups;
mod plots;
mod requirements;
mod style;
mod summary;
mod words;
mod wrong;

use crate::report::Report;
use maud::{DOCTYPE, PreEscaped, html};

/// What the page may do: apply its own style, and nothing else, so that even a name that escaped
/// the escaping could load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of a report.
#[must_use]
pub fn html(report: &Report) -> String {
    let doublings = plots::doublings(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "tc-eval: checkers of tool calls" }
                style { (PreEscaped(style::style())) }
            }
            body {
                main {
                    (summary::summary(report))
                    (requirements::requirements(report))
                    (plots::curves(report))
                    (baseline::baseline(report))
                    (wrong::wrong(report))
                    (groups::groups(report))
                    @for (index, checker) in report.checkers.iter().enumerate() {
                        (checker::checker(checker, index, doublings))
                    }
                    (words::glossary())
                }
            }
        }
    };
    page.into_string()
}
