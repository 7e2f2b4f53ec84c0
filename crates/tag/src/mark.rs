//! Whether a marker stands at the beginning of a text.

/// Whether one of several markers stands at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It does, and has this length.
    Here(usize),
    /// The text is the beginning of one.
    Perhaps,
    No,
}

/// Looks for the longest of the markers at the beginning of `text`. While a longer one may still come, it is waited for.
pub(crate) fn find(marks: &[&str], text: &str) -> Found {
    if marks.iter().any(|mark| mark.len() > text.len() && mark.starts_with(text)) {
        return Found::Perhaps;
    }
    let here = marks.iter().filter(|mark| text.starts_with(**mark)).map(|mark| mark.len()).max();
    here.map_or(Found::No, Found::Here)
}

/// How much white space a text begins with.
pub(crate) fn space(text: &str) -> usize {
    text.bytes().position(|c| !matches!(c, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(text.len())
}
