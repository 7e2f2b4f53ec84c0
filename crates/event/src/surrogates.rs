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

    /// Pieces of arguments are short and full of `\"`, so this loop inspects each byte once instead
    /// of calling a search for each plain run.
    fn push_escaped(&mut self, inner: &str, out: &mut String) {
        let b = inner.as_bytes();
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
                    out.push(match letter {
                        Some(b'b') => '\u{8}',
                        Some(b'f') => '\u{c}',
                        Some(b'n') => '\n',
                        Some(b'r') => '\r',
                        Some(b't') => '\t',
                        Some(c) => char::from(*c),
                        None => '\u{fffd}',
                    });
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
