//! The strict check of tool arguments. Parsers disagree about duplicate keys in an object, lone
//! surrogates and numbers that overflow a double
//! (<https://bishopfox.com/blog/json-interoperability-vulnerabilities>). Texts that contain any of
//! these are rejected, so that the schema check and the tool see the same value.

use crate::decimal::Decimal;
use event::{Raw, Record, ScanError};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The JSON type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kinds of JSON")]
pub enum Shape {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Shape {
    /// Returns the type of a value, judged by its first byte.
    pub fn of(value: Raw<'_>) -> Shape {
        match value.text().as_bytes().first() {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b'"') => Shape::String,
            Some(b't' | b'f') => Shape::Bool,
            Some(b'n') => Shape::Null,
            _ => Shape::Number,
        }
    }

    /// Returns the type's name in JSON Schema.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Object => "object",
            Shape::Array => "array",
            Shape::String => "string",
            Shape::Number => "number",
            Shape::Bool => "boolean",
            Shape::Null => "null",
        }
    }
}

/// A text that passed [`check`]. Numbers keep their digits: nothing is converted.
#[derive(Clone, Copy, Debug)]
pub struct ValidJson<'a> {
    /// The value without surrounding white space.
    pub value: Raw<'a>,
    /// The type of the value.
    pub shape: Shape,
}

/// Why a text cannot be used as arguments. `at` is a byte offset in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON, or is nested deeper than 128 levels.
    #[error("not valid JSON: {0}")]
    Syntax(#[from] ScanError),
    /// A key appears twice in the same object.
    #[error("the key {key} appears twice in one object, again at byte {at}")]
    DuplicateKey {
        /// The key as JSON, truncated to 64 characters.
        key: String,
        /// The offset of the second occurrence.
        at: usize,
    },
    /// An escape from `\ud800` to `\udfff` without its other half.
    #[error("half of a surrogate pair at byte {at}")]
    LoneSurrogate {
        /// The offset of the escape.
        at: usize,
    },
    /// A number that no double can hold, such as `1e400`.
    #[error("a number out of range at byte {at}")]
    NumberRange {
        /// The offset of the number.
        at: usize,
    },
}

impl JsonError {
    /// Returns the code of this error in events.
    pub fn code(&self) -> &'static str {
        match self {
            JsonError::Syntax(_) => "invalid_json",
            JsonError::DuplicateKey { .. } => "duplicate_key",
            JsonError::LoneSurrogate { .. } => "lone_surrogate",
            JsonError::NumberRange { .. } => "number_range",
        }
    }
}

/// Checks that `text` is one JSON value that every parser reads alike, in one pass.
///
/// # Errors
/// See [`JsonError`].
pub fn check(text: &str) -> Result<ValidJson<'_>, JsonError> {
    let mut strict = Strict::new(text);
    let value = Raw::walk(text, &mut strict)?;
    strict.error.map_or(
        Ok(ValidJson {
            value,
            shape: Shape::of(value),
        }),
        Err,
    )
}

/// Like [`check`], for a text of which a [`JsonScanner`](crate::JsonScanner) has already found that
/// it is one JSON value. In the same pass the text is copied without the white space between its
/// tokens, as [`event::minify`] does; returns that copy.
///
/// # Errors
/// See [`JsonError`]. The grammar is not checked again.
pub fn check_scanned(text: &str) -> Result<String, JsonError> {
    let mut strict = Strict::new(text);
    let mut out = Vec::with_capacity(text.len());
    event::minify_recorded(&mut out, text, &mut strict);
    match strict.error {
        // The change added or removed only ASCII, so the result is UTF-8.
        None => Ok(String::from_utf8(out).unwrap_or_default()),
        Some(error) => Err(error),
    }
}

/// Returns the value of four hex digits.
fn unit(hex: &[u8]) -> u32 {
    let digit = |c: &u8| char::from(*c).to_digit(16).unwrap_or_default();
    hex.iter().fold(0, |unit, c| unit * 16 + digit(c))
}

/// Looks for constructs that parsers disagree about while the grammar is checked.
struct Strict<'a> {
    text: &'a str,
    /// The index in `keys` of the first key of each open bracket.
    open: Vec<usize>,
    /// The keys of all open objects with their offsets, the innermost object last.
    keys: Vec<(Cow<'a, str>, usize)>,
    /// The first error found.
    error: Option<JsonError>,
}

/// In an object with at most this many keys, each new key is compared with all earlier keys, which
/// is faster than a hash table. The keys of a larger object are compared in a hash table when the
/// object closes.
const FEW: usize = 16;

impl Record for Strict<'_> {
    #[inline]
    fn key(&mut self, start: usize, end: usize, escaped: bool) {
        let quoted = &self.text[start..end];
        let key = if escaped {
            self.surrogates(start, end);
            Raw::parse(quoted)
                .ok()
                .and_then(Raw::str)
                .unwrap_or_default()
        } else {
            Cow::Borrowed(&quoted[1..quoted.len() - 1])
        };
        let known = &self.keys[self.open.last().copied().unwrap_or_default()..];
        if known.len() <= FEW && known.iter().any(|(k, _)| *k == key) {
            self.twice(start);
        }
        self.keys.push((key, start));
    }

    #[inline]
    fn leaf(&mut self, start: usize, end: usize, escaped: bool) {
        if escaped {
            self.surrogates(start, end);
        } else if let b'-' | b'0'..=b'9' = self.text.as_bytes()[start] {
            let number = &self.text[start..end];
            // A number without an exponent needs more than 300 digits to overflow a double.
            let is_safe = number.len() < 300 && !number.bytes().any(|c| c | 0x20 == b'e');
            if !is_safe && !number.parse::<f64>().is_ok_and(f64::is_finite) {
                self.refuse(JsonError::NumberRange { at: start });
            }
        }
    }

    #[inline]
    fn open(&mut self, _: usize) {
        self.open.push(self.keys.len());
    }

    #[inline]
    fn close(&mut self, _: usize) {
        let from = self.open.pop().unwrap_or_default();
        if self.keys.len() - from > FEW {
            let mut seen = HashSet::new();
            let twice = self.keys[from..].iter().find(|(key, _)| !seen.insert(key));
            if let Some(at) = twice.map(|(_, at)| *at) {
                self.twice(at);
            }
        }
        self.keys.truncate(from);
    }
}

impl<'a> Strict<'a> {
    fn new(text: &'a str) -> Self {
        Strict {
            text,
            open: Vec::new(),
            keys: Vec::new(),
            error: None,
        }
    }

    fn refuse(&mut self, error: JsonError) {
        self.error.get_or_insert(error);
    }

    /// Rejects a lone surrogate in a string.
    fn surrogates(&mut self, start: usize, end: usize) {
        let b = self.text.as_bytes();
        // Skip the search: most strings with escapes have no `\u` escape.
        if memchr::memmem::find(&b[start..end], b"\\u").is_none() {
            return;
        }
        let mut at = start;
        let mut high = None;
        while let Some(plain) = memchr::memchr(b'\\', &b[at..end]) {
            let escape = at + plain;
            let (unit, length) = match &b[escape + 1..] {
                [b'u', hex @ ..] => (unit(&hex[..4]), 6),
                _ => (0, 2),
            };
            at = escape + length;
            let is_next = plain == 0;
            match (high, unit) {
                (Some(_), 0xdc00..=0xdfff) if is_next => high = None,
                (None, 0xd800..=0xdbff) => high = Some(escape),
                (None, 0xdc00..=0xdfff) => {
                    return self.refuse(JsonError::LoneSurrogate { at: escape });
                }
                (None, _) => {}
                (Some(_), _) => break,
            }
        }
        if let Some(at) = high {
            self.refuse(JsonError::LoneSurrogate { at });
        }
    }

    /// Rejects the key at `start`, because its object already has this key.
    #[cold]
    fn twice(&mut self, start: usize) {
        let rest = &self.text[start..];
        let end = 1 + rest[1..].find('"').unwrap_or(0);
        let key = rest[..=end].chars().take(64).collect();
        self.refuse(JsonError::DuplicateKey { key, at: start });
    }
}

/// Whether `a` and `b` are the same value. The order of members is ignored; if a key is repeated,
/// its last member counts. Numbers are equal if their exact decimal values are equal: `1`, `1.0`
/// and `10e-1`. If at least one of two numbers has a fraction or an exponent, they are also equal
/// if they convert to the same `f64`. `true` does not equal 1.
pub fn equal(a: Raw<'_>, b: Raw<'_>) -> bool {
    if a.text() == b.text() {
        return true;
    }
    if a.is_str() && b.is_str() {
        a.str() == b.str()
    } else if a.is_object() && b.is_object() {
        objects_equal(a, b)
    } else if a.is_array() && b.is_array() {
        let mut a = a.items();
        let mut b = b.items();
        loop {
            match (a.next(), b.next()) {
                (Some(a), Some(b)) if equal(a, b) => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    } else {
        is_number(a) && is_number(b) && numbers_equal(a.text(), b.text())
    }
}

fn objects_equal(a: Raw<'_>, b: Raw<'_>) -> bool {
    let [members, others] = [a, b].map(|object| object.entries().collect::<HashMap<_, _>>());
    members.len() == others.len()
        && members
            .iter()
            .all(|(key, value)| others.get(key).is_some_and(|other| equal(*value, *other)))
}

fn is_number(value: Raw<'_>) -> bool {
    value
        .text()
        .starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn numbers_equal(a: &str, b: &str) -> bool {
    let is_integer = |text: &str| !text.contains(['.', 'e', 'E']);
    let exact = Decimal::new(a);
    exact.is_exact() && exact == Decimal::new(b)
        || !(is_integer(a) && is_integer(b))
            && matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b && a.is_finite())
}

/// Whether `name` is a valid tool name: 1 to 128 characters from `A-Z a-z 0-9 _ . -`, as MCP
/// specifies (<https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names>).
/// Names are compared byte for byte and looked up in a table; they are never used as a path.
pub fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> &'static str {
        check(text).map_or_else(|e| e.code(), |c| c.shape.name())
    }

    #[test]
    fn a_key_twice_among_many() {
        let object = |keys: &[String]| {
            format!(
                "{{{}}}",
                keys.iter()
                    .map(|k| format!("\"{k}\":1"))
                    .collect::<Vec<_>>()
                    .join(",")
            )
        };
        let mut keys: Vec<String> = (0..500).map(|i| format!("k{i}")).collect();
        assert_eq!(code(&object(&keys)), "object");
        keys.push("k17".into());
        assert_eq!(code(&object(&keys)), "duplicate_key");
    }

    #[test]
    fn shapes_and_refusals() {
        for (text, want) in [
            (r#" {"a":{"b":1},"c":[{"b":2},{"b":3}],"b":"a"} "#, "object"),
            (r#"[{"a":1},"a","a"]"#, "array"),
            (r#""{\"a\":1}""#, "string"),
            ("9007199254740993", "number"),
            ("12345678901234567890123", "number"),
            ("-0", "number"),
            ("true", "boolean"),
            ("null", "null"),
            (r#"{"path":"a","path":"/etc"}"#, "duplicate_key"),
            (
                r#"{"x":[1,{"path":"a","p\u0061th":"/etc"}]}"#,
                "duplicate_key",
            ),
            (r#"{"__proto__":1,"constructor":2}"#, "object"),
            (r#"{"a":"\ud83d\ude00"}"#, "object"),
            (r#"{"a":"\ud83d"}"#, "lone_surrogate"),
            (r#"{"a":"\ud83dx"}"#, "lone_surrogate"),
            (r#"{"a":"\ude00"}"#, "lone_surrogate"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "lone_surrogate"),
            (r#"{"\ud83d":1}"#, "lone_surrogate"),
            (r#"{"a":1e400}"#, "number_range"),
            (r#"{"a":-1e308}"#, "object"),
            (r#"{"a":NaN}"#, "invalid_json"),
            (r#"{"a":Infinity}"#, "invalid_json"),
            ("{}{}", "invalid_json"),
            ("", "invalid_json"),
        ] {
            assert_eq!(code(text), want, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert_eq!(code(&"[".repeat(100_000)), "invalid_json");
        assert_eq!(code(&("[".repeat(128) + &"]".repeat(128))), "array");
    }

    #[test]
    fn an_error_says_where() {
        assert_eq!(
            check(" {\"a\":1,\"a\":2}").unwrap_err().to_string(),
            "the key \"a\" appears twice in one object, again at byte 8"
        );
        assert_eq!(
            check("{\"a\":1e999}").unwrap_err().to_string(),
            "a number out of range at byte 5"
        );
    }

    #[test]
    fn values_are_equal_whatever_they_are_written_like() {
        let same = |a: &str, b: &str| equal(Raw::parse(a).unwrap(), Raw::parse(b).unwrap());
        for (a, b) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("100", "1e2"),
            ("-0", "0.00"),
            ("0.1", "0.10000000000000000001"),
            ("12345678901234567890123", "12345678901234567890123.0"),
            (
                r#"{"a":1,"b":[{"c":null}]}"#,
                r#"{ "b" : [ { "c" : null } ], "a" : 1.0 }"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#""A\n""#, r#""\u0041\u000a""#),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
        ] {
            assert!(same(a, b) && same(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("1", "true"),
            ("1", "\"1\""),
            ("1", "-1"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("1e999", "2e999"),
            ("1e99999999999999999999", "2e99999999999999999999"),
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,1]"),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":null}"#, "{}"),
            ("[]", "{}"),
            ("null", "false"),
        ] {
            assert!(!same(a, b) && !same(b, a), "{a} {b}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert!(is_name("get_weather") && is_name("a.b-c_9") && is_name(&"x".repeat(128)));
        for bad in [
            "",
            "../../bin/sh",
            "/bin/sh",
            "sh -c",
            "g\u{430}t",
            "a\u{200d}b",
            "ｇｅｔ",
            "a\nb",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name(&"x".repeat(129)));
    }
}
