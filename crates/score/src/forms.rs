//! The output formats of a report.

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

/// Returns the report as an indented JSON object, so that two reports can be compared line by line.
/// Its fields are those of [`Report`].
///
/// # Errors
/// Returns the error of the JSON writer; no report causes one.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report).map(|text| text + "\n")
}
