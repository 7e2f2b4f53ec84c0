//! Values of arguments: their members, how they are shown, and the paths that name them.

use super::text;
use event::{Raw, quoted};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Returns the members of an object by name. The last of several equal keys counts, as everywhere
/// in the protocol.
pub(super) fn members(object: Raw<'_>) -> BTreeMap<Cow<'_, str>, Raw<'_>> {
    object.entries().collect()
}

/// Appends a key: after a dot if it is a plain word, else in brackets and quotes.
pub(super) fn push_key(path: &mut String, key: &str) {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if key.is_empty() || !key.chars().all(is_plain) {
        path.push_str(&format!("[{}]", quoted(key)));
    } else {
        path.push_str(if path.is_empty() { "" } else { "." });
        path.push_str(key);
    }
}

/// Formats the start of a value on one line, with sorted keys and hidden characters escaped.
pub(super) fn shown(value: Raw<'_>) -> String {
    let mut out = String::new();
    write(value, &mut out);
    text::json(&out)
}

fn write(value: Raw<'_>, out: &mut String) {
    if value.is_object() {
        out.push('{');
        for (at, (key, value)) in members(value).into_iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            out.push_str(&quoted(&key));
            out.push(':');
            write(value, out);
        }
        out.push('}');
    } else if value.is_array() {
        out.push('[');
        for (at, item) in value.items().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            write(item, out);
        }
        out.push(']');
    } else {
        match value.str() {
            Some(text) => out.push_str(&quoted(&text)),
            None => out.push_str(value.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording::RecordedArguments;
    use super::*;

    #[test]
    fn arguments_are_equal_by_their_meaning() {
        let spaced = " { \"b\" : [ true , null ] , \"a\" : 1.0 } ";
        for (a, b, are_equal) in [
            (r#"{"a":1,"b":[true,null]}"#, spaced, true),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, true),
            (r#""\u00e9\/""#, "\"é/\"", true),
            ("100", "1e2", true),
            ("-0", "0.000e9", true),
            ("0.10", "1e-1", true),
            ("", "{}", true),
            ("12345678901234567890", "12345678901234567891", false),
            ("1", "-1", false),
            ("1", "10", false),
            ("1", "\"1\"", false),
            ("1e99999999999999999999", "1e99999999999999999998", false),
            ("[1,2]", "[2,1]", false),
            ("{}", "[]", false),
            ("null", "false", false),
            ("{\"a\":", "{\"a\":", true),
            ("{\"a\":", "{\"a\"", false),
        ] {
            assert_eq!(
                RecordedArguments::of(a) == RecordedArguments::of(b),
                are_equal,
                "{a} {b}"
            );
        }
        let value = Raw::parse("{\"b\":1.50,\"a\": \"\\u0007\"}").unwrap();
        assert_eq!(shown(value), "{\"a\":\"\\u0007\",\"b\":1.50}");
    }
}
