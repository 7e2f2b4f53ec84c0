//! What a body is cut into.

/// One piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A server-sent event.
    Event {
        name: Option<&'a str>,
        data: &'a str,
    },
    /// A JSON value of a body that is a value, an array or a sequence of values. Only its brackets
    /// are checked.
    Value(&'a str),
    /// Text between values, or a value that did not end.
    Broken(&'a str),
    /// The body is not of any provider's API: its beginning, and whether it looks like an HTML
    /// page.
    Foreign { text: &'a str, html: bool },
    /// The body is compressed, and cannot be decompressed to its end, for this reason.
    Damaged(&'a str),
    /// A frame is longer than the limit; reading ends.
    TooLong,
}

impl Frame<'_> {
    /// Whether this frame is complete, not the beginning of a longer one.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Frame::Event { data, .. } => data.trim() == "[DONE]" || event::Raw::parse(data).is_ok(),
            Frame::Value(text) => event::Raw::parse(text).is_ok(),
            Frame::Broken(_) | Frame::Damaged(_) => false,
            Frame::Foreign { html, .. } => *html,
            Frame::TooLong => true,
        }
    }
}
