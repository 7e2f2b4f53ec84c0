//! A report as JSON.

use crate::report::Report;

/// The report as one object on indented lines, so that two reports can be compared by lines. Its
/// fields are those of [`Report`].
///
/// # Errors
/// None that a report can cause; the writer of JSON reports its own.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report).map(|text| text + "\n")
}
