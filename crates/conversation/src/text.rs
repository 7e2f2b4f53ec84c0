//! Converts JSON values of messages and calls to text.

use event::{Json, Raw};

/// Returns the text of a string, the JSON of any other value, or an empty text if there is no
/// value.
pub fn plain(value: Option<Raw<'_>>) -> String {
    value
        .map(|v| {
            v.str()
                .map_or_else(|| v.text().to_owned(), |s| s.into_owned())
        })
        .unwrap_or_default()
}

/// Like `plain`, for a value of an event.
pub fn json(value: Option<Json<'_>>) -> String {
    value
        .map(|value| value.with(|raw| plain(Some(raw))))
        .unwrap_or_default()
}

/// Returns the text of a message: a string, or the text parts of a list (other parts appear as
/// their type in brackets).
pub fn content(message: Raw<'_>) -> String {
    let Some(content) = message.get("content") else {
        return String::new();
    };
    if !content.is_array() {
        return plain(Some(content));
    }
    let mut out = String::new();
    for part in content.items() {
        match part.get("text") {
            Some(text) => out.push_str(&plain(Some(text))),
            None => out.extend(["[", &plain(part.get("type")), "]"]),
        }
    }
    out
}
