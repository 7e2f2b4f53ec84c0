//! A JSON value that stays text: it is walked, not parsed into a tree.
//!
//! Providers send the same field as a string, a number, an object or null. With a typed struct such
//! a difference would fail the whole chunk; this reader returns `None` for the one field. Numbers
//! keep their digits, because they are converted only on demand.

use crate::index::{Index, IndexToken};
use crate::scan::{self, Record, Scan, ScanError, WalkPlace};
use crate::surrogates::{Surrogates, unescaped};
use std::borrow::Cow;

/// The text of one complete, validated JSON value.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    text: &'a str,
    escaped: bool,
    /// The positions of the values inside, if they were indexed. If this is empty, the values are
    /// found by walking the text.
    tokens: &'a [IndexToken],
}

impl<'a> Raw<'a> {
    /// Validates that `text` is a single JSON value, optionally surrounded by white space. Each
    /// access to a part of the value walks its text again.
    ///
    /// # Errors
    /// If `text` is not a valid JSON value, or if its nesting is deeper than [`crate::MAX_DEPTH`].
    /// The error has the position and the reason.
    pub fn parse(text: &'a str) -> Result<Self, ScanError> {
        Raw::walk(text, &mut ())
    }

    /// Like [`Raw::parse`]; also reports each value in the text to `record`.
    ///
    /// # Errors
    /// See [`Raw::parse`]. Everything before the error has been reported.
    #[inline]
    pub fn walk(text: &'a str, record: &mut impl Record) -> Result<Self, ScanError> {
        let b = text.as_bytes();
        let start = scan::space(b, 0);
        let (end, escaped) = if let Some(b'{' | b'[') = b.get(start) {
            (scan::container(b, WalkPlace::from(start), record)?, false)
        } else {
            let (end, escaped) = scan::value(b, start)?;
            record.leaf(start, end, escaped);
            (end, escaped)
        };
        scan::end(b, end)?;
        Ok(Raw::checked(&text[start..end], escaped))
    }

    /// Like [`Raw::parse`], for a value that is accessed more than once: `index` stores the
    /// positions of the values inside it.
    ///
    /// # Errors
    /// See [`Raw::parse`].
    pub fn indexed(text: &'a str, index: &'a mut Index) -> Result<Self, ScanError> {
        let b = text.as_bytes();
        let start = scan::space(b, 0);
        if !matches!(b.get(start), Some(b'{' | b'[')) {
            return Raw::parse(text);
        }
        let end = index.read(text, start)?;
        scan::end(b, end)?;
        Ok(Raw {
            text: &text[start..end],
            escaped: false,
            tokens: index.inside(),
        })
    }

    /// Validates the JSON value at the start of `text`, after optional white space. Text after the
    /// value is ignored.
    ///
    /// # Errors
    /// If `text` does not start with a valid JSON value. The error has the position and the reason.
    pub fn parse_prefix(text: &'a str) -> Result<Self, ScanError> {
        let b = text.as_bytes();
        let start = scan::space(b, 0);
        let (end, escaped) = scan::value(b, start)?;
        Ok(Raw::checked(&text[start..end], escaped))
    }

    /// Validates the JSON value at the start of `bytes`, and that it is UTF-8. Bytes after the value
    /// are ignored. Returns `None` if `bytes` does not start with a valid JSON value.
    #[inline]
    pub fn of_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (end, escaped) = scan::value(bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        Some(Raw::checked(text, escaped))
    }

    /// Returns the length of the JSON value at the start of `bytes`, without the check that it is
    /// UTF-8. Returns `None` if `bytes` does not start with a valid JSON value.
    #[inline]
    pub fn length(bytes: &[u8]) -> Option<usize> {
        Some(scan::value(bytes, 0).ok()?.0)
    }

    pub(crate) fn checked(text: &'a str, escaped: bool) -> Self {
        Raw {
            text,
            escaped,
            tokens: &[],
        }
    }

    /// Returns the value as it was written.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// Whether the value is an object.
    pub fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Whether the value is an object with at least one member.
    pub fn has_members(self) -> bool {
        let inside = self.text.strip_prefix('{');
        inside.is_some_and(|inside| !inside.trim_ascii_start().starts_with('}'))
    }

    /// Whether the value is an array.
    pub fn is_array(self) -> bool {
        self.text.starts_with('[')
    }

    /// Whether the value is a string.
    pub fn is_str(self) -> bool {
        self.text.starts_with('"')
    }

    /// Returns the boolean, or `None` if the value is not a boolean.
    pub fn bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns the integer, or `None` if the value is not an integer (`3.0` and `"3"` are not) or
    /// does not fit.
    pub fn i64(self) -> Option<i64> {
        self.text.parse().ok()
    }

    /// Returns the number, or `None` if the value is not a number.
    pub fn f64(self) -> Option<f64> {
        if self
            .text
            .starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        {
            self.text.parse().ok()
        } else {
            None
        }
    }

    /// Returns the unescaped string without its quotes, or `None` if the value is not a string. It
    /// is borrowed if it has no escapes. A lone surrogate becomes U+FFFD.
    #[inline]
    pub fn str(self) -> Option<Cow<'a, str>> {
        Some(unescaped(self.inside()?, self.escaped))
    }

    /// Returns the string without its quotes, or `None` if it has escapes or the value is not a
    /// string.
    #[inline]
    pub fn plain(self) -> Option<&'a str> {
        self.inside().filter(|_| !self.escaped)
    }

    /// Returns the length in bytes of the unescaped string without its quotes; 0 for any other
    /// value.
    pub fn str_len(self) -> usize {
        match self.inside() {
            Some(inside) if !self.escaped => inside.len(),
            Some(_) => self.str().map_or(0, |s| s.len()),
            None => 0,
        }
    }

    /// Appends the unescaped string to `out`. Returns `false`, and appends nothing, if the value is
    /// not a string.
    #[inline]
    pub fn append_str(self, out: &mut String) -> bool {
        let mut half = Surrogates::default();
        if let Some(inside) = self.inside() {
            half.push_inside(inside, self.escaped, out);
            half.finish(out);
        }
        self.is_str()
    }

    /// Returns the text between the quotes of a string, and whether it has escapes. Returns `None`
    /// if the value is not a string.
    #[inline]
    pub(crate) fn string(self) -> Option<(&'a str, bool)> {
        self.inside().map(|inside| (inside, self.escaped))
    }

    /// Returns the text between the quotes of a string, or `None` if the value is not a string.
    #[inline]
    fn inside(self) -> Option<&'a str> {
        self.is_str().then(|| &self.text[1..self.text.len() - 1])
    }

    /// Returns the member `key` of an object, or `None` if the member is missing or `null`, or if
    /// the value is not an object. If the key is repeated, the last member counts, as in every
    /// common parser, so that no two stages see different values.
    pub fn get(self, key: &str) -> Option<Raw<'a>> {
        self.fields([key])[0]
    }

    /// Iterates over the items of the member `key`; empty if that member is not an array.
    pub fn list(self, key: &str) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        self.get(key).into_iter().flat_map(Raw::items)
    }

    /// Returns the members `keys` of an object, each like [`Raw::get`], in one pass over the
    /// object.
    // Inlined, so that each key is a constant: comparing with a constant nearly always costs two
    // instructions.
    #[inline(always)]
    pub fn fields<const N: usize>(self, keys: [&str; N]) -> [Option<Raw<'a>>; N] {
        let mut found = [None; N];
        if self.tokens.is_empty() || !self.is_object() {
            self.walk_fields(&keys, &mut found);
            return found;
        }
        let mut places = [usize::MAX; N];
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            if token.is_name_escaped {
                let name = unescaped(token.name(self.text), true);
                keys.iter()
                    .zip(&mut places)
                    .filter(|(key, _)| **key == name)
                    .for_each(|(_, place)| *place = at);
            } else {
                let name = token.name_bytes(self.text);
                for (key, place) in keys.iter().zip(&mut places) {
                    if name == key.as_bytes() {
                        *place = at;
                    }
                }
            }
            at += 1 + token.inside as usize;
        }
        for (at, value) in places.into_iter().zip(&mut found) {
            if let Some(token) = self.tokens.get(at) {
                *value = Some(self.child(at, token)).filter(|value| !value.is_null());
            }
        }
        found
    }

    #[inline(never)]
    fn walk_fields(self, keys: &[&str], found: &mut [Option<Raw<'a>>]) {
        for (name, value) in self.entries() {
            for (key, place) in keys.iter().zip(&mut *found) {
                if *key == name {
                    *place = Some(value).filter(|value| !value.is_null());
                }
            }
        }
    }

    /// Returns the value of `token`, which is at position `at` of the tokens.
    #[inline]
    fn child(self, at: usize, token: &IndexToken) -> Raw<'a> {
        let tokens = &self.tokens[at + 1..][..token.inside as usize];
        Raw {
            text: token.value(self.text),
            escaped: token.is_escaped,
            tokens,
        }
    }

    /// Returns the member at a path of keys, each inside the previous one.
    pub fn at(self, path: &[&str]) -> Option<Raw<'a>> {
        path.iter().try_fold(self, |v, key| v.get(key))
    }

    /// Returns the member `key` if it is a string.
    pub fn get_str(self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.str()
    }

    /// Iterates over the members of an object in order, including repeated keys; empty for any
    /// other value.
    #[inline]
    pub fn entries(self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> + use<'a> {
        Children::of(self, b'{')
    }

    /// Iterates over the complete members at the start of a truncated object.
    pub fn members_of_cut(
        text: &'a str,
    ) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> + use<'a> {
        Raw::checked(&text[scan::space(text.as_bytes(), 0)..], false).entries()
    }

    /// Iterates over the items of an array in order; empty for any other value.
    #[inline]
    pub fn items(self) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        Children::of(self, b'[').map(|(_, value)| value)
    }
}

/// An iterator over the keys and values of an array or object, in order. The key of an array item
/// is empty.
#[derive(Clone, Debug)]
struct Children<'a> {
    of: Raw<'a>,
    /// The position of the next token. Without tokens: the offset in the text of the next child, or
    /// of the comma before it.
    at: usize,
    has_more: bool,
}

impl<'a> Children<'a> {
    /// Returns the children of `value` if it starts with the bracket `open`, otherwise no children.
    #[inline]
    fn of(value: Raw<'a>, open: u8) -> Self {
        let has_more = value.text.as_bytes().first() == Some(&open);
        Children {
            of: value,
            at: usize::from(value.tokens.is_empty()),
            has_more,
        }
    }

    /// Finds the next child by walking the text.
    #[inline(never)]
    fn walk(&mut self) -> Scan<(Cow<'a, str>, Raw<'a>)> {
        let text = self.of.text;
        let b = text.as_bytes();
        let mut at = scan::space(b, self.at);
        if b.get(at) == Some(&b',') {
            at = scan::space(b, at + 1);
        }
        let mut key = Cow::Borrowed("");
        if self.of.is_object() {
            if b.get(at) != Some(&b'"') {
                return scan::fail(at, "no key in quotes");
            }
            let (end, escaped) = scan::string(b, at)?;
            key = unescaped(&text[at + 1..end - 1], escaped);
            at = scan::space(b, scan::space(b, end) + 1);
        }
        let (end, escaped) = scan::value(b, at)?;
        self.at = end;
        Ok((key, Raw::checked(&text[at..end], escaped)))
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.has_more {
            return None;
        }
        if self.of.tokens.is_empty() {
            // The closing bracket does not parse as a child, so the iteration ends there, as it
            // does at the end of a truncated text.
            let child = self.walk().ok();
            self.has_more = child.is_some();
            return child;
        }
        let token = self.of.tokens.get(self.at)?;
        let key = unescaped(token.name(self.of.text), token.is_name_escaped);
        let value = self.of.child(self.at, token);
        self.at += 1 + token.inside as usize;
        Some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_without_copying() {
        let r = Raw::parse(r#" {"a":{"b":[1,"x\u00e9",null]},"a2":23456789012345678901234,"n":null,"a":{"b":[2]}} "#)
            .unwrap();
        assert_eq!(
            r.at(&["a", "b"])
                .unwrap()
                .items()
                .map(Raw::text)
                .collect::<Vec<_>>(),
            ["2"]
        );
        assert_eq!(r.get("a2").unwrap().text(), "23456789012345678901234");
        assert!(
            r.get("n").is_none()
                && r.get("zz").is_none()
                && r.get("a2").unwrap().get("x").is_none()
        );
        assert_eq!(Raw::parse("[ ]").unwrap().items().count(), 0);
        assert_eq!(Raw::parse("{ }").unwrap().entries().count(), 0);
        for (text, has_members) in [("{\n}", false), ("[1]", false), ("{ \"a\":1}", true)] {
            let value = Raw::parse(text).unwrap();
            assert_eq!(value.has_members(), has_members, "{text}");
        }
        assert!(Raw::parse("1 2").is_err());
    }

    /// Returns everything that a reader can see of a value: each key, each text, and what `get`
    /// returns for each key.
    fn seen(value: Raw<'_>) -> String {
        let members = value
            .entries()
            .map(|(k, v)| format!("{k}={}/{:?}", seen(v), value.get(&k).map(Raw::text)));
        let items = value.items().map(seen);
        format!(
            "{}[{}]{:?}",
            value.text(),
            members.chain(items).collect::<Vec<_>>().join(";"),
            value.str()
        )
    }

    #[test]
    fn an_index_changes_nothing() {
        let mut index = Index::default();
        let deep = format!("{}1{}", "[{\"a\":".repeat(64), "}]".repeat(64));
        let pairs = format!("[{}{{\"a\":[1]}}]", "{},[],".repeat(40_000));
        for text in [
            r#" { "a" : [ 1 , "\u00e9" , { } ] , "" : { "b" : { "c" : null , "d\n" : -1e5 } } , "a" : "last" } "#,
            r#"[[],[[]],{"x":{"x":[{"x":1}]}},"é",[2,"é\t"]]"#,
            "{}",
            "[ ]",
            "\"a\"",
            "17",
            &deep,
            // More values than fit into an index.
            &pairs,
            "[1]",
        ] {
            let whole = Raw::parse(text).unwrap();
            let indexed = Raw::indexed(text, &mut index).unwrap();
            assert_eq!(
                indexed.tokens.is_empty(),
                !text.contains('1') || text.len() < 3 || text == pairs,
                "{}",
                text.len()
            );
            assert_eq!(seen(indexed), seen(whole));
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "[1 2]",
            "{} x",
            "[\"a\u{1}\"]",
            "[}",
            &"[".repeat(200),
            "{\"a\":[1,{\"b\":",
        ] {
            assert_eq!(
                Raw::indexed(text, &mut index).unwrap_err(),
                Raw::parse(text).unwrap_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_text_shares_with_the_last_one_changes_nothing() {
        let mut index = Index::default();
        let texts = [
            r#"{"id":"chatcmpl-1","n":12,"choices":[{"index":0,"delta":{"content":"a"},"x":null}],"z":[[1,2],{}]}"#,
            r#" [ {"a" : [ [ ] , "b" ] } , [{"k\u00e9":{"a":{"b":{}}}}, -1.5e3 ], 17 ] "#,
        ];
        for text in texts {
            for at in 0..text.len() {
                for put in [
                    "",
                    "x",
                    "1",
                    "\"",
                    ",",
                    "}",
                    "]",
                    "[1],",
                    "{\"a\":1},",
                    "\\",
                    " ",
                ] {
                    let changed = [&text[..at], put, &text[at + 1..]].concat();
                    for text in [text, &changed, text, &text[..at]] {
                        match (Raw::indexed(text, &mut index), Raw::parse(text)) {
                            (Ok(indexed), Ok(whole)) => assert_eq!(seen(indexed), seen(whole)),
                            (indexed, whole) => assert_eq!(indexed.err(), whole.err(), "{text}"),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn surrogates_are_joined_over_pieces() {
        let mut s = Surrogates::default();
        let mut out = String::new();
        for p in [
            r#""a\ud83d""#,
            r#""""#,
            r#""\ude00b\ud83d""#,
            r#""c\ude00""#,
        ] {
            s.push(Raw::parse(p).unwrap(), &mut out);
        }
        s.finish(&mut out);
        assert_eq!(out, "a\u{1f600}b\u{fffd}c\u{fffd}");
        assert_eq!(
            Raw::parse(r#""\ud83d\ude00\"\\\/\b\f\n\r\t""#)
                .unwrap()
                .str()
                .unwrap(),
            "\u{1f600}\"\\/\u{8}\u{c}\n\r\t"
        );
    }
}
