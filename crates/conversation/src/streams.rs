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

    /// Removes the values for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        if self.unnamed.as_mut().is_some_and(|value| !keep(value)) {
            self.unnamed = None;
        }
        self.named.retain(|_, value| keep(value));
    }
}
