//! The offsets of all values of one JSON text, so that a search for a member does not scan the
//! other members again.

use crate::scan::{self, Record, Scan, WalkPlace};

/// A value inside an array or object. Offsets are relative to the opening bracket of the container.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexToken {
    /// The key without its quotes; empty in an array.
    name: (u32, u32),
    value: (u32, u32),
    /// The number of tokens inside this value, which follow it in `tokens`. Before the closing
    /// bracket is read: the position in `tokens` of the enclosing container.
    pub inside: u32,
    pub is_name_escaped: bool,
    pub is_escaped: bool,
}

impl IndexToken {
    /// Returns the key of this value, still escaped. `text` is the text of its container.
    #[inline]
    pub(crate) fn name<'a>(&self, text: &'a str) -> &'a str {
        &text[self.name.0 as usize..self.name.1 as usize]
    }

    #[inline]
    pub(crate) fn name_bytes<'a>(&self, text: &'a str) -> &'a [u8] {
        &text.as_bytes()[self.name.0 as usize..self.name.1 as usize]
    }

    #[inline]
    pub(crate) fn value<'a>(&self, text: &'a str) -> &'a str {
        &text[self.value.0 as usize..self.value.1 as usize]
    }
}

/// The memory in which [`crate::Raw::indexed`] stores the offsets of the values of a text. It is
/// reused for each text.
///
/// The number of offsets is limited: a text with more values, such as megabytes of `[0,0,…]`, is
/// walked without an index, so that memory stays proportional to the text. The frames of a stream
/// start alike (230 of the 290 bytes of an OpenAI chunk), so the offsets in the prefix that a text
/// shares with the previous one are reused.
#[derive(Debug, Default)]
pub struct Index {
    /// The container itself and all values in it, in the order of the text.
    tokens: Vec<IndexToken>,
    /// The previous text, so that the next one can reuse its tokens. Empty if that text was
    /// invalid, too long, or had too many values.
    last: String,
    name: (u32, u32),
    is_name_escaped: bool,
    /// The position in `tokens` of the innermost open container.
    open: u32,
    /// The offset in the text of that container's bracket.
    base: usize,
    is_overflowed: bool,
}

/// The maximum number of tokens in an index; they take 1.5 MiB.
const MAX_TOKENS: usize = 1 << 16;

/// The maximum length, in bytes, of a text that is kept for comparison with the next one.
const MAX_KEPT: usize = 1 << 14;

impl Index {
    /// Validates the array or object that starts at `start`, and stores its tokens. Returns the
    /// offset after it.
    pub(crate) fn read(&mut self, text: &str, start: usize) -> Scan<usize> {
        let begin = self.begin(text, start);
        self.last.clear();
        let end = scan::container(text.as_bytes(), begin, self)?;
        if text.len() <= MAX_KEPT && !self.is_overflowed {
            self.last.push_str(text);
        }
        Ok(end)
    }

    /// Returns the tokens inside the container that was read last. Empty if the text has too many
    /// values.
    pub(crate) fn inside(&self) -> &[IndexToken] {
        if self.is_overflowed {
            &[]
        } else {
            self.tokens.get(1..).unwrap_or_default()
        }
    }

    /// Keeps the tokens in the prefix that `text` shares with the previous text, and returns where
    /// the walk continues: after the last value that ends before the first difference.
    fn begin(&mut self, text: &str, start: usize) -> WalkPlace {
        let shared = shared(self.last.as_bytes(), text.as_bytes());
        (self.name, self.is_overflowed) = ((0, 0), u32::try_from(text.len()).is_err());
        // The current container: `base` is the offset of its bracket, `open` the position of its
        // token, `at..end` the positions of its tokens that have not been compared yet.
        let mut base = start;
        let mut open = 0;
        let mut at = 1;
        let mut end = self.tokens.len();
        let mut walk = WalkPlace::from(start);
        walk.open(text.as_bytes()[start]);
        let mut kept = (WalkPlace::from(start), 0, 0, 0);
        while shared > start && at < end {
            let token = &mut self.tokens[at];
            let (value, after) = (base + token.value.0 as usize, base + token.value.1 as usize);
            // The byte after a value must be shared too: `12` could be `123` in the new text.
            if after < shared {
                walk.at = after;
                at += 1 + token.inside as usize;
                kept = (walk, base, open, at);
            } else if token.inside > 0 && value < shared {
                end = at + 1 + token.inside as usize;
                token.inside = open;
                (base, open) = (value, at as u32);
                walk.open(text.as_bytes()[value]);
                at += 1;
            } else {
                break;
            }
        }
        (walk, self.base, self.open, at) = kept;
        self.tokens.truncate(at);
        if let Some(outermost) = self.tokens.first_mut() {
            outermost.inside = 0;
        }
        walk
    }

    fn range(&self, start: usize, end: usize) -> (u32, u32) {
        ((start - self.base) as u32, (end - self.base) as u32)
    }

    #[inline]
    fn push(&mut self, value: (u32, u32), inside: u32, is_escaped: bool) {
        self.is_overflowed |= self.tokens.len() == MAX_TOKENS;
        if !self.is_overflowed {
            let name = std::mem::take(&mut self.name);
            let is_name_escaped = self.is_name_escaped;
            self.tokens.push(IndexToken {
                name,
                value,
                inside,
                is_name_escaped,
                is_escaped,
            });
            self.is_name_escaped = false;
        }
    }
}

/// Returns a lower bound for the length of the common prefix of two texts. It can be up to 7 bytes
/// too short, which only repeats a little work.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0);
    let equal = 32 * blocks.take_while(|(a, b)| a == b).count();
    let words = a[equal..]
        .as_chunks::<8>()
        .0
        .iter()
        .zip(b[equal..].as_chunks::<8>().0);
    let mut shared = equal;
    for (a, b) in words {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return shared + difference.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    shared
}

impl Record for Index {
    #[inline]
    fn key(&mut self, start: usize, end: usize, escaped: bool) {
        self.name = self.range(start + 1, end - 1);
        self.is_name_escaped = escaped;
    }

    #[inline]
    fn leaf(&mut self, start: usize, end: usize, escaped: bool) {
        self.push(self.range(start, end), 0, escaped);
    }

    #[inline]
    fn open(&mut self, start: usize) {
        let place = self.tokens.len() as u32;
        self.push(self.range(start, start), self.open, false);
        (self.open, self.base) = (place, start);
    }

    #[inline]
    fn close(&mut self, end: usize) {
        if self.is_overflowed {
            return;
        }
        let inside = self.tokens.len() as u32 - 1 - self.open;
        let container = &mut self.tokens[self.open as usize];
        self.open = std::mem::replace(&mut container.inside, inside);
        self.base -= container.value.0 as usize;
        container.value.1 = (end - self.base) as u32;
    }
}
