//! Unescapes JSON strings.

use std::borrow::Cow;

/// Unescapes a JSON string, given the text between its quotes. The result is borrowed if the string
/// has no escapes. A lone surrogate becomes U+FFFD.
#[inline]
pub(crate) fn unescaped(inside: &str, escaped: bool) -> Cow<'_, str> {
    if !escaped {
        return Cow::Borrowed(inside);
    }
    let mut out = String::with_capacity(inside.len());
    let mut half = Surrogates::default();
    half.push_inside(inside, true, &mut out);
    half.finish(&mut out);
    Cow::Owned(out)
}

/// The most bytes of a piece that is unescaped in a buffer on the stack.
const SHORT: usize = 64;

/// Returns the byte that a letter after a backslash stands for.
#[inline]
fn meaning(letter: u8) -> u8 {
    match letter {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => letter,
    }
}

/// Unescapes a short piece without `\u` into `out`, and returns its new length. Pieces of arguments
/// are short and full of `\"`, so that appending each run by itself would cost more than this does.
#[inline]
fn unescape_short(b: &[u8], out: &mut [u8; SHORT + 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    if b.len() > SHORT {
        return None;
    }
    let (mut i, mut length) = (0, 0);
    while i < b.len() {
        if let Some(eight) = b.get(i..).and_then(|rest| rest.first_chunk::<8>()) {
            // All eight are copied; those from the first backslash on are then overwritten.
            *out.get_mut(length..)?.first_chunk_mut()? = *eight;
            let slash = u64::from_le_bytes(*eight) ^ (ONES * b'\\' as u64);
            let found = slash.wrapping_sub(ONES) & !slash & HIGH;
            let plain = found.trailing_zeros() as usize / 8;
            (i, length) = (i + plain, length + plain);
            if found == 0 {
                continue;
            }
        } else if b[i] != b'\\' {
            *out.get_mut(length)? = b[i];
            (i, length) = (i + 1, length + 1);
            continue;
        }
        let letter = *b.get(i + 1).filter(|letter| **letter != b'u')?;
        *out.get_mut(length)? = meaning(letter);
        (i, length) = (i + 2, length + 1);
    }
    Some(length)
}

/// Joins the pieces of a text, even if a surrogate pair (`\ud83d` `\ude00`) was split between two
/// pieces.
///
/// Each text that arrives in pieces needs its own value. A lone surrogate becomes U+FFFD.
#[derive(Clone, Debug, Default)]
pub struct Surrogates {
    high: Option<u16>,
}

impl Surrogates {
    /// Unescapes the next piece, given as the text between the quotes of a JSON string, and appends
    /// it to `out`. A high surrogate at its end is held back until the next piece. `escaped` is
    /// whether the piece has escapes.
    #[inline]
    pub(crate) fn push_inside(&mut self, inside: &str, escaped: bool, out: &mut String) {
        if escaped {
            self.push_escaped(inside, out);
        } else if !inside.is_empty() {
            self.finish(out);
            out.push_str(inside);
        }
    }

    fn push_escaped(&mut self, inner: &str, out: &mut String) {
        let b = inner.as_bytes();
        let mut short = [0; SHORT + 8];
        if self.high.is_none()
            && let Some(length) = unescape_short(b, &mut short)
            && let Ok(text) = std::str::from_utf8(&short[..length])
        {
            return out.push_str(text);
        }
        let (mut from, mut i) = (0, 0);
        while i < b.len() {
            if b[i] != b'\\' {
                i += 1;
                continue;
            }
            if from < i {
                self.finish(out);
                out.push_str(&inner[from..i]);
            }
            i += match b.get(i + 1) {
                Some(b'u') => {
                    self.unit(inner.get(i + 2..i + 6).unwrap_or_default(), out);
                    6
                }
                letter => {
                    self.finish(out);
                    out.push(letter.map_or('\u{fffd}', |letter| char::from(meaning(*letter))));
                    2
                }
            };
            from = i;
        }
        if from < b.len() {
            self.finish(out);
            out.push_str(&inner[from..]);
        }
    }

    /// Writes U+FFFD for a high surrogate that was held back and never completed.
    #[inline]
    pub fn finish(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            out.push('\u{fffd}');
        }
    }

    /// Appends the character of one `\uXXXX` escape, or holds back a high surrogate.
    fn unit(&mut self, hex: &str, out: &mut String) {
        let unit = u16::from_str_radix(hex, 16).unwrap_or(0xfffd);
        match (self.high.take(), unit) {
            (high, 0xd800..=0xdbff) => {
                if high.is_some() {
                    out.push('\u{fffd}');
                }
                self.high = Some(unit);
            }
            (Some(high), 0xdc00..=0xdfff) => {
                out.extend(char::decode_utf16([high, unit]).map(|c| c.unwrap_or('\u{fffd}')));
            }
            (high, _) => {
                if high.is_some() {
                    out.push('\u{fffd}');
                }
                out.push(char::from_u32(unit.into()).unwrap_or('\u{fffd}'));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_means_the_same_whatever_its_length() {
        let long = "x".repeat(SHORT);
        for (escape, text) in [
            (r#"\""#, "\""),
            (r"\\", "\\"),
            (r"\/", "/"),
            (r"\b\f\n\r\t", "\u{8}\u{c}\n\r\t"),
            (r"\u00e9", "é"),
            (r"\ud83d\ude00", "😀"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ude00", "\u{fffd}"),
            (r#"\ud83d\""#, "\u{fffd}\""),
            ("é€😀", "é€😀"),
        ] {
            for place in 0..=SHORT + 1 {
                for (after, text_after) in [
                    ("", ""),
                    ("é", "é"),
                    (r#"\"\\\""#, "\"\\\""),
                    ("1234567", "1234567"),
                    (&long, &long),
                ] {
                    let before = "y".repeat(place) + "é";
                    let inner = format!("{before}{escape}{after}");
                    let expected = format!("{before}{text}{text_after}");
                    assert_eq!(unescaped(&inner, true), expected, "{inner}");
                }
            }
        }
    }
}
