//! The strict check of tool arguments. Parsers differ on a key that appears twice in one object, on
//! half of a surrogate pair and on a number that is infinite as a double
//! (<https://bishopfox.com/blog/json-interoperability-vulnerabilities>). A text with one of these
//! is refused, so that the schema check and the tool see the same value.

use event::{Raw, ScanError};
use std::borrow::Cow;

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
    /// The type of a value, by its first byte.
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

    /// The name of the type in JSON Schema.
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
    /// The value, without the white space around it.
    pub value: Raw<'a>,
    /// Its type.
    pub shape: Shape,
}

/// Why a text cannot be used as arguments. `at` counts bytes from the start of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, or nested deeper than 128.
    #[error("not valid JSON: {0}")]
    Syntax(#[from] ScanError),
    /// A key appears twice in one object.
    #[error("the key {key} appears twice in one object, again at byte {at}")]
    DuplicateKey {
        /// The key as JSON, cut after 64 characters.
        key: String,
        /// Where it appears again.
        at: usize,
    },
    /// `\ud800` to `\udfff` without its other half.
    #[error("half of a surrogate pair at byte {at}")]
    LoneSurrogate {
        /// Where the escape begins.
        at: usize,
    },
    /// A number that no double can hold, such as `1e400`.
    #[error("a number out of range at byte {at}")]
    NumberRange {
        /// Where it begins.
        at: usize,
    },
}

impl JsonError {
    /// The code of the error in events.
    pub fn code(&self) -> &'static str {
        match self {
            JsonError::Syntax(_) => "invalid_json",
            JsonError::DuplicateKey { .. } => "duplicate_key",
            JsonError::LoneSurrogate { .. } => "lone_surrogate",
            JsonError::NumberRange { .. } => "number_range",
        }
    }
}

/// Checks that `text` is one JSON value that every parser reads alike. Takes one pass for the
/// grammar and one for the rest.
///
/// # Errors
/// See [`JsonError`].
pub fn check(text: &str) -> Result<ValidJson<'_>, JsonError> {
    let value = Raw::parse(text)?;
    let base = value.text().as_ptr() as usize - text.as_ptr() as usize;
    StrictWalk {
        text: value.text(),
        base,
        open: Vec::new(),
        keys: Vec::new(),
    }
    .run()?;
    Ok(ValidJson {
        value,
        shape: Shape::of(value),
    })
}

/// As [`check`], for an object whose grammar a [`crate::Scanner`] has accepted
/// ([`crate::Scanner::is_balanced`]).
///
/// # Errors
/// See [`JsonError`].
pub fn check_balanced(text: &str) -> Result<(), JsonError> {
    StrictWalk {
        text,
        base: 0,
        open: Vec::new(),
        keys: Vec::new(),
    }
    .run()
}

/// A walk over text that the grammar has accepted.
struct StrictWalk<'a> {
    text: &'a str,
    base: usize,
    open: Vec<OpenContainer>,
    /// The keys of all open objects with their offsets, those of the innermost object last.
    keys: Vec<(Cow<'a, str>, usize)>,
}

/// An open bracket.
struct OpenContainer {
    /// Where its keys begin in [`StrictWalk::keys`].
    keys: usize,
    /// Whether a key comes next.
    expected: bool,
}

/// Up to this many keys of an object are compared one by one, which is faster than sorting; more
/// are sorted when the object closes.
const FEW: usize = 16;

impl<'a> StrictWalk<'a> {
    fn run(mut self) -> Result<(), JsonError> {
        let b = self.text.as_bytes();
        let mut i = 0;
        while i < b.len() {
            match b[i] {
                b'"' => {
                    i = self.string(i)?;
                    continue;
                }
                open @ (b'{' | b'[') => {
                    self.open.push(OpenContainer {
                        keys: self.keys.len(),
                        expected: open == b'{',
                    });
                }
                b'}' | b']' => {
                    if let Some(closed) = self.open.pop() {
                        self.close(closed.keys)?;
                    }
                }
                b':' => self.expect_key(false),
                b',' => self.expect_key(true),
                b'-' | b'0'..=b'9' => {
                    let end = b[i..]
                        .iter()
                        .position(|c| !matches!(c, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
                        .map_or(b.len(), |n| i + n);
                    let number = &self.text[i..end];
                    // Without an exponent a number needs more than 300 digits to leave the range.
                    let short = number.len() < 300 && !number.contains(['e', 'E']);
                    if !short && !number.parse::<f64>().is_ok_and(f64::is_finite) {
                        return Err(JsonError::NumberRange { at: self.base + i });
                    }
                    i = end;
                    continue;
                }
                _ => {}
            }
            i += 1;
        }
        Ok(())
    }

    /// A key comes after `,` in an object, which is a bracket that has keys already.
    fn expect_key(&mut self, comma: bool) {
        if let Some(open) = self.open.last_mut() {
            open.expected = comma && self.keys.len() > open.keys;
        }
    }

    /// Checks the string that begins at `start`; returns the index after it.
    fn string(&mut self, start: usize) -> Result<usize, JsonError> {
        let b = self.text.as_bytes();
        let mut i = start + 1;
        let mut escaped = false;
        let mut high: Option<usize> = None;
        while b[i] != b'"' {
            if b[i] != b'\\' {
                if let Some(at) = high {
                    return Err(JsonError::LoneSurrogate { at: self.base + at });
                }
                i += memchr::memchr2(b'"', b'\\', &b[i..]).unwrap_or(b.len() - i);
                continue;
            }
            escaped = true;
            let unit = if b[i + 1] == b'u' {
                u16::from_str_radix(&self.text[i + 2..i + 6], 16).unwrap_or(0)
            } else {
                0
            };
            match (high.take(), unit) {
                (None, 0xd800..=0xdbff) => high = Some(i),
                (Some(_), 0xdc00..=0xdfff) => {}
                (Some(at), _) => return Err(JsonError::LoneSurrogate { at: self.base + at }),
                (None, 0xdc00..=0xdfff) => {
                    return Err(JsonError::LoneSurrogate { at: self.base + i });
                }
                (None, _) => {}
            }
            i += if b[i + 1] == b'u' { 6 } else { 2 };
        }
        if let Some(at) = high {
            return Err(JsonError::LoneSurrogate { at: self.base + at });
        }
        self.key(start, i + 1, escaped)?;
        Ok(i + 1)
    }

    /// Notes the string `start..end` if it is a key, which must be new to its object.
    fn key(&mut self, start: usize, end: usize, escaped: bool) -> Result<(), JsonError> {
        let Some(open) = self.open.last_mut().filter(|open| open.expected) else {
            return Ok(());
        };
        open.expected = false;
        let quoted = &self.text[start..end];
        let key = if escaped {
            Raw::parse(quoted)
                .ok()
                .and_then(Raw::str)
                .unwrap_or_default()
        } else {
            Cow::Borrowed(&quoted[1..quoted.len() - 1])
        };
        let known = &self.keys[open.keys..];
        if known.len() <= FEW && known.iter().any(|(k, _)| *k == key) {
            return self.twice(start);
        }
        self.keys.push((key, start));
        Ok(())
    }

    /// Closes an object whose keys begin at `from`.
    fn close(&mut self, from: usize) -> Result<(), JsonError> {
        let keys = &self.keys[from..];
        if keys.len() > FEW {
            // Most keys differ in their hash. Keys with the same hash are compared in full: an
            // attacker can choose them.
            let mut order: Vec<(u64, usize)> = keys
                .iter()
                .enumerate()
                .map(|(i, (key, _))| (hash(key), i))
                .collect();
            order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| keys[a.1].cmp(&keys[b.1])));
            let twice = order
                .windows(2)
                .find(|pair| pair[0].0 == pair[1].0 && keys[pair[0].1].0 == keys[pair[1].1].0);
            if let Some(pair) = twice {
                return self.twice(keys[pair[1].1].1);
            }
        }
        self.keys.truncate(from);
        Ok(())
    }

    /// The error for a key at `start` that its object has already.
    fn twice(&self, start: usize) -> Result<(), JsonError> {
        let rest = &self.text[start..];
        let end = 1 + rest[1..].find('"').unwrap_or(0);
        let key = rest[..=end].chars().take(64).collect();
        Err(JsonError::DuplicateKey {
            key,
            at: self.base + start,
        })
    }
}

/// FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>): short, and fast for short keys.
fn hash(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
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
}
