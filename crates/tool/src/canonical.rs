//! One text for all JSON texts of a value, so that values can be compared and hashed.

use event::{Raw, push_string};
use sha2::{Digest, Sha256};

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// The canonical text of a checked value: no white space, the members of objects sorted by key, strings escaped in one way.
/// Numbers keep their digits: `1` and `1.0` differ. Keys must not repeat (see [`json::check`]).
pub fn canonical(value: Raw<'_>) -> String {
    let mut out = Vec::with_capacity(value.text().len());
    push(&mut out, value);
    String::from_utf8(out).unwrap_or_default()
}

/// Values nest at most 128 deep ([`event::MAX_DEPTH`]), so the recursion is bounded.
fn push(out: &mut Vec<u8>, value: Raw<'_>) {
    if value.is_object() {
        let mut members: Vec<_> = value.entries().collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        out.push(b'{');
        for (n, (key, member)) in members.into_iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            push_string(out, &key);
            out.push(b':');
            push(out, member);
        }
        out.push(b'}');
    } else if value.is_array() {
        out.push(b'[');
        for (n, item) in value.items().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            push(out, item);
        }
        out.push(b']');
    } else if let Some(text) = value.str() {
        push_string(out, &text);
    } else {
        out.extend_from_slice(value.text().as_bytes());
    }
}

/// The digest of several texts, each with its length before it, so that no two lists of texts read alike.
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
        let a = Raw::parse(r#"{ "b" : [1.0, "\u00e9\/"], "a": {"y":null,"x":23456789012345678901234} }"#).unwrap();
        assert_eq!(canonical(a), r#"{"a":{"x":23456789012345678901234,"y":null},"b":[1.0,"é/"]}"#);
    }

    #[test]
    fn lists_do_not_run_together() {
        assert_ne!(digest([b"ab".as_slice(), b"c"]), digest([b"a".as_slice(), b"bc"]));
        assert_eq!(hex(&digest([b"".as_slice()])).len(), 64);
    }
}
