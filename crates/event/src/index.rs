//! Where the values of one JSON text lie, so that whoever looks for a member does not walk its neighbours again.

use crate::scan::Record;
use crate::surrogates::Surrogates;

/// A value inside an array or object. Offsets count from the bracket that opens the container.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Token {
    /// The key with its quotes; empty in an array.
    pub key: (u32, u32),
    pub value: (u32, u32),
    /// How many tokens lie inside this value; they follow it. While the value is open: the place of its container.
    pub inside: u32,
    pub is_key_escaped: bool,
    pub is_escaped: bool,
}

impl Token {
    /// The key, with its quotes, of a value in the container `text`.
    #[inline]
    pub(crate) fn key<'a>(&self, text: &'a str) -> &'a str {
        &text[self.key.0 as usize..self.key.1 as usize]
    }

    #[inline]
    pub(crate) fn value<'a>(&self, text: &'a str) -> &'a str {
        &text[self.value.0 as usize..self.value.1 as usize]
    }

    /// Whether the key is `name`.
    #[inline(always)]
    pub(crate) fn is_named(&self, text: &str, name: &str) -> bool {
        let (start, end) = (self.key.0 as usize, self.key.1 as usize);
        if self.is_key_escaped {
            return is_escaped_key(&text[start..end], name);
        }
        end - start == name.len() + 2 && text.as_bytes()[start + 1..end - 1] == *name.as_bytes()
    }
}

#[cold]
fn is_escaped_key(key: &str, name: &str) -> bool {
    let mut plain = String::new();
    let mut half = Surrogates::default();
    half.push_inside(&key[1..key.len() - 1], true, &mut plain);
    half.finish(&mut plain);
    plain == name
}

/// The memory in which [`crate::Raw::indexed`] keeps the places of the values of a text. Reused from text to text.
///
/// It holds a fixed number of places at most: a text of more values, such as megabytes of `[0,0,…]`, is walked without it, so
/// that memory stays what the text takes.
#[derive(Debug, Default)]
pub struct Index {
    /// The container itself and all that is in it, in the order of the text.
    tokens: Vec<Token>,
    key: (u32, u32),
    is_key_escaped: bool,
    /// The innermost container that is open, and where its bracket lies in the text.
    open: u32,
    base: usize,
    is_full: bool,
}

/// 1.5 MiB of places.
const MOST: usize = 1 << 16;

impl Index {
    /// Forgets the last text. An index of a text that is too long for its offsets stays empty.
    pub(crate) fn begin(&mut self, length: usize) {
        self.tokens.clear();
        self.key = (0, 0);
        (self.open, self.base) = (0, 0);
        self.is_full = u32::try_from(length).is_err();
    }

    /// What lies in the container that was walked; empty where the index is too small for it.
    pub(crate) fn inside(&self) -> &[Token] {
        if self.is_full { &[] } else { self.tokens.get(1..).unwrap_or_default() }
    }

    fn range(&self, start: usize, end: usize) -> (u32, u32) {
        ((start - self.base) as u32, (end - self.base) as u32)
    }

    #[inline]
    fn push(&mut self, value: (u32, u32), inside: u32, is_escaped: bool) {
        self.is_full |= self.tokens.len() == MOST;
        if !self.is_full {
            let (key, is_key_escaped) = (std::mem::take(&mut self.key), std::mem::take(&mut self.is_key_escaped));
            self.tokens.push(Token { key, value, inside, is_key_escaped, is_escaped });
        }
    }
}

impl Record for Index {
    #[inline]
    fn key(&mut self, start: usize, end: usize, escaped: bool) {
        self.key = self.range(start, end);
        self.is_key_escaped = escaped;
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
