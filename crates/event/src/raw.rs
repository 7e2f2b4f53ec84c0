//! A JSON value that stays text: walked, not parsed into a tree.
//!
//! Providers send the same field as a string, a number, an object or null. A typed struct fails the
//! whole chunk then; this reader gives `None` for the one field. Numbers keep their digits, because
//! they are converted only on demand.

use crate::index::{Index, IndexToken};
use crate::scan::{self, Record, Scan, ScanError, WalkPlace};
use crate::surrogates::{Surrogates, unescaped};
use std::borrow::Cow;

/// One complete, checked JSON value and its text.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    text: &'a str,
    escaped: bool,
    /// Where the values inside lie, if an index has them; else they are found in the text.
    tokens: &'a [IndexToken],
}

impl<'a> Raw<'a> {
    /// Checks that `text` is one JSON value with nothing but white space around it. Each look into
    /// the value walks its text again.
    ///
    /// # Errors
    /// Where and why it is not; also for values nested deeper than [`crate::MAX_DEPTH`].
    pub fn parse(text: &'a str) -> Result<Self, ScanError> {
        Raw::walk(text, &mut ())
    }

    /// As [`Raw::parse`], and reports all that is in the text to `record`.
    ///
    /// # Errors
    /// As [`Raw::parse`]; what comes before the mistake is reported.
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

    /// As [`Raw::parse`], for a value that is looked into more than once: `index` keeps where each
    /// value inside it lies.
    ///
    /// # Errors
    /// As [`Raw::parse`].
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

    /// Checks the JSON value that `text` begins with, after white space; what follows it is not
    /// looked at.
    ///
    /// # Errors
    /// Where and why the text does not begin with one.
    pub fn parse_prefix(text: &'a str) -> Result<Self, ScanError> {
        let b = text.as_bytes();
        let start = scan::space(b, 0);
        let (end, escaped) = scan::value(b, start)?;
        Ok(Raw::checked(&text[start..end], escaped))
    }

    pub(crate) fn checked(text: &'a str, escaped: bool) -> Self {
        Raw {
            text,
            escaped,
            tokens: &[],
        }
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

    /// Whether this is an object with a member.
    pub fn has_members(self) -> bool {
        let inside = self.text.strip_prefix('{');
        inside.is_some_and(|inside| !inside.trim_ascii_start().starts_with('}'))
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
        if self
            .text
            .starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        {
            self.text.parse().ok()
        } else {
            None
        }
    }

    /// The string without its quotes and escapes; borrowed where it has no escape. A lone surrogate
    /// becomes U+FFFD.
    #[inline]
    pub fn str(self) -> Option<Cow<'a, str>> {
        Some(unescaped(self.inside()?, self.escaped))
    }

    /// The text of a string without escapes.
    #[inline]
    pub fn plain(self) -> Option<&'a str> {
        self.inside().filter(|_| !self.escaped)
    }

    /// The length in bytes of the string without its quotes and escapes; 0 for any other value.
    pub fn str_len(self) -> usize {
        match self.inside() {
            Some(inside) if !self.escaped => inside.len(),
            Some(_) => self.str().map_or(0, |s| s.len()),
            None => 0,
        }
    }

    /// Appends the string's text to `out`. Gives `false`, and appends nothing, when this is not a
    /// string.
    #[inline]
    pub fn append_str(self, out: &mut String) -> bool {
        let mut half = Surrogates::default();
        if let Some(inside) = self.inside() {
            half.push_inside(inside, self.escaped, out);
            half.finish(out);
        }
        self.is_str()
    }

    /// What lies between the quotes of a string, and whether it has escapes.
    #[inline]
    pub(crate) fn string(self) -> Option<(&'a str, bool)> {
        self.inside().map(|inside| (inside, self.escaped))
    }

    /// What lies between the quotes of a string.
    #[inline]
    fn inside(self) -> Option<&'a str> {
        self.is_str().then(|| &self.text[1..self.text.len() - 1])
    }

    /// The member `key` of an object; `None` when it is missing, is `null`, or this is not an
    /// object. Of a repeated key the last counts, as in every common parser, so that no two stages
    /// see different values.
    pub fn get(self, key: &str) -> Option<Raw<'a>> {
        self.fields([key])[0]
    }

    /// The items of a member; none if there is no such array.
    pub fn list(self, key: &str) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        self.get(key).into_iter().flat_map(Raw::items)
    }

    /// The members `keys` of an object, each as [`Raw::get`] gives it, in one pass over the object.
    // Inlined, so that each key is a constant: comparing with it costs two instructions nearly
    // always.
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

    /// The value of the token at this place.
    #[inline]
    fn child(self, at: usize, token: &IndexToken) -> Raw<'a> {
        let tokens = &self.tokens[at + 1..][..token.inside as usize];
        Raw {
            text: token.value(self.text),
            escaped: token.is_escaped,
            tokens,
        }
    }

    /// The member reached by several keys, one inside the other.
    pub fn at(self, path: &[&str]) -> Option<Raw<'a>> {
        path.iter().try_fold(self, |v, key| v.get(key))
    }

    /// The string member `key`.
    pub fn get_str(self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.str()
    }

    /// The members of an object in order, repeated keys included; nothing for any other value.
    #[inline]
    pub fn entries(self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> + use<'a> {
        Children::of(self, b'{')
    }

    /// The members that are whole at the beginning of an object that was cut.
    pub fn members_of_cut(
        text: &'a str,
    ) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> + use<'a> {
        Raw::checked(&text[scan::space(text.as_bytes(), 0)..], false).entries()
    }

    /// The items of an array in order; nothing for any other value.
    #[inline]
    pub fn items(self) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        Children::of(self, b'[').map(|(_, value)| value)
    }
}

/// What is in an array or object, in order: keys and values. An item has an empty key.
#[derive(Clone, Debug)]
struct Children<'a> {
    of: Raw<'a>,
    /// The place of the next token; without tokens, where in the text the next child begins, or the
    /// comma before it.
    at: usize,
    has_more: bool,
}

impl<'a> Children<'a> {
    /// The children of `value` if it begins with the bracket `open`.
    #[inline]
    fn of(value: Raw<'a>, open: u8) -> Self {
        let has_more = value.text.as_bytes().first() == Some(&open);
        Children {
            of: value,
            at: usize::from(value.tokens.is_empty()),
            has_more,
        }
    }

    /// The next child, found in the text.
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
            // The closing bracket is not a child, so it ends this as the end of a text that was cut
            // does.
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

    /// What a reader sees of a value: every key and every text, and what `get` finds under each
    /// key.
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
            // More values than an index takes.
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
