//! Where the values of one JSON text lie, so that whoever looks for a member does not walk its neighbours again.

use crate::scan::{self, Record, Scan, Walk};

/// A value inside an array or object. Offsets count from the bracket that opens the container.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Token {
    /// The key between its quotes; empty in an array.
    name: (u32, u32),
    value: (u32, u32),
    /// How many tokens lie inside this value; they follow it. While the value is open: the place of its container.
    pub inside: u32,
    pub is_name_escaped: bool,
    pub is_escaped: bool,
}

impl Token {
    /// The key, as it is written, of a value in the container `text`.
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

/// The memory in which [`crate::Raw::indexed`] keeps the places of the values of a text. Reused from text to text.
///
/// It holds a fixed number of places at most: a text of more values, such as megabytes of `[0,0,…]`, is walked without it, so
/// that memory stays what the text takes. Frames of one stream begin alike (230 of the 290 bytes of a chunk of OpenAI's), so
/// the places in the beginning that a text shares with the last one are kept.
#[derive(Debug, Default)]
pub struct Index {
    /// The container itself and all that is in it, in the order of the text.
    tokens: Vec<Token>,
    /// The last text, if the tokens are all of its places; else empty.
    last: String,
    name: (u32, u32),
    is_name_escaped: bool,
    /// The innermost container that is open, and where its bracket lies in the text.
    open: u32,
    base: usize,
    is_full: bool,
}

/// 1.5 MiB of places.
const MOST: usize = 1 << 16;

/// The longest text that is kept to compare the next one with.
const LONGEST: usize = 1 << 14;

impl Index {
    /// Checks the array or object that begins at `start` and keeps the places in it; gives the index after it.
    pub(crate) fn read(&mut self, text: &str, start: usize) -> Scan<usize> {
        let begin = self.begin(text, start);
        self.last.clear();
        let end = scan::container(text.as_bytes(), begin, self)?;
        if text.len() <= LONGEST && !self.is_full {
            self.last.push_str(text);
        }
        Ok(end)
    }

    /// What lies in the container that was read; empty where the index is too small for it.
    pub(crate) fn inside(&self) -> &[Token] {
        if self.is_full { &[] } else { self.tokens.get(1..).unwrap_or_default() }
    }

    /// Keeps the tokens that `text` shares with the last text and gives where the walk goes on: after the last value that ends
    /// before the first difference.
    fn begin(&mut self, text: &str, start: usize) -> Walk {
        let shared = shared(self.last.as_bytes(), text.as_bytes());
        (self.name, self.is_full) = ((0, 0), u32::try_from(text.len()).is_err());
        // The open container: where its bracket lies, its token and the tokens in it.
        let (mut base, mut open, mut at, mut end) = (start, 0, 1, self.tokens.len());
        let mut walk = Walk::from(start);
        walk.open(text.as_bytes()[start]);
        let mut kept = (Walk::from(start), 0, 0, 0);
        while shared > start && at < end {
            let token = &mut self.tokens[at];
            let (value, after) = (base + token.value.0 as usize, base + token.value.1 as usize);
            // The byte after a value is looked at, too: a number may go on.
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
        self.is_full |= self.tokens.len() == MOST;
        if !self.is_full {
            let (name, is_name_escaped) = (std::mem::take(&mut self.name), self.is_name_escaped);
            self.tokens.push(Token { name, value, inside, is_name_escaped, is_escaped });
            self.is_name_escaped = false;
        }
    }
}

/// How many bytes two texts have in common at their beginnings; not all of the last few.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0);
    let equal = 32 * blocks.take_while(|(a, b)| a == b).count();
    let words = a[equal..].as_chunks::<8>().0.iter().zip(b[equal..].as_chunks::<8>().0);
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
        if self.is_full {
            return;
        }
        let inside = self.tokens.len() as u32 - 1 - self.open;
        let container = &mut self.tokens[self.open as usize];
        self.open = std::mem::replace(&mut container.inside, inside);
        self.base -= container.value.0 as usize;
        container.value.1 = (end - self.base) as u32;
    }
}
