//! Where a JSON value ends, by its brackets and quotes alone.
//!
//! Models write JSON that is nearly right: a raw newline in a string, a comma too many. So the
//! grammar does not count here. A bracket or a marker inside a string closes nothing.

use memchr::memchr2;

/// The open brackets and quotes of one value: an object, an array or a string. It takes the bytes
/// in any pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balance {
    depth: u32,
    text: bool,
    escape: bool,
}

impl Balance {
    /// Whether this byte begins an object, an array or a string. Other values end without a mark of
    /// their own.
    pub fn begins(byte: u8) -> bool {
        matches!(byte, b'{' | b'[' | b'"')
    }

    /// The state inside `depth` brackets; `text`: inside a string; `escape`: after a backslash in
    /// it.
    pub(crate) fn within(depth: u32, text: bool, escape: bool) -> Balance {
        Balance {
            depth,
            text,
            escape,
        }
    }

    /// Whether a bracket or a quote is open.
    pub(crate) fn is_open(&self) -> bool {
        self.depth > 0 || self.text
    }

    /// Takes the next bytes, past the end of the value and of further ones.
    pub(crate) fn count(&mut self, mut bytes: &[u8]) {
        while let Some(end) = self.push(bytes) {
            bytes = &bytes[end..];
        }
    }

    /// Takes the next bytes; the first of all is the value's own. Returns the index after the
    /// value's last byte, once that has come.
    pub fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut i = 0;
        while i < bytes.len() {
            if self.escape {
                self.escape = false;
                i += 1;
                continue;
            }
            if self.text {
                let at = end_of_run(&bytes[i..])?;
                i += at + 1;
                if bytes[i - 1] == b'\\' {
                    self.escape = true;
                } else {
                    self.text = false;
                    if self.depth == 0 {
                        return Some(i);
                    }
                }
                continue;
            }
            match bytes[i] {
                b'"' => self.text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(i + 1);
                    }
                }
                _ => {}
            }
            i += 1;
        }
        None
    }
}

/// The next quote or backslash. `memchr2` pays from about 32 bytes on, and deltas are often
/// shorter.
#[inline]
fn end_of_run(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < 32 {
        return bytes.iter().position(|c| matches!(c, b'"' | b'\\'));
    }
    memchr2(b'"', b'\\', bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_where_the_value_does_for_every_cut() {
        for (text, end) in [
            (r#"{"a":"}\"</x>"} rest"#, Some(15)),
            ("[1,{\"b\":[]}],", Some(12)),
            (r#""a\\"x"#, Some(5)),
            ("{\"a\":\"l1\nl2\"}", Some(13)),
            ("{\"a\":", None),
        ] {
            for cut in 0..=text.len() {
                let mut b = Balance::default();
                let first = b.push(&text.as_bytes()[..cut]);
                let got = first.or_else(|| b.push(&text.as_bytes()[cut..]).map(|n| cut + n));
                assert_eq!(got, end, "{text} cut at {cut}");
            }
        }
    }
}
