//! The arguments of one call, validated once and kept as text.

use super::canonical::{Hash, by_value, canonical, digest};
use event::Raw;
use json::Shape;
use std::borrow::Cow;

/// A JSON object on one line, with the model's own number spellings and key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    text: String,
}

impl Arguments {
    /// Parses and validates `text` strictly (see [`json::check`]): it must be one object without
    /// U+0000, which a command line cannot contain. An empty text counts as `{}`, since providers
    /// send it for a call without arguments.
    ///
    /// # Errors
    /// Returns an [`ArgumentRefusal`] whose message is written for the model.
    pub fn read(text: &str) -> Result<Self, ArgumentRefusal> {
        if text.trim_ascii().is_empty() {
            return Ok(Arguments {
                text: "{}".to_owned(),
            });
        }
        let checked = json::check(text)?;
        if checked.shape != Shape::Object {
            return Err(ArgumentRefusal::NotAnObject(checked.shape.name()));
        }
        // JSON can contain U+0000 only as the escape `\u0000`, but the same characters may also be
        // an escaped backslash followed by `u0000`.
        if text.contains("\\u0000") && has_nul(checked.value) {
            return Err(ArgumentRefusal::Nul);
        }
        let mut line = Vec::with_capacity(text.len());
        event::minify(&mut line, checked.value.text());
        Ok(Arguments {
            text: String::from_utf8(line).unwrap_or_default(),
        })
    }

    /// Returns the object as one line of JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the members in their original order.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, Raw<'_>)> {
        self.raw().into_iter().flat_map(Raw::entries)
    }

    /// Returns the member `key`, or `None` if it is missing or `null`.
    pub fn get(&self, key: &str) -> Option<Raw<'_>> {
        self.raw()?.get(key)
    }

    /// Returns the canonical text, which is the same for every spelling of the same arguments.
    pub fn canonical(&self) -> String {
        self.raw().map(canonical).unwrap_or_default()
    }

    /// Returns a digest of `name` and the arguments, which tells apart calls that share an id.
    pub fn fingerprint(&self, name: &str) -> Hash {
        digest([name.as_bytes(), self.canonical().as_bytes()])
    }

    /// Returns a digest of `name` and the meaning of the arguments: different spellings of a number
    /// and `null` members do not change the digest.
    pub fn meaning(&self, name: &str) -> Hash {
        let value = self.raw().map(by_value).unwrap_or_default();
        digest([name.as_bytes(), value.as_bytes()])
    }

    /// Returns a one-line summary for people, such as `city=Paris, days=3`.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        for (key, value) in self.members() {
            if !out.is_empty() {
                out.push_str(", ");
            }
            out.push_str(&key);
            out.push('=');
            out.push_str(&plain(value));
            if out.len() > 4 * super::visible::SUMMARY {
                break;
            }
        }
        super::visible::one_line(&out)
    }

    fn raw(&self) -> Option<Raw<'_>> {
        Raw::parse(&self.text).ok()
    }
}

/// Returns a value as one command-line item: the text of a string, or the JSON of any other value.
pub(crate) fn plain(value: Raw<'_>) -> String {
    match value.str() {
        Some(text) => text.into_owned(),
        None => value.text().to_owned(),
    }
}

fn has_nul(value: Raw<'_>) -> bool {
    value.str().is_some_and(|text| text.contains('\0'))
        || value.items().any(has_nul)
        || value
            .entries()
            .any(|(key, member)| key.contains('\0') || has_nul(member))
}

// Reasons for rejecting the arguments of a call.

/// Maximum length of one command-line item on Linux, in bytes: `MAX_ARG_STRLEN` without the
/// terminating zero byte (execve(2)).
pub const MAX_ITEM: usize = 131_071;

/// Maximum length of a request URL, in bytes. RFC 9110, section 4.1, recommends support for at
/// least 8,000, and few servers accept more than this limit.
pub const MAX_URL: usize = 16 * 1024;

/// Why arguments were rejected. The message is written for the model, which can correct them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentRefusal {
    /// The text is not valid JSON, or two parsers could read it differently.
    #[error("{0}")]
    Json(#[from] json::JsonError),
    /// The text is JSON, but not an object.
    #[error("the arguments are a JSON {0}, not an object")]
    NotAnObject(&'static str),
    /// A string or a key contains U+0000, which would terminate a command-line item.
    #[error("a text holds the character U+0000")]
    Nul,
    /// The schema does not declare this key.
    #[error("the key {0} is not declared")]
    Undeclared(String),
    /// The arguments do not match the schema.
    #[error("{0}")]
    Schema(String),
    /// The command would parse the value of this argument as an option.
    #[error("the value of {0:?} begins with \"-\", which the command would read as an option")]
    Option(String),
    /// A command-line item would be longer than [`MAX_ITEM`]; holds the argument and the length in
    /// bytes.
    #[error("with the value of {0:?} an item of the command line has {1} bytes, the system's limit is {limit}", limit = MAX_ITEM)]
    TooLong(String, usize),
    /// The URL's path needs this argument, which is missing.
    #[error("{0:?} is missing, and the address needs it")]
    NoSegment(String),
    /// The value of this argument would change the structure of the URL's path.
    #[error(
        "the value of {0:?} cannot be a part of an address: it is empty, or leads to another folder (\".\", \"..\")"
    )]
    Segment(String),
    /// The URL would be longer than [`MAX_URL`]; holds its length in bytes.
    #[error("the address would have {0} bytes, the limit is {limit}", limit = MAX_URL)]
    LongUrl(usize),
    /// The reason why an earlier stage rejected the call.
    #[error("{0}")]
    Earlier(String),
}

/// Returns the cache key of a call's result: a digest of the tool's definition, the canonical
/// arguments, and `around`. `around` must list everything else that could change the result: the
/// program, its environment, its working folder and its sandbox.
pub fn key(definition: &Hash, arguments: &Arguments, around: &[Vec<u8>]) -> Hash {
    let canonical = arguments.canonical();
    let texts: [&[u8]; 2] = [definition, canonical.as_bytes()];
    digest(texts.into_iter().chain(around.iter().map(Vec::as_slice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Arguments::read(text).unwrap_err().to_string()
    }

    #[test]
    fn the_text_stays_as_the_model_wrote_it() {
        let a = Arguments::read("{ \"b\": 23456789012345678901234,\n \"a\": -0 }").unwrap();
        assert_eq!(a.text(), r#"{"b":23456789012345678901234,"a":-0}"#);
        assert_eq!(a.canonical(), r#"{"a":-0,"b":23456789012345678901234}"#);
        assert_eq!(Arguments::read("").unwrap().text(), "{}");
    }

    #[test]
    fn what_parsers_read_differently_is_refused() {
        assert!(refused(r#"{"path":"a","path":"/etc"}"#).contains("appears twice"));
        assert!(refused(r#"{"a":{"b":1,"\u0062":2}}"#).contains("appears twice"));
        assert!(refused(r#"{"a":1e400}"#).contains("out of range"));
        assert!(refused(r#"{"a":NaN}"#).contains("not valid JSON"));
        assert!(refused(r#"{"a":"\ud83d"}"#).contains("surrogate"));
        assert!(refused("{}{}").contains("not valid JSON"));
        assert!(refused(r#"{"path":"/"#).contains("not valid JSON"));
        assert!(refused(&"[".repeat(100_000)).contains("deeper"));
        assert_eq!(
            refused("[]"),
            "the arguments are a JSON array, not an object"
        );
        assert_eq!(
            refused("null"),
            "the arguments are a JSON null, not an object"
        );
        assert_eq!(
            refused(r#""{}""#),
            "the arguments are a JSON string, not an object"
        );
    }

    #[test]
    fn nul_is_refused_wherever_it_stands() {
        assert_eq!(
            refused(r#"{"a":["x\u0000"]}"#),
            "a text holds the character U+0000"
        );
        assert_eq!(
            refused(r#"{"\u0000":1}"#),
            "a text holds the character U+0000"
        );
        assert!(Arguments::read(r#"{"a":"\\u0000"}"#).is_ok());
    }

    #[test]
    fn names_of_prototypes_are_plain_keys() {
        let a = Arguments::read(r#"{"__proto__":1,"constructor":"x"}"#).unwrap();
        assert_eq!(
            (a.get("__proto__").unwrap().text(), a.summary().as_str()),
            ("1", "__proto__=1, constructor=x")
        );
    }
}

#[cfg(test)]
mod cache_tests {
    use super::*;

    #[test]
    fn whatever_could_change_the_result_changes_the_key() {
        let args = |text| Arguments::read(text).unwrap();
        let around = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect::<Vec<_>>()
        };
        let base = key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &around(&["A", "x"]));
        assert_eq!(
            base,
            key(&[1; 32], &args(r#"{ "b":2, "a":1 }"#), &around(&["A", "x"]))
        );
        assert_ne!(
            base,
            key(&[2; 32], &args(r#"{"a":1,"b":2}"#), &around(&["A", "x"]))
        );
        assert_ne!(
            base,
            key(&[1; 32], &args(r#"{"a":1,"b":3}"#), &around(&["A", "x"]))
        );
        assert_ne!(
            base,
            key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &around(&["A", "y"]))
        );
        assert_ne!(
            base,
            key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &around(&["Ax"]))
        );
    }
}
