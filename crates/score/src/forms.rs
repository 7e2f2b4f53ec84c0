//! The forms of a report.

mod document;
mod html;
mod junit;
mod markdown;
mod plot;
mod table;
mod words;

pub use html::html;
pub use junit::junit;
pub use markdown::markdown;
pub use table::{Layout, table};
pub use words::{counted, regressions};

use crate::report::Report;

/// The report as one JSON object on indented lines, so that two reports can be compared by lines.
/// Its fields are those of [`Report`].
///
/// # Errors
/// None that a report can cause; the writer of JSON reports its own.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report).map(|text| text + "\n")
}
