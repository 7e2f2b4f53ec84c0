//! A list whose values keep their positions while some of them are let go.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Values by their positions, in order. A position is never given twice, and finding a value takes
/// the same time however many there are.
#[derive(Clone, Debug)]
pub struct Kept<T> {
    slots: VecDeque<Option<Box<T>>>,
    /// The position of the first slot.
    first: usize,
    len: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept {
            slots: VecDeque::new(),
            first: 0,
            len: 0,
        }
    }
}

impl<T> Kept<T> {
    /// The value at this position, unless it was let go.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.slots.get(at.checked_sub(self.first)?)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let slot = self.slots.get_mut(at.checked_sub(self.first)?)?;
        slot.as_deref_mut()
    }

    /// The values that are kept, with their positions.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.from(self.first)
    }

    /// The values from this position on.
    pub fn from(&self, at: usize) -> impl Iterator<Item = (usize, &T)> {
        let skipped = at.saturating_sub(self.first).min(self.slots.len());
        let slots = self.slots.range(skipped..).enumerate();
        slots.filter_map(move |(n, slot)| Some((self.first + skipped + n, slot.as_deref()?)))
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The position of the next value.
    #[inline]
    pub fn end(&self) -> usize {
        self.first + self.slots.len()
    }

    pub(crate) fn push(&mut self, value: T) -> usize {
        self.slots.push_back(Some(Box::new(value)));
        self.len += 1;
        self.end() - 1
    }

    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let slot = self.slots.get_mut(at.checked_sub(self.first)?)?;
        let value = slot.take()?;
        self.len -= 1;
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        Some(*value)
    }
}

/// The value at a position that is known to be kept.
impl<T> Index<usize> for Kept<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        self.get(at).expect(LET_GO)
    }
}

impl<T> IndexMut<usize> for Kept<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        self.get_mut(at).expect(LET_GO)
    }
}

const LET_GO: &str = "a value that was let go";
