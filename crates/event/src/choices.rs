//! One value for each choice of a stream.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

/// A map with one value for each choice, in the order in which the choices appeared. A look-up
/// takes the same time regardless of the number of choices. [`Choices::place`] finds the choice
/// that it returned last with one comparison, because nearly every event belongs to that choice.
#[derive(Debug)]
pub struct Choices<T> {
    list: Vec<T>,
    numbers: Vec<u32>,
    places: HashMap<u32, usize>,
    last: usize,
}

impl<T> Default for Choices<T> {
    fn default() -> Self {
        Choices {
            list: Vec::new(),
            numbers: Vec::new(),
            places: HashMap::new(),
            last: 0,
        }
    }
}

impl<T> Choices<T> {
    /// Returns the position of choice `number`. A new choice gets the value that `make` returns.
    #[inline]
    pub fn place(&mut self, number: u32, make: impl FnOnce() -> T) -> usize {
        if self.numbers.get(self.last) != Some(&number) {
            self.turn_to(number, make);
        }
        self.last
    }

    /// Finds or adds choice `number` and remembers it as the last one. This is not part of
    /// [`Choices::place`], so that only the comparison is inlined into callers.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, number: u32, make: impl FnOnce() -> T) {
        self.last = self
            .find(number)
            .unwrap_or_else(|| self.insert(number, make()));
    }

    /// Returns the position of choice `number`, or `None` if it has not appeared.
    pub fn find(&self, number: u32) -> Option<usize> {
        // The map stays empty until the second choice appears, because nearly every stream has only
        // one.
        match self.numbers[..] {
            [] => None,
            [only] => Some(0).filter(|_| only == number),
            _ => self.places.get(&number).copied(),
        }
    }

    fn insert(&mut self, number: u32, value: T) -> usize {
        let at = self.list.len();
        if at == 1 {
            self.places.insert(self.numbers[0], 0);
        }
        if at > 0 {
            self.places.insert(number, at);
        }
        self.numbers.push(number);
        self.list.push(value);
        at
    }

    /// Returns the value of choice `number`, after inserting the default value if the choice is
    /// new.
    #[inline]
    pub fn of(&mut self, number: u32) -> &mut T
    where
        T: Default,
    {
        let place = self.place(number, T::default);
        &mut self.list[place]
    }

    /// Returns the choices in the order of their numbers, with their values. Each call sorts the
    /// choices, so call this once per stream, not per event.
    pub fn by_number(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let mut sorted: Vec<_> = self.numbers.iter().copied().zip(&mut self.list).collect();
        sorted.sort_unstable_by_key(|(number, _)| *number);
        sorted.into_iter()
    }

    /// Returns the number of choices that have appeared.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether no choice has appeared.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Iterates over the values, in the order in which their choices appeared.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// Iterates over the values for modification, in the order in which their choices appeared.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.list.iter_mut()
    }
}

impl<T> Index<usize> for Choices<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        &self.list[place]
    }
}

impl<T> IndexMut<usize> for Choices<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_has_one_place() {
        let mut choices = Choices::default();
        for number in [3, 3, 0, 7, 3, 0, u32::MAX] {
            let at = choices.place(number, || number);
            assert_eq!((choices[at], choices.find(number)), (number, Some(at)));
        }
        assert_eq!(
            choices.iter().copied().collect::<Vec<_>>(),
            [3, 0, 7, u32::MAX]
        );
        assert_eq!(choices.find(1), None);
        *choices.of(1) = 9;
        assert_eq!(
            choices
                .by_number()
                .map(|(number, value)| (number, *value))
                .collect::<Vec<_>>(),
            [(0, 0), (1, 9), (3, 3), (7, 7), (u32::MAX, u32::MAX)]
        );
    }
}
