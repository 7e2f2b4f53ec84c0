//! One value for each choice of a stream.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

/// One value for each choice, in the order in which the choices appeared. Finding one takes the
/// same time however many there are. [`Choices::place`] finds the choice that it returned last with
/// one comparison, since nearly every event belongs to that one.
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
    /// The place of choice `number`; a new choice gets the value of `make`.
    #[inline]
    pub fn place(&mut self, number: u32, make: impl FnOnce() -> T) -> usize {
        if self.numbers.get(self.last) != Some(&number) {
            self.turn_to(number, make);
        }
        self.last
    }

    /// Makes `number` the choice that was found last. Apart from [`Choices::place`], so that each
    /// caller holds its one comparison.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, number: u32, make: impl FnOnce() -> T) {
        self.last = self
            .find(number)
            .unwrap_or_else(|| self.insert(number, make()));
    }

    /// The place of choice `number`, if it has appeared.
    pub fn find(&self, number: u32) -> Option<usize> {
        // The map is empty until the second choice comes, since nearly every stream has only one.
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

    /// The value of choice `number`; [`Default`] makes it when it is new.
    #[inline]
    pub fn of(&mut self, number: u32) -> &mut T
    where
        T: Default,
    {
        let place = self.place(number, T::default);
        &mut self.list[place]
    }

    /// The choices in the order of their numbers, with their values. Each call sorts, so it is for
    /// what happens once a stream.
    pub fn by_number(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let mut sorted: Vec<_> = self.numbers.iter().copied().zip(&mut self.list).collect();
        sorted.sort_unstable_by_key(|(number, _)| *number);
        sorted.into_iter()
    }

    /// How many choices have appeared.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether none has appeared.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The values, in the order in which their choices appeared.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// The same, to change them.
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
