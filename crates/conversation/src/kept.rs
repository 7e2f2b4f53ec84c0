//! A list whose values keep their positions when other values are removed.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Values in order of their positions. A position is never reused, and a look-up takes the same
/// time for any number of values.
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
    /// Returns the value at this position, or `None` if it was removed.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.slots.get(at.checked_sub(self.first)?)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let slot = self.slots.get_mut(at.checked_sub(self.first)?)?;
        slot.as_deref_mut()
    }

    /// Returns the values that are still kept, with their positions.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.from(self.first)
    }

    /// Returns the values at this position and after it.
    pub fn from(&self, at: usize) -> impl Iterator<Item = (usize, &T)> {
        let skipped = at.saturating_sub(self.first).min(self.slots.len());
        let slots = self.slots.range(skipped..).enumerate();
        slots.filter_map(move |(n, slot)| Some((self.first + skipped + n, slot.as_deref()?)))
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no values are kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the position that the next value will get.
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

/// Panics if the value at this position was removed.
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
