//! Texts of a model or of a client as parts of a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is encoded in a value: everything but the unreserved characters (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How often a segment is decoded to see where it leads, the encoding of its values included.
const ROUNDS: usize = 6;

/// A text as a part of a segment, a name or a value in an address: all of it but letters, digits
/// and `-._~` is encoded.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Decodes a part of a URL. Bytes that are not UTF-8 become U+FFFD.
pub fn percent_decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// Whether a segment is empty, or some server could read it as a way to another folder: servers
/// decode a path once or twice, some take `\` for `/`, some drop what follows a `;`, and some read
/// the decoded path again, where `?`, `#` and white space end it.
pub fn leads_elsewhere(segment: &str) -> bool {
    let mut text = segment.to_owned();
    for _ in 0..ROUNDS {
        let is_dots = |part: &str| {
            matches!(
                part.split(|c: char| ";?#".contains(c) || c.is_whitespace() || c.is_control())
                    .next(),
                Some("." | "..")
            )
        };
        if text.is_empty() || text.split(['/', '\\']).any(is_dots) {
            return true;
        }
        let decoded = percent_decode_str(&text).decode_utf8_lossy();
        if decoded == text {
            return false;
        }
        text = decoded.into_owned();
    }
    true // nobody needs a text that is encoded so often
}
