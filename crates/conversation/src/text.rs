//! JSON values of messages and calls as texts.

use event::{Json, Raw};

/// A string as its text, any other value as its JSON, no value as an empty text.
pub fn plain(value: Option<Raw<'_>>) -> String {
    value
        .map(|v| {
            v.str()
                .map_or_else(|| v.text().to_owned(), |s| s.into_owned())
        })
        .unwrap_or_default()
}

/// The same for a value of an event.
pub fn json(value: Option<Json<'_>>) -> String {
    value
        .map(|value| value.with(|raw| plain(Some(raw))))
        .unwrap_or_default()
}

/// The text of a message: a string, or the text parts of a list (other parts by their type, in
/// brackets).
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
