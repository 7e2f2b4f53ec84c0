//! A map with one value for each stream of a log.

use std::collections::HashMap;

/// A map from a stream's name (see [`crate::stream_of`]) to a value. The unnamed stream, which is
/// the only stream of most logs, is looked up without hashing.
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
    /// Returns the number of streams that have a value.
    pub fn len(&self) -> usize {
        self.named.len() + usize::from(self.unnamed.is_some())
    }

    /// Whether no stream has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of the stream, or `None` if it has no value.
    pub fn get(&self, name: &str) -> Option<&T> {
        match name.is_empty() {
            true => self.unnamed.as_ref(),
            false => self.named.get(name),
        }
    }

    /// Returns the value of the stream for modification, or `None` if it has no value.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        match name.is_empty() {
            true => self.unnamed.as_mut(),
            false => self.named.get_mut(name),
        }
    }

    /// Removes the value of the stream and returns it.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        match name.is_empty() {
            true => self.unnamed.take(),
            false => self.named.remove(name),
        }
    }

    /// Returns the value of the stream, after inserting the default value if the stream is new.
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
