//! The formats of well-known kinds of keys.

use std::ops::Range;

/// Returns the kind, such as `sk-…`, of the first text in `bytes` that has the format of a
/// credential.
pub fn credential(bytes: &[u8]) -> Option<&'static str> {
    shapes(bytes).next().map(|(kind, _)| kind)
}

/// Returns the kind and the range of each text that has the format of a credential.
pub(super) fn shapes(bytes: &[u8]) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    // Two bytes at a time: those of a prefix are the first and second ones of a pair, or the second
    // and third ones.
    let pairs = bytes.as_chunks().0.iter().enumerate();
    let begun = pairs.filter(|(_, [a, b])| PAIRS[0][*a as usize] & PAIRS[1][*b as usize] != 0);
    let places = begun.flat_map(|(pair, _)| [(2 * pair).checked_sub(1), Some(2 * pair)]);
    places.flatten().filter_map(move |at| shape_at(bytes, at))
}

/// Returns the kind and the range of the text at `at` that has the format of a credential.
fn shape_at(bytes: &[u8], at: usize) -> Option<(&'static str, Range<usize>)> {
    if STARTS[0][bytes[at] as usize] == 0 || !begins_word(&bytes[..at]) {
        return None;
    }
    SHAPES.iter().find_map(|shape| {
        let rest = bytes[at..].strip_prefix(shape.prefix.as_bytes())?;
        let length = rest.iter().take_while(|b| shape.has(**b)).count();
        let holds = length >= shape.least && random(&rest[..length]);
        holds.then(|| (kind(shape), at..at + shape.prefix.len() + length))
    })
}

/// Returns how many bytes at the end of `bytes` may be the beginning of a credential.
pub(super) fn begun_shape(bytes: &[u8]) -> usize {
    let begins = |text: &[u8]| {
        SHAPES
            .iter()
            .any(|shape| match text.strip_prefix(shape.prefix.as_bytes()) {
                Some(rest) => rest.iter().all(|b| shape.has(*b)),
                None => shape.prefix.as_bytes().starts_with(text),
            })
    };
    let start = bytes.len().saturating_sub(LONGEST);
    let mut at = start..bytes.len();
    let may_begin = |at: usize| STARTS[0][bytes[at] as usize] != 0 && begins_word(&bytes[..at]);
    at.find(|at| may_begin(*at) && begins(&bytes[*at..]))
        .map_or(0, |at| bytes.len() - at)
}

/// The length of the longest key that [`begun_shape`] looks for, in bytes; real keys have a few
/// hundred.
const LONGEST: usize = 2048;

/// The format of a well-known kind of key.
struct KeyShape {
    prefix: &'static str,
    /// The minimum number of bytes after the prefix.
    least: usize,
    /// Whether a key may contain `.`, `~`, `+`, `/` and `=`, besides letters, digits, `-` and `_`.
    wide: bool,
}

impl KeyShape {
    /// Whether this byte may occur after the prefix.
    fn has(&self, b: u8) -> bool {
        let is_wide = self.wide && matches!(b, b'.' | b'~' | b'+' | b'/' | b'=');
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || is_wide
    }
}

const fn shape(prefix: &'static str, least: usize) -> KeyShape {
    KeyShape {
        prefix,
        least,
        wide: false,
    }
}

/// Prefixes that providers chose to make leaked keys detectable, such as GitHub's
/// (<https://github.blog/changelog/2021-03-31-authentication-token-format-updates-are-generally-available/>),
/// and AWS's prefixes of access keys
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>).
const SHAPES: [KeyShape; 24] = [
    shape("sk-", 16),   // OpenAI, Anthropic, DeepSeek, OpenRouter, …
    shape("AIza", 30),  // Google
    shape("ya29.", 20), // Google OAuth
    shape("ghp_", 30),  // GitHub
    shape("gho_", 30),
    shape("ghu_", 30),
    shape("ghs_", 30),
    shape("ghr_", 30),
    shape("github_pat_", 22),
    shape("glpat-", 20), // GitLab
    shape("xoxb-", 10),  // Slack
    shape("xoxp-", 10),
    shape("xoxa-", 10),
    shape("xoxs-", 10),
    shape("gsk_", 20), // Groq
    shape("csk-", 20), // Cerebras
    shape("xai-", 20),
    shape("pplx-", 20), // Perplexity
    shape("nvapi-", 20),
    shape("hf_", 30),     // Hugging Face
    shape("tgp_v1_", 20), // Together
    shape("AKIA", 16),    // AWS
    KeyShape {
        prefix: "Bearer ",
        least: 16,
        wide: true,
    },
    KeyShape {
        prefix: "bearer ",
        least: 16,
        wide: true,
    },
];

/// The length of the shortest prefix.
const START: usize = 3;

/// For each of the first bytes of a prefix: the shapes that have this byte there, one bit each.
static STARTS: [[u32; 256]; START] = {
    let mut t = [[0; 256]; START];
    let mut i = 0;
    while i < SHAPES.len() {
        let mut at = 0;
        while at < START {
            t[at][SHAPES[i].prefix.as_bytes()[at] as usize] |= 1 << i;
            at += 1;
        }
        i += 1;
    }
    t
};

/// For both bytes of a pair: the shapes that have this byte as the first or second one of a pair at
/// their start, and, shifted, as the first or second one of a pair after their first byte. This is
/// looked up for every byte of a tape.
static PAIRS: [[u64; 256]; 2] = {
    let mut t = [[0; 256]; 2];
    let mut b = 0;
    while b < 256 {
        t[0][b] = STARTS[0][b] as u64 | (STARTS[1][b] as u64) << 32;
        t[1][b] = STARTS[1][b] as u64 | (STARTS[2][b] as u64) << 32;
        b += 1;
    }
    t
};

fn kind(shape: &KeyShape) -> &'static str {
    match shape.prefix {
        "sk-" => "sk-…",
        "Bearer " | "bearer " => "Bearer …",
        other => other,
    }
}

/// Whether a word may begin after `before`. A JSON escape (`\n`, `\u003c`) is not part of the word
/// after it.
fn begins_word(before: &[u8]) -> bool {
    let Some(last) = before.last() else {
        return true;
    };
    if !(last.is_ascii_alphanumeric() || matches!(last, b'-' | b'_')) {
        return true;
    }
    matches!(before, [.., b'\\', b'b' | b'f' | b'n' | b'r' | b't'])
        || matches!(before, [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|h| h.is_ascii_hexdigit()))
}

/// Whether the text looks random rather than written by a person: it has a word of 8 characters
/// with a digit, or a word of 20 characters.
fn random(tail: &[u8]) -> bool {
    let digit = |word: &[u8]| word.iter().any(u8::is_ascii_digit);
    tail.split(|b| !b.is_ascii_alphanumeric())
        .any(|word| word.len() >= 20 || (word.len() >= 8 && digit(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_is_found_between_other_texts() {
        for shape in &SHAPES {
            let key = format!("{}{}", shape.prefix, "0123456789abcdefghijABCDEFGHIJ");
            for (before, after) in [
                ("", ""),
                ("sk ", " sk-"),
                ("gh", ""),
                ("\"", "\""),
                ("é", "é"),
            ] {
                let text = format!("{before}{key}{after}");
                let at = before.len()..before.len() + key.len();
                let begins = begins_word(before.as_bytes());
                let want = begins.then(|| (kind(shape), at));
                assert_eq!(shapes(text.as_bytes()).next(), want, "{text}");
            }
            let short = &key[..shape.prefix.len() + shape.least - 1];
            assert_eq!(credential(short.as_bytes()), None, "{short}");
        }
    }

    #[test]
    fn a_word_may_begin_after_an_escape() {
        for text in [
            "sk-0123456789abcdef",
            "{\"content\":\"\\nsk-0123456789abcdef\"}",
            "\\u003csk-0123456789abcdef",
        ] {
            assert_eq!(credential(text.as_bytes()), Some("sk-…"), "{text}");
        }
        for text in [
            "desk-0123456789abcdef",
            "sk-0123456789",
            "sk-learn-is-a-library-name",
            "Bearer of bad news",
        ] {
            assert_eq!(credential(text.as_bytes()), None, "{text}");
        }
    }
}
