//! The spellings in which a server may repeat a secret that it was sent: unchanged, escaped for JSON, a URL or HTML (once or several times),
//! with line breaks in it, and in base64 as part of something longer (`Authorization: Basic`).

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::ops::Range;

/// The least length of a secret, in bytes: a shorter one would be found in any text.
const LEAST: usize = 6;
/// The least length of the part of a secret's base64 that does not depend on what surrounds the secret.
const LEAST_ENCODED: usize = 8;
/// How much base64 on each side of that part counts as belonging to it, in bytes.
const AROUND: usize = 256;
/// The most backslashes before an escaped character: JSON in JSON in JSON.
const BACKSLASHES: usize = 7;

/// Secrets, ready to be looked for.
#[derive(Clone, Default)]
pub(super) struct SecretSpellings {
    plain: Vec<Vec<u8>>,
    /// The parts of their base64 that do not depend on what surrounds them.
    encoded: Vec<Vec<u8>>,
}

impl SecretSpellings {
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> SecretSpellings {
        let mut plain: Vec<Vec<u8>> =
            secrets.into_iter().filter(|s| s.len() >= LEAST).map(String::into_bytes).collect();
        plain.sort();
        plain.dedup();
        let mut encoded: Vec<Vec<u8>> = plain.iter().flat_map(|secret| inside_base64(secret)).collect();
        encoded.sort();
        encoded.dedup();
        SecretSpellings { plain, encoded }
    }

    pub(super) fn count(&self) -> usize {
        self.plain.len()
    }

    /// The number of bytes at the end of `bytes` that are the beginning of a secret.
    pub(super) fn begun(&self, bytes: &[u8]) -> usize {
        let begun = |secret: &Vec<u8>| (1..secret.len()).rev().find(|n| bytes.ends_with(&secret[..*n]));
        self.plain.iter().filter_map(begun).max().unwrap_or(0)
    }

    /// The ranges of `bytes` that hold one of them.
    pub(super) fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut starts = [false; 256];
        for secret in self.plain.iter().chain(&self.encoded) {
            starts[usize::from(secret[0])] = true;
        }
        if self.plain.is_empty() {
            return vec![];
        }
        for escape in b"%\\&" {
            starts[usize::from(*escape)] = true;
        }
        let mut found = vec![];
        for at in (0..bytes.len()).filter(|at| starts[usize::from(bytes[*at])]) {
            found.extend(self.plain.iter().filter_map(|secret| Some(at..matched(bytes, at, secret)?)));
            if self.encoded.iter().any(|part| matched(bytes, at, part).is_some()) {
                found.push(around(bytes, at));
            }
        }
        found
    }
}

/// The part of the base64 of anything that holds `secret`, for each of the three places in a group where it may begin.
fn inside_base64(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret);
        // The first character, or the first two or three, hold bits of the bytes before; the last may hold bits of those that follow.
        let from = [0, 2, 3][before];
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&bytes).into_bytes();
            let to = bytes.len() * 8 / 6;
            parts.extend(text.get(from..to).filter(|part| part.len() >= LEAST_ENCODED).map(<[u8]>::to_vec));
        }
    }
    parts
}

/// The run of base64 around `at`, as far as [`AROUND`] allows.
fn around(bytes: &[u8], at: usize) -> Range<usize> {
    let belongs = |b: &&u8| b.is_ascii_alphanumeric() || matches!(**b, b'+' | b'/' | b'-' | b'_' | b'=' | b'%' | b'\\');
    let before = bytes[..at].iter().rev().take(AROUND).take_while(belongs).count();
    let after = bytes[at..].iter().take(AROUND).take_while(belongs).count();
    at - before..at + after
}

/// The end of `secret` in `bytes`, if it begins at `at`. A secret that contains `%`, `\` or `&` is read in both ways: as it is, and
/// escaped.
fn matched(bytes: &[u8], at: usize, secret: &[u8]) -> Option<usize> {
    let ambiguous = || secret.iter().any(|b| matches!(b, b'%' | b'\\' | b'&'));
    follow(bytes, at, secret, false).or_else(|| ambiguous().then(|| follow(bytes, at, secret, true))?)
}

fn follow(bytes: &[u8], mut at: usize, secret: &[u8], escapes_first: bool) -> Option<usize> {
    for (position, want) in secret.iter().enumerate() {
        if position > 0 {
            at += bytes[at..].iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
        }
        let rest = &bytes[at..];
        let itself = (rest.first() == Some(want)).then_some(1);
        at += if escapes_first { escaped(rest, *want).or(itself)? } else { itself.or_else(|| escaped(rest, *want))? };
    }
    Some(at)
}

/// The length of the escape that `rest` begins with, if it is one of `want`.
fn escaped(rest: &[u8], want: u8) -> Option<usize> {
    match rest.first()? {
        b'%' => percent(rest, want),
        b'\\' => backslash(rest, want),
        b'&' => entity(rest, want),
        b'+' if want == b' ' => Some(1),
        _ => None,
    }
}

/// `%2F`, `%252f`
fn percent(rest: &[u8], want: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match hex(rest.get(at..at + 2)?)? {
            code if code == u32::from(want) => return Some(at + 2),
            0x25 => at += 2,
            _ => return None,
        }
    }
}

/// `\/`, `\"`, `\\`, `\u002f`, `\x2f`, with any number of further backslashes before them.
fn backslash(rest: &[u8], want: u8) -> Option<usize> {
    let run = rest.iter().take(BACKSLASHES).take_while(|b| **b == b'\\').count();
    if want == b'\\' {
        return (run > 1).then_some(2);
    }
    let digits = match rest.get(run)? {
        b'u' => 4,
        b'x' => 2,
        other => return (*other == want && !want.is_ascii_alphanumeric()).then_some(run + 1),
    };
    (hex(rest.get(run + 1..run + 1 + digits)?)? == u32::from(want)).then_some(run + 1 + digits)
}

/// `&amp;`, `&quot;`, `&#39;`, `&#x2F;`, `&amp;#39;`
fn entity(rest: &[u8], want: u8) -> Option<usize> {
    let mut at = 1;
    while rest[at..].starts_with(b"amp;") {
        at += 4;
        if want == b'&' {
            return Some(at);
        }
    }
    for (name, byte) in [(&b"quot;"[..], b'"'), (b"apos;", b'\''), (b"lt;", b'<'), (b"gt;", b'>')] {
        if byte == want && rest[at..].starts_with(name) {
            return Some(at + name.len());
        }
    }
    let number = rest[at..].strip_prefix(b"#")?;
    let end = number.iter().take(8).position(|b| *b == b';')?;
    let code = match number[..end].split_first()? {
        (b'x' | b'X', digits) => hex(digits)?,
        _ => std::str::from_utf8(&number[..end]).ok()?.parse().ok()?,
    };
    (code == u32::from(want)).then_some(at + 1 + end + 1)
}

fn hex(digits: &[u8]) -> Option<u32> {
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(secret: &str, text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        for range in SecretSpellings::new([secret.to_owned()]).find(text.as_bytes()) {
            out += &text[at..range.start.max(at)];
            at = at.max(range.end);
        }
        out + &text[at..]
    }

    #[test]
    fn a_secret_is_found_however_it_is_escaped() {
        let secret = r#"k/7+&"q=\z-%9"#;
        let json = serde_json::Value::from(secret).to_string();
        let inner = &json[1..json.len() - 1];
        for text in [
            secret,
            inner,
            &inner.replace('/', "\\/"),
            &inner.replace('-', "\\u002D").replace('/', "\\u002f"),
            r#"k/7+\u0026\"q=\\z-%9"#,
            "k%2F7%2B%26%22q%3D%5Cz-%259",
            "k%2f7%2b%26%22q%3d%5cz%2d%259",
            "k/7+&amp;&quot;q=\\z-%9",
            "k&#x2F;7+&#38;&#34;q&#61;\\z-%9",
            "k/7+\n&\"q=\r\n\\z-%9",
        ] {
            assert_eq!(left(secret, &format!("say {text}!")), "say !", "{text}");
        }
        assert_eq!(left("k/7+&q=z", "k%252F7%25252B%2526q%253dz"), "");
        assert_eq!(left("a/b-\"c\"d", r#"x a\\/b\\u002d\\\"c\\\"d x"#), "x  x");
    }

    #[test]
    fn a_secret_is_found_in_base64_whatever_surrounds_it() {
        let secret = "canary-7Q=z";
        for before in ["", "u:", "me:", "user:", "someone@example.com:"] {
            for after in ["", "x", "xy", "xyz"] {
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let text = engine.encode(format!("{before}{secret}{after}"));
                    assert_eq!(left(secret, &format!("Basic {text}== no")), "Basic  no", "{before}{after}");
                }
            }
        }
    }

    #[test]
    fn other_text_stays() {
        for text in ["canary", "canary-7Q", "%", "%2", "\\", "\\u00", "&", "&#", "&amp", "&#x;", "k&#99999999999;", ""]
        {
            assert_eq!(left("canary-7Q=z", text), text);
        }
        assert_eq!(left("short", "short"), "short");
    }
}
