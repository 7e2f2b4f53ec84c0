//! Encodes and checks parts of URLs that come from a model or a client.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The characters that are encoded: all except the unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How many times a segment may be percent-decoded before it is rejected.
const ROUNDS: usize = 6;

/// Percent-encodes a text as part of a path segment, or as a name or value in a query. All
/// characters except letters, digits and `-._~` are encoded.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Percent-decodes a part of a URL. Bytes that are not UTF-8 become U+FFFD.
pub fn percent_decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// Whether a segment is empty, or some server could resolve it to another folder. Servers decode a
/// path once or twice; some treat `\` as `/`, some ignore the text after a `;`, and some parse the
/// decoded path again, so that `?`, `#` or white space ends it.
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
