//! The texts and JSON values of events. They are borrowed, and unescaped or serialized only when
//! needed.

use crate::slot::LineMember;
use crate::{Raw, Surrogates, write};
use std::borrow::Cow;
use std::fmt::Debug;

/// The text of a field: plain, or still escaped as in its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    inner: &'a str,
    /// Whether `inner` is the validated text between the quotes of a JSON string that has escapes.
    is_escaped: bool,
}

impl<'a> Text<'a> {
    /// Returns the text of a JSON string, or `None` for any other value.
    #[inline]
    pub fn of(value: Raw<'a>) -> Option<Self> {
        value
            .string()
            .map(|(inner, is_escaped)| Text { inner, is_escaped })
    }

    /// Returns the text of a member of a line, or `None` if its value is not a string.
    #[inline(always)]
    pub(crate) fn of_member(member: LineMember<'a>) -> Option<Self> {
        member
            .string()
            .map(|(inner, is_escaped)| Text { inner, is_escaped })
    }

    /// Returns the unescaped text, borrowed if it has no escapes. A lone surrogate becomes U+FFFD.
    #[inline]
    pub fn str(self) -> Cow<'a, str> {
        self.plain()
            .map_or_else(|| Cow::Owned(self.unescaped()), Cow::Borrowed)
    }

    /// Returns the text, or `None` if it has escapes.
    #[inline]
    pub fn plain(self) -> Option<&'a str> {
        (!self.is_escaped).then_some(self.inner)
    }

    /// Appends the unescaped text to `out`. A lone surrogate becomes U+FFFD; use [`Surrogates`] to
    /// join texts that may have split a surrogate pair.
    #[inline]
    pub fn append_to(self, out: &mut String) {
        let mut half = Surrogates::default();
        half.push_text(self, out);
        half.finish(out);
    }

    /// Whether the text is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.inner.is_empty()
    }

    /// Returns the length of the unescaped text in bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.plain()
            .map_or_else(|| self.unescaped().len(), str::len)
    }

    /// Returns the length in bytes of the text as it is stored, escaped or not. It is never less
    /// than [`Text::len`], and needs no unescaping.
    pub(crate) fn size(self) -> usize {
        self.inner.len()
    }

    fn unescaped(self) -> String {
        let mut out = String::with_capacity(self.inner.len());
        self.append_to(&mut out);
        out
    }

    /// Appends the text as a JSON string.
    #[inline]
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self.plain() {
            Some(text) => write::push_string(out, text),
            None => self.write_escaped(out),
        }
    }

    #[cold]
    fn write_escaped(self, out: &mut Vec<u8>) {
        let text = self.unescaped();
        if text.contains('\u{fffd}') {
            // The text may have half a surrogate pair, with the other half in the next text.
            write::push_escaped(out, self.inner);
        } else {
            write::push_string(out, &text);
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Text {
            inner: text,
            is_escaped: false,
        }
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Self {
        Text::from(text.as_str())
    }
}

impl<'a> From<&'a Cow<'_, str>> for Text<'a> {
    fn from(text: &'a Cow<'_, str>) -> Self {
        Text::from(&**text)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.str() == *other
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.str() == **other
    }
}

/// A value that can serialize itself as JSON on one line.
pub trait WriteJson: Debug {
    /// Appends the JSON.
    fn write_json(&self, out: &mut Vec<u8>);
}

/// A JSON value in an event: its text, or a value that is serialized when the event is written.
#[derive(Clone, Copy, Debug)]
pub enum Json<'a> {
    /// A value that was parsed or has already been serialized.
    Text(Raw<'a>),
    /// A value that is serialized when needed, without an intermediate copy.
    Made(&'a dyn WriteJson),
}

impl<'a> Json<'a> {
    /// Returns JSON that the caller has validated or serialized, on one line.
    pub fn of(json: &'a str) -> Self {
        Json::Text(Raw::checked(
            json,
            json.starts_with('"') && json.contains('\\'),
        ))
    }

    /// Returns the value as JSON.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Json::Text(raw) => Cow::Borrowed(raw.text()),
            Json::Made(value) => {
                let mut out = Vec::new();
                value.write_json(&mut out);
                Cow::Owned(String::from_utf8(out).unwrap_or_default())
            }
        }
    }

    /// Calls `read` with the value. A [`Json::Made`] is serialized first.
    pub fn with<T>(self, read: impl FnOnce(Raw<'_>) -> T) -> T {
        match self {
            Json::Text(raw) => read(raw),
            made @ Json::Made(_) => {
                let text = made.text();
                let Json::Text(raw) = Json::of(&text) else {
                    return read(Raw::checked("null", false));
                };
                read(raw)
            }
        }
    }

    /// Appends the value as JSON.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Json::Text(raw) => write::push_json(out, raw.text()),
            Json::Made(value) => value.write_json(out),
        }
    }
}

impl Default for Json<'_> {
    fn default() -> Self {
        Json::of("null")
    }
}

impl<'a> From<Raw<'a>> for Json<'a> {
    fn from(value: Raw<'a>) -> Self {
        Json::Text(value)
    }
}

impl Surrogates {
    /// Appends the next text to `out`. A high surrogate at its end is held back until the next
    /// text.
    #[inline]
    pub fn push_text(&mut self, text: Text<'_>, out: &mut String) {
        self.push_inside(text.inner, text.is_escaped, out);
    }

    /// Appends the next piece if it is a string; other values are ignored.
    #[inline]
    pub fn push(&mut self, piece: Raw<'_>, out: &mut String) {
        if let Some(text) = Text::of(piece) {
            self.push_text(text, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_line_is_written_as_it_means_the_same() {
        for (json, text, written) in [
            (r#""a é""#, "a é", r#""a é""#),
            ("\"\u{7f}\u{9b}\"", "\u{7f}\u{9b}", r#""\u007f\u009b""#),
            (r#""a\n\"\u00e9""#, "a\n\"é", r#""a\n\"é""#),
            ("\"\\n\u{9b}\"", "\n\u{9b}", r#""\n\u009b""#),
            (r#""\ud83d""#, "\u{fffd}", r#""\ud83d""#),
        ] {
            let read = Text::of(Raw::parse(json).unwrap()).unwrap();
            let mut out = Vec::new();
            read.write(&mut out);
            assert_eq!(
                (
                    read.str().as_ref(),
                    read.len(),
                    String::from_utf8(out).unwrap().as_str()
                ),
                (text, text.len(), written)
            );
        }
        assert_eq!(Text::of(Raw::parse("7").unwrap()), None);
    }
}
