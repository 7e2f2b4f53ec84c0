//! A JSON value that stays text: walked, not parsed into a tree.
//!
//! Providers send the same field as a string, a number, an object or null. A typed struct fails the whole chunk then; this
//! reader answers `None` for the one field. Numbers keep their digits, because nothing converts them before it is asked to.

use crate::scan::{self, Scan, ScanError};
use std::borrow::Cow;

/// One complete, checked JSON value and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    text: &'a str,
    escaped: bool,
}

impl<'a> Raw<'a> {
    /// Checks that `text` is one JSON value with nothing but white space around it.
    ///
    /// # Errors
    /// Where and why it is not; also for values nested deeper than [`crate::MAX_DEPTH`].
    pub fn parse(text: &'a str) -> Result<Self, ScanError> {
        let b = text.as_bytes();
        let start = scan::space(b, 0);
        let (end, escaped) = scan::value(b, start)?;
        let rest = scan::space(b, end);
        if rest < b.len() {
            return scan::fail(rest, "text after the JSON value");
        }
        Ok(Raw { text: &text[start..end], escaped })
    }

    /// Checks the JSON value that `text` begins with, after white space; what follows it is not looked at.
    ///
    /// # Errors
    /// Where and why there is none.
    pub fn parse_prefix(text: &'a str) -> Result<Self, ScanError> {
        let b = text.as_bytes();
        let start = scan::space(b, 0);
        let (end, escaped) = scan::value(b, start)?;
        Ok(Raw { text: &text[start..end], escaped })
    }

    pub(crate) fn checked(text: &'a str, escaped: bool) -> Self {
        Raw { text, escaped }
    }

    /// The value as it was written.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// Whether this is an object.
    pub fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Whether this is an array.
    pub fn is_array(self) -> bool {
        self.text.starts_with('[')
    }

    /// Whether this is a string.
    pub fn is_str(self) -> bool {
        self.text.starts_with('"')
    }

    /// The boolean, if this is one.
    pub fn bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The integer, if this is one that fits (`3`, not `3.0` and not `"3"`).
    pub fn i64(self) -> Option<i64> {
        self.text.parse().ok()
    }

    /// The number, if this is one.
    pub fn f64(self) -> Option<f64> {
        if self.text.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            self.text.parse().ok()
        } else {
            None
        }
    }

    /// The string without its quotes and escapes; borrowed where it has no escape. A lone surrogate becomes U+FFFD.
    #[inline]
    pub fn str(self) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        if !self.escaped {
            return Some(Cow::Borrowed(inner));
        }
        let mut out = String::with_capacity(inner.len());
        let mut half = Surrogates::default();
        half.push(self, &mut out);
        half.finish(&mut out);
        Some(Cow::Owned(out))
    }

    /// The text of a string without escapes.
    #[inline]
    pub fn plain(self) -> Option<&'a str> {
        (self.is_str() && !self.escaped).then(|| &self.text[1..self.text.len() - 1])
    }

    /// The length in bytes of the string without its quotes and escapes; 0 for any other value.
    pub fn str_len(self) -> usize {
        match self.inner() {
            Some(inner) if !self.escaped => inner.len(),
            Some(_) => self.str().map_or(0, |s| s.len()),
            None => 0,
        }
    }

    /// Appends the string's text to `out`. Gives `false`, and appends nothing, when this is no string.
    #[inline]
    pub fn append_str(self, out: &mut String) -> bool {
        let Some(inner) = self.inner() else { return false };
        if self.escaped {
            let mut half = Surrogates::default();
            half.push(self, out);
            half.finish(out);
        } else {
            out.push_str(inner);
        }
        true
    }

    fn inner(self) -> Option<&'a str> {
        self.text.strip_prefix('"')?.strip_suffix('"')
    }

    /// The member `key` of an object; `None` when it is missing, is `null`, or this is no object.
    /// Of a repeated key the last counts, as in every common parser, so that no two stages see different values.
    pub fn get(self, key: &str) -> Option<Raw<'a>> {
        self.entries().filter(|(k, _)| k == key).last().map(|(_, v)| v).filter(|v| !v.is_null())
    }

    /// The member reached by several keys, one inside the other.
    pub fn at(self, path: &[&str]) -> Option<Raw<'a>> {
        path.iter().try_fold(self, |v, key| v.get(key))
    }

    /// The string member `key`.
    pub fn get_str(self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.str()
    }

    /// The members of an object in order; nothing for any other value.
    pub fn entries(self) -> Entries<'a> {
        Entries { text: self.text, at: usize::from(self.is_object()), open: self.is_object() }
    }

    /// The members that are whole at the beginning of an object that was cut.
    pub fn members_of_cut(text: &'a str) -> Entries<'a> {
        let at = scan::space(text.as_bytes(), 0);
        let open = text.as_bytes().get(at) == Some(&b'{');
        Entries { text, at: at + usize::from(open), open }
    }

    /// The items of an array in order; nothing for any other value.
    pub fn items(self) -> Items<'a> {
        Items { text: self.text, at: usize::from(self.is_array()), open: self.is_array() }
    }
}

/// The members of an object, in order, repeated keys included.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    text: &'a str,
    at: usize,
    open: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.open {
            return None;
        }
        let step = (|| -> Scan<_> {
            let b = self.text.as_bytes();
            let mut at = scan::space(b, self.at);
            if b.get(at) == Some(&b',') {
                at = scan::space(b, at + 1);
            }
            if b.get(at) != Some(&b'"') {
                return scan::fail(at, "end");
            }
            let (end, escaped) = scan::string(b, at)?;
            let key = Raw::checked(&self.text[at..end], escaped);
            let colon = scan::space(b, end);
            let start = scan::space(b, colon + 1);
            let (end, escaped) = scan::value(b, start)?;
            Ok((key, Raw::checked(&self.text[start..end], escaped), end))
        })();
        match step {
            Ok((key, value, end)) => {
                self.at = end;
                Some((key.str()?, value))
            }
            Err(_) => {
                self.open = false;
                None
            }
        }
    }
}

/// The items of an array, in order.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    text: &'a str,
    at: usize,
    open: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        if !self.open {
            return None;
        }
        let b = self.text.as_bytes();
        let mut at = scan::space(b, self.at);
        if b.get(at) == Some(&b',') {
            at = scan::space(b, at + 1);
        }
        match scan::value(b, at) {
            Ok((end, escaped)) if b.get(at) != Some(&b']') => {
                self.at = end;
                Some(Raw::checked(&self.text[at..end], escaped))
            }
            _ => {
                self.open = false;
                None
            }
        }
    }
}

/// Joins strings that belong together although a surrogate pair (`\ud83d` `\ude00`) was cut between two of them.
///
/// One per text that arrives in pieces. A half that is never completed becomes U+FFFD.
#[derive(Clone, Debug, Default)]
pub struct Surrogates {
    high: Option<u16>,
}

impl Surrogates {
    /// Appends the next piece to `out`; a high surrogate at its end is kept for the next piece. Other values are ignored.
    #[inline]
    pub fn push(&mut self, piece: Raw<'_>, out: &mut String) {
        let Some(inner) = piece.inner() else { return };
        if piece.escaped {
            self.push_escaped(inner, out);
        } else if !inner.is_empty() {
            self.finish(out);
            out.push_str(inner);
        }
    }

    /// Pieces of arguments are short and full of `\"`, so this looks at each byte once and calls nothing for a plain run.
    fn push_escaped(&mut self, inner: &str, out: &mut String) {
        let b = inner.as_bytes();
        let (mut from, mut i) = (0, 0);
        while i < b.len() {
            if b[i] != b'\\' {
                i += 1;
                continue;
            }
            if from < i {
                self.finish(out);
                out.push_str(&inner[from..i]);
            }
            i += match b.get(i + 1) {
                Some(b'u') => {
                    self.unit(inner.get(i + 2..i + 6).unwrap_or_default(), out);
                    6
                }
                letter => {
                    self.finish(out);
                    out.push(match letter {
                        Some(b'b') => '\u{8}',
                        Some(b'f') => '\u{c}',
                        Some(b'n') => '\n',
                        Some(b'r') => '\r',
                        Some(b't') => '\t',
                        Some(c) => char::from(*c),
                        None => '\u{fffd}',
                    });
                    2
                }
            };
            from = i;
        }
        if from < b.len() {
            self.finish(out);
            out.push_str(&inner[from..]);
        }
    }

    /// Writes U+FFFD for a half that was kept and never completed.
    pub fn finish(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            out.push('\u{fffd}');
        }
    }

    /// One `\uXXXX`.
    fn unit(&mut self, hex: &str, out: &mut String) {
        let unit = u16::from_str_radix(hex, 16).unwrap_or(0xfffd);
        match (self.high.take(), unit) {
            (high, 0xd800..=0xdbff) => {
                if high.is_some() {
                    out.push('\u{fffd}');
                }
                self.high = Some(unit);
            }
            (Some(high), 0xdc00..=0xdfff) => {
                out.extend(char::decode_utf16([high, unit]).map(|c| c.unwrap_or('\u{fffd}')));
            }
            (high, _) => {
                if high.is_some() {
                    out.push('\u{fffd}');
                }
                out.push(char::from_u32(unit.into()).unwrap_or('\u{fffd}'));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_without_copying() {
        let r = Raw::parse(r#" {"a":{"b":[1,"x\u00e9",null]},"a2":23456789012345678901234,"n":null,"a":{"b":[2]}} "#)
            .unwrap();
        assert_eq!(r.at(&["a", "b"]).unwrap().items().map(Raw::text).collect::<Vec<_>>(), ["2"]);
        assert_eq!(r.get("a2").unwrap().text(), "23456789012345678901234");
        assert!(r.get("n").is_none() && r.get("zz").is_none() && r.get("a2").unwrap().get("x").is_none());
        assert_eq!(Raw::parse("[ ]").unwrap().items().count(), 0);
        assert_eq!(Raw::parse("{ }").unwrap().entries().count(), 0);
        assert!(Raw::parse("1 2").is_err());
    }

    #[test]
    fn surrogates_are_joined_over_pieces() {
        let mut s = Surrogates::default();
        let mut out = String::new();
        for p in [r#""a\ud83d""#, r#""""#, r#""\ude00b\ud83d""#, r#""c\ude00""#] {
            s.push(Raw::parse(p).unwrap(), &mut out);
        }
        s.finish(&mut out);
        assert_eq!(out, "a\u{1f600}b\u{fffd}c\u{fffd}");
        assert_eq!(
            Raw::parse(r#""\ud83d\ude00\"\\\/\b\f\n\r\t""#).unwrap().str().unwrap(),
            "\u{1f600}\"\\/\u{8}\u{c}\n\r\t"
        );
    }
}
