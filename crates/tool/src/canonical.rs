//! One text for all JSON texts of a value, so that values can be compared and hashed.

use crate::number;
use event::{Raw, push_string};
use sha2::{Digest, Sha256};

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// The canonical text of a checked value: no white space, the members of objects sorted by key,
/// strings escaped in one way. Numbers keep their digits: `1` and `1.0` differ. Keys must not
/// repeat (see [`json::check`]).
pub fn canonical(value: Raw<'_>) -> String {
    text(value, Numbers::Digits)
}

/// As [`canonical`], for what a tool is asked to do: numbers of one value have one text (see
/// [`number::by_value`]), and a member that is `null` counts as missing.
pub fn by_value(value: Raw<'_>) -> String {
    text(value, Numbers::Value)
}

/// What tells two numbers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    /// Their digits. Members that are `null` count.
    Digits,
    /// Their value. Members that are `null` do not count.
    Value,
}

fn text(value: Raw<'_>, numbers: Numbers) -> String {
    let mut out = Vec::with_capacity(value.text().len());
    push(&mut out, value, numbers);
    String::from_utf8(out).unwrap_or_default()
}

/// Values nest at most 128 deep ([`event::MAX_DEPTH`]), so the recursion is bounded.
fn push(out: &mut Vec<u8>, value: Raw<'_>, numbers: Numbers) {
    if value.is_object() {
        let is_left_out = |member: Raw<'_>| numbers == Numbers::Value && member.is_null();
        let mut members: Vec<_> = value
            .entries()
            .filter(|(_, member)| !is_left_out(*member))
            .collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        out.push(b'{');
        for (n, (key, member)) in members.into_iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            push_string(out, &key);
            out.push(b':');
            push(out, member, numbers);
        }
        out.push(b'}');
    } else if value.is_array() {
        out.push(b'[');
        for (n, item) in value.items().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            push(out, item, numbers);
        }
        out.push(b']');
    } else if let Some(text) = value.str() {
        push_string(out, &text);
    } else if numbers == Numbers::Value && number::is_number(value) {
        out.extend_from_slice(number::by_value(value.text()).as_bytes());
    } else {
        out.extend_from_slice(value.text().as_bytes());
    }
}

/// The digest of several texts, each with its length before it, so that no two lists of texts read
/// alike.
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Hash {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

/// The digest of one text alone, as `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// A digest as 64 hexadecimal digits.
pub fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_one_text() {
        let a = Raw::parse(
            r#"{ "b" : [1.0, "\u00e9\/"], "a": {"y":null,"x":23456789012345678901234} }"#,
        )
        .unwrap();
        assert_eq!(
            canonical(a),
            r#"{"a":{"x":23456789012345678901234,"y":null},"b":[1.0,"é/"]}"#
        );
    }

    #[test]
    fn by_value_a_number_is_its_value_and_null_is_missing() {
        let text = |text: &str| by_value(Raw::parse(text).unwrap());
        let want = r#"{"a":[1,null,true],"b":{"c":1000}}"#;
        for same in [
            r#"{"a":[1.0,null,true],"b":{"c":1e3,"d":null}}"#,
            r#"{"x":null,"b":{"c":1000.00},"a":[1e0,null,true],"y":null}"#,
        ] {
            assert_eq!(text(same), want);
        }
        assert_ne!(text(r#"{"a":"1"}"#), text(r#"{"a":1}"#));
        assert_ne!(text(r#"{"a":"1.0"}"#), text(r#"{"a":"1"}"#));
    }

    #[test]
    fn lists_do_not_run_together() {
        assert_ne!(
            digest([b"ab".as_slice(), b"c"]),
            digest([b"a".as_slice(), b"bc"])
        );
        assert_eq!(hex(&digest([b"".as_slice()])).len(), 64);
    }
}
