//! The spellings in which a server may repeat a secret that it received: unchanged, escaped for
//! JSON, a URL or HTML (once or several times), with different line breaks, and in base64 as part
//! of a longer text (`Authorization: Basic`).

use crate::environment::is_ordinary;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::ops::Range;

/// Minimum length of a secret in bytes; anything shorter would match ordinary text.
const LEAST: usize = 6;
/// Minimum length, in characters, of the part of a secret's base64 that does not depend on the
/// bytes around the secret.
const LEAST_ENCODED: usize = 8;
/// How many base64 characters on each side of that part count as part of the secret.
const AROUND: usize = 256;
/// The maximum number of backslashes before an escaped character: JSON in JSON in JSON.
const BACKSLASHES: usize = 7;

/// Minimum length, in bytes, of a secret's line that is searched for without the other lines.
const LEAST_LINE: usize = 16;

/// The maximum number of bytes that stand for one byte of a secret: seven backslashes and `u002f`.
const LONGEST_ESCAPE: usize = 12;
/// Minimum length of the beginning of a secret's base64: fewer characters encode at most two bytes,
/// and many ordinary texts end with them.
const LEAST_BEGUN: usize = 4;

/// Secrets prepared for searching.
#[derive(Clone, Default)]
pub(super) struct SecretSpellings {
    /// The secrets, and the long lines of secrets with several lines. Each run of line breaks is
    /// stored as one line feed.
    plain: Vec<Vec<u8>>,
    /// The parts of the secrets' base64 that do not depend on the bytes around the secret.
    encoded: Vec<Vec<u8>>,
}

impl SecretSpellings {
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> SecretSpellings {
        let mut whole: Vec<String> = secrets.into_iter().collect();
        let lines: Vec<String> = whole
            .iter()
            .flat_map(|secret| long_lines(secret))
            .map(str::to_owned)
            .collect();
        whole.extend(lines);
        let mut plain: Vec<Vec<u8>> = whole
            .iter()
            .map(|secret| joined(secret))
            .filter(|s| s.len() >= LEAST)
            .collect();
        plain.sort();
        plain.dedup();
        let encoded = whole
            .iter()
            .filter(|s| s.len() >= LEAST)
            .flat_map(|secret| inside_base64(secret.as_bytes()));
        let mut encoded: Vec<Vec<u8>> = encoded.collect();
        encoded.sort();
        encoded.dedup();
        SecretSpellings { plain, encoded }
    }

    pub(super) fn count(&self) -> usize {
        self.plain.len()
    }

    /// Returns how many bytes at the end of `bytes` are the beginning of a secret, unchanged,
    /// escaped or in base64.
    pub(super) fn begun(&self, bytes: &[u8]) -> usize {
        let begun = |secret: &Vec<u8>, least: usize| {
            let start = bytes.len().saturating_sub(secret.len() * LONGEST_ESCAPE);
            let may_begin = |at: &usize| bytes[*at] == secret[0] || b"%\\&".contains(&bytes[*at]);
            let mut starts = (start..(bytes.len() + 1).saturating_sub(least)).filter(may_begin);
            starts
                .find(|at| begins(&bytes[*at..], secret))
                .map(|at| bytes.len() - at)
        };
        let plain = self.plain.iter().filter_map(|secret| begun(secret, 1));
        plain
            .chain(
                self.encoded
                    .iter()
                    .filter_map(|part| begun(part, LEAST_BEGUN)),
            )
            .max()
            .unwrap_or(0)
    }

    /// Returns the ranges of `bytes` that contain a secret.
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
            found.extend(
                self.plain
                    .iter()
                    .filter_map(|secret| Some(at..matched(bytes, at, secret)?)),
            );
            if self
                .encoded
                .iter()
                .any(|part| matched(bytes, at, part).is_some())
            {
                found.push(around(bytes, at));
            }
        }
        found
    }
}

/// Returns the long lines of a secret with several lines, such as a key in PEM or the JSON of a
/// service account, because a program may print these lines alone. A line ends at a line break, or
/// at a `\n` that stands for a line break in a JSON string or a variable. The first and last lines
/// of PEM and [ordinary](is_ordinary) lines are not secret.
fn long_lines(secret: &str) -> impl Iterator<Item = &str> {
    let lines = || {
        secret
            .split(['\n', '\r'])
            .flat_map(|line| line.split("\\n"))
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let has_several = lines().nth(1).is_some();
    let is_secret = move |line: &&str| {
        let is_mark = line.contains("-----BEGIN ") || line.contains("-----END ");
        has_several && line.len() >= LEAST_LINE && !is_mark && !is_ordinary(line)
    };
    lines().filter(is_secret)
}

/// Returns a secret with each run of line breaks replaced by one line feed, and without line breaks
/// at both ends.
fn joined(secret: &str) -> Vec<u8> {
    let lines: Vec<&str> = secret
        .split(['\n', '\r'])
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("\n").into_bytes()
}

/// Returns the base64 characters that encode only bytes of `secret`, for each of the three offsets
/// in a base64 group at which the secret may begin.
fn inside_base64(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret);
        // The first character, or the first two or three, contain bits of the preceding bytes; the
        // last character may contain bits of the following bytes.
        let from = [0, 2, 3][before];
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&bytes).into_bytes();
            let to = bytes.len() * 8 / 6;
            parts.extend(
                text.get(from..to)
                    .filter(|part| part.len() >= LEAST_ENCODED)
                    .map(<[u8]>::to_vec),
            );
        }
    }
    parts
}

/// Returns the range of the base64 text around `at`, limited to [`AROUND`] characters.
fn around(bytes: &[u8], at: usize) -> Range<usize> {
    let belongs = |b: &&u8| {
        b.is_ascii_alphanumeric() || matches!(**b, b'+' | b'/' | b'-' | b'_' | b'=' | b'%' | b'\\')
    };
    let before = bytes[..at]
        .iter()
        .rev()
        .take(AROUND)
        .take_while(belongs)
        .count();
    let after = bytes[at..].iter().take(AROUND).take_while(belongs).count();
    at - before..at + after
}

/// Whether the whole `text` is the beginning of `secret`, unchanged or escaped, with any line
/// breaks in place of the secret's line breaks.
fn begins(text: &[u8], secret: &[u8]) -> bool {
    let mut places = SpellingPlaces::of(0);
    for want in secret {
        let is_end = |at: usize| at == text.len() || is_unfinished(&text[at..], *want);
        if places.any(is_end) {
            return true;
        }
        places.step(|at, next| readings(&text[at..], *want, |length| next(at + length)));
        if places.is_empty() {
            return false;
        }
    }
    false
}

/// Whether the whole `rest` is the beginning of an escape of `want`. Letters and digits are seldom
/// escaped, so they never match.
fn is_unfinished(rest: &[u8], want: u8) -> bool {
    if want.is_ascii_alphanumeric() || rest.len() > LONGEST_ESCAPE || !b"%\\&".contains(&rest[0]) {
        return false;
    }
    let rest = rest.to_ascii_lowercase();
    let after =
        |start: &str, escape: String| format!("{start}{escape}").into_bytes().starts_with(&rest);
    let backslashes = rest
        .iter()
        .take(BACKSLASHES)
        .take_while(|b| **b == b'\\')
        .count();
    after("%", format!("{want:02x}"))
        || after("%25", format!("{want:02x}"))
        || after(&"\\".repeat(backslashes), format!("u{want:04x}")) && backslashes > 0
        || after("&#", format!("{want};"))
        || after("&#x", format!("{want:x};"))
        || [
            (b'&', "&amp;amp;"),
            (b'"', "&quot;"),
            (b'<', "&lt;"),
            (b'>', "&gt;"),
            (b'\'', "&apos;"),
        ]
        .iter()
        .any(|(byte, name)| *byte == want && name.as_bytes().starts_with(&rest))
}

/// Returns the end of the `secret` that begins at `at` in `bytes`, or `None` if there is no secret
/// there. If the text can be read in several ways, the last end is returned.
fn matched(bytes: &[u8], at: usize, secret: &[u8]) -> Option<usize> {
    let mut places = SpellingPlaces::of(at);
    for (position, want) in secret.iter().enumerate() {
        places.step(|at, next| {
            let breaks = if position > 0 && *want != b'\n' {
                bytes[at..]
                    .iter()
                    .take_while(|b| matches!(b, b'\n' | b'\r'))
                    .count()
            } else {
                0
            };
            readings(&bytes[at + breaks..], *want, |length| {
                next(at + breaks + length)
            });
        });
        if places.is_empty() {
            return None;
        }
    }
    places.last()
}

/// The offsets in a text up to which the beginning of a secret may have been read. There is usually
/// one offset, but a backslash of the secret may be written as one, two, four or eight backslashes.
struct SpellingPlaces {
    first: Option<usize>,
    others: Vec<usize>,
}

impl SpellingPlaces {
    fn of(at: usize) -> SpellingPlaces {
        SpellingPlaces {
            first: Some(at),
            others: vec![],
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn any(&self, holds: impl Fn(usize) -> bool) -> bool {
        self.first.is_some_and(&holds) || self.others.iter().any(|at| holds(*at))
    }

    fn last(&self) -> Option<usize> {
        self.others.iter().copied().chain(self.first).max()
    }

    /// Replaces each offset by the offsets that `read` finds from there.
    fn step(&mut self, read: impl Fn(usize, &mut dyn FnMut(usize))) {
        let others = std::mem::take(&mut self.others);
        let mut next = SpellingPlaces {
            first: None,
            others: vec![],
        };
        for at in self.first.into_iter().chain(others) {
            read(at, &mut |at| match next.first {
                None => next.first = Some(at),
                Some(first) if first == at || next.others.contains(&at) => {}
                Some(_) => next.others.push(at),
            });
        }
        *self = next;
    }
}

/// Calls `found` with the length of each spelling of `want` at the beginning of `rest`: unchanged,
/// and escaped once or several times.
fn readings(rest: &[u8], want: u8, mut found: impl FnMut(usize)) {
    if want == b'\n' {
        return line_breaks(rest).into_iter().for_each(found);
    }
    if rest.first() == Some(&want) {
        found(1);
        let again = match want {
            b'%' => &b"25"[..],
            b'&' => b"amp;",
            b'\\' => return backslashes(rest, found),
            _ => return,
        };
        let mut at = 1;
        while rest[at..].starts_with(again) {
            at += again.len();
            found(at);
        }
    }
    escaped(rest, want).into_iter().for_each(found);
}

/// Calls `found` with the lengths of a backslash that was escaped for JSON once or several times:
/// two, four or eight backslashes, or `\u005c`.
fn backslashes(rest: &[u8], mut found: impl FnMut(usize)) {
    let run = rest
        .iter()
        .take(BACKSLASHES + 1)
        .take_while(|b| **b == b'\\')
        .count();
    [2, 4, 8]
        .into_iter()
        .filter(|length| *length <= run)
        .for_each(&mut found);
    for before in 1..=run {
        code(rest, before, b'\\').into_iter().for_each(&mut found);
    }
}

/// Returns the length of the line breaks at the beginning of `rest`, unchanged or escaped (`\r\n`,
/// `%0A`, `&#10;`), or `None` if there are none.
fn line_breaks(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(length) = line_break(&rest[at..]) {
        at += length;
    }
    (at > 0).then_some(at)
}

fn line_break(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'\n' | b'\r' => Some(1),
        _ => escaped(rest, b'\n').or_else(|| escaped(rest, b'\r')),
    }
}

/// Returns the length of the escape at the beginning of `rest`, or `None` if it does not stand for
/// `want`.
fn escaped(rest: &[u8], want: u8) -> Option<usize> {
    match rest.first()? {
        b'%' => percent(rest, want),
        b'\\' => backslash(rest, want),
        b'&' => entity(rest, want),
        b'+' if want == b' ' => Some(1),
        _ => None,
    }
}

/// Parses `%2F`, `%252f`.
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

/// Parses `\/`, `\"`, `\n`, `\u002f`, `\x2f`, with any number of additional backslashes before
/// them.
fn backslash(rest: &[u8], want: u8) -> Option<usize> {
    let run = rest
        .iter()
        .take(BACKSLASHES)
        .take_while(|b| **b == b'\\')
        .count();
    match rest.get(run)? {
        b'u' | b'x' => code(rest, run, want),
        b'n' if want == b'\n' => Some(run + 1),
        b'r' if want == b'\r' => Some(run + 1),
        b't' if want == b'\t' => Some(run + 1),
        other => (*other == want && !want.is_ascii_alphanumeric()).then_some(run + 1),
    }
}

/// Returns the length of `u002f` or `x2f` after this many backslashes, or `None` if the number is
/// not the code of `want`.
fn code(rest: &[u8], backslashes: usize, want: u8) -> Option<usize> {
    let digits = match rest.get(backslashes)? {
        b'u' => 4,
        b'x' => 2,
        _ => return None,
    };
    let end = backslashes + 1 + digits;
    (hex(rest.get(backslashes + 1..end)?)? == u32::from(want)).then_some(end)
}

/// Parses `&amp;`, `&quot;`, `&#39;`, `&#x2F;`, `&amp;#39;`.
fn entity(rest: &[u8], want: u8) -> Option<usize> {
    let mut at = 1;
    while rest[at..].starts_with(b"amp;") {
        at += 4;
        if want == b'&' {
            return Some(at);
        }
    }
    for (name, byte) in [
        (&b"quot;"[..], b'"'),
        (b"apos;", b'\''),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
    ] {
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
    fn a_secret_with_what_begins_an_escape_is_found_however_often_it_is_escaped() {
        let json = |text: &str| {
            let json = serde_json::Value::from(text).to_string();
            json[1..json.len() - 1].to_owned()
        };
        for secret in [
            r"k\7-Qz",
            r"\k7-Qz\",
            r"k7\\-Qz",
            r"k7\n-Qz",
            r#"k7\"-Qz"#,
            r"k\u0041-Qz",
            r"k%7-Q%25z",
            "k&7-Q&amp;z%",
        ] {
            let once = json(secret);
            let twice = json(&once);
            let url: String = secret.bytes().map(|b| format!("%{b:02X}")).collect();
            for text in [
                secret,
                &once,
                &twice,
                &json(&twice),
                &secret.replace('\\', "\\u005c"),
                &json(&secret.replace('\\', "\\u005C")),
                &secret.replace('\\', "%5c"),
                &url,
                &url.replace('%', "%25"),
                &secret.replace('&', "&amp;").replace('\\', "&#92;"),
                &secret.replace('&', "&amp;amp;"),
            ] {
                assert_eq!(
                    left(secret, &format!("say {text}!")),
                    "say !",
                    "{secret} in {text}"
                );
                let spellings = SecretSpellings::new([secret.to_owned()]);
                for end in 1..text.len() {
                    let begun = spellings.begun(&text.as_bytes()[..end]);
                    // Escapes of letters and digits are rare and are not held back.
                    assert!(
                        begun == end
                            || text.starts_with("%6")
                            || text.starts_with("%256")
                            || text.starts_with("%5C%6")
                            || text.starts_with("%255C%256"),
                        "{begun} of {}",
                        &text[..end]
                    );
                }
            }
        }
    }

    #[test]
    fn a_secret_of_several_lines_is_found_however_its_lines_end() {
        let secret = "line1-abcd99\nline2\tefgh77\n\nend";
        for text in [
            secret,
            "line1-abcd99\r\nline2\tefgh77\r\n\r\nend",
            r"line1-abcd99\nline2\tefgh77\n\nend",
            r"line1-abcd99\r\nline2\u0009efgh77\r\n\r\nend",
            r"line1-abcd99\\nline2\\tefgh77\\n\\nend",
            "line1-abcd99%0Aline2%09efgh77%0D%0A%0D%0Aend",
            "line1-abcd99&#10;line2&#9;efgh77&#xA;&#xA;end",
        ] {
            for secret in [
                secret,
                &secret.replace('\n', "\r\n"),
                &format!("{secret}\n"),
            ] {
                assert_eq!(left(secret, &format!("say {text}!")), "say !", "{text}");
            }
        }
        let other = "line1-abcd99line2\tefgh77\nend";
        assert_eq!(left(secret, other), other);
        let encoded = STANDARD_NO_PAD.encode(secret);
        assert_eq!(left(secret, &format!("say {encoded}!")), "say !");
    }

    #[test]
    fn a_long_line_of_a_secret_is_one_and_the_marks_of_pem_are_not() {
        let key = "MIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\nAQC7";
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        let json = serde_json::json!({"type": "service_account", "private_key": pem});
        let pretty = serde_json::to_string_pretty(&json).unwrap_or_default();
        for secret in [
            pem.clone(),
            pem.replace('\n', "\\n"),
            json.to_string(),
            pretty,
        ] {
            for line in key.split('\n').filter(|line| line.len() >= LEAST_LINE) {
                assert_eq!(
                    left(&secret, &format!("say {line}\n")),
                    "say \n",
                    "{secret}"
                );
            }
            let mark = "-----BEGIN PRIVATE KEY-----\n";
            assert_eq!(left(&secret, mark), mark);
        }
        let words = "abcdefghijklmnopqr\n1234567890123456789\n/usr/lib/some/where\nk3y";
        for line in words.split('\n') {
            assert_eq!(left(words, line), line);
        }
    }

    #[test]
    fn the_beginning_of_a_secret_of_several_lines_is_one_with_any_line_break() {
        let spellings = SecretSpellings::new(["abc-1\ndef-2\nghi".to_owned()]);
        for begun in [
            "a",
            "abc-1",
            "abc-1\n",
            "abc-1\r",
            "abc-1\r\nd",
            "abc-1\r\n\r\ndef-2\r\n\r\ngh",
        ] {
            assert_eq!(
                spellings.begun(format!("x {begun}").as_bytes()),
                begun.len(),
                "{begun:?}"
            );
        }
        assert_eq!(spellings.begun(b"abc-1\r\ndef-2\r\nghi"), 0);
    }

    #[test]
    fn the_beginning_of_an_escaped_or_encoded_secret_is_one() {
        let secret = "canary/7Q=z-and-more";
        let spellings = SecretSpellings::new([secret.to_owned()]);
        for begun in [
            "canary%",
            "canary%2",
            "canary%2f7Q%3",
            "canary\\",
            "canary\\/7",
            "canary\\\\u002",
            "canary&#x2F;7Q&#6",
        ] {
            assert_eq!(
                spellings.begun(format!("x {begun}").as_bytes()),
                begun.len(),
                "{begun}"
            );
        }
        let encoded = STANDARD_NO_PAD.encode(format!("me:{secret}"));
        for length in 8..20 {
            assert_eq!(
                spellings.begun(&encoded.as_bytes()[..length]),
                length - 4,
                "{encoded}"
            );
        }
        for settled in ["50%", "a\\", "x &", "canary%4"] {
            assert_eq!(spellings.begun(settled.as_bytes()), 0, "{settled}");
        }
    }

    #[test]
    fn a_secret_is_found_in_base64_whatever_surrounds_it() {
        let secret = "canary-7Q=z";
        for before in ["", "u:", "me:", "user:", "someone@example.com:"] {
            for after in ["", "x", "xy", "xyz"] {
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let text = engine.encode(format!("{before}{secret}{after}"));
                    assert_eq!(
                        left(secret, &format!("Basic {text}== no")),
                        "Basic  no",
                        "{before}{after}"
                    );
                }
            }
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "canary",
            "canary-7Q",
            "%",
            "%2",
            "\\",
            "\\u00",
            "&",
            "&#",
            "&amp",
            "&#x;",
            "k&#99999999999;",
            "",
        ] {
            assert_eq!(left("canary-7Q=z", text), text);
        }
        assert_eq!(left("short", "short"), "short");
    }
}
