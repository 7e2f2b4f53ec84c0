//! One value for each stream of a log.

use std::collections::HashMap;

/// A value for each stream, by its name as in [`crate::stream_of`]. The unnamed stream, which
/// is the only one of most logs, is found without a map.
#[derive(Clone, Debug)]
pub struct Streams<T> {
    unnamed: Option<T>,
    named: HashMap<Box<str>, T>,
}

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Streams {
            unnamed: None,
            named: HashMap::new(),
        }
    }
}

impl<T> Streams<T> {
    /// How many streams have a value.
    pub fn len(&self) -> usize {
        self.named.len() + usize::from(self.unnamed.is_some())
    }

    /// Whether no stream has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the stream.
    pub fn get(&self, name: &str) -> Option<&T> {
        match name.is_empty() {
            true => self.unnamed.as_ref(),
            false => self.named.get(name),
        }
    }

    /// The value of the stream, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        match name.is_empty() {
            true => self.unnamed.as_mut(),
            false => self.named.get_mut(name),
        }
    }

    /// Removes the value of the stream, and returns it.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        match name.is_empty() {
            true => self.unnamed.take(),
            false => self.named.remove(name),
        }
    }

    /// The value of the stream, which is the default one if the stream is new.
    pub fn of(&mut self, name: &str) -> &mut T
    where
        T: Default,
    {
        if name.is_empty() {
            return self.unnamed.get_or_insert_default();
        }
        self.named.entry(name.into()).or_default()
    }

    /// Sets the value of the stream.
    pub fn insert(&mut self, name: &str, value: T) {
        match name.is_empty() {
            true => self.unnamed = Some(value),
            false => drop(self.named.insert(name.into(), value)),
        }
    }
}
