//! A map with one value for each stream of a pipe or a log.

use std::collections::HashMap;

/// A map from the name of a stream, as JSON, to a value. The unnamed stream has the empty name.
///
/// The unnamed stream, which is the only one of most pipes, is looked up without hashing, and so is
/// the named stream of the last look-up: consecutive events mostly belong to one stream, and hashing
/// a name costs more than the rest of a look-up.
#[derive(Clone, Debug)]
pub struct Streams<T> {
    unnamed: Option<T>,
    /// The named streams, in any order.
    named: Vec<(Box<str>, T)>,
    /// The position of each name in `named`. Empty until there are more than [`FEW`], which are then
    /// looked up here.
    places: HashMap<Box<str>, usize>,
    /// The position of the last look-up in `named`; may be past the end.
    last: usize,
}

/// As many names are compared in less time than one is hashed.
const FEW: usize = 4;

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Streams {
            unnamed: None,
            named: Vec::new(),
            places: HashMap::new(),
            last: 0,
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

    /// Returns the position of a name in `named`, or `None` if the stream has no value.
    #[inline]
    fn place(&self, name: &str) -> Option<usize> {
        match self.named.get(self.last) {
            Some((last, _)) if **last == *name => Some(self.last),
            _ if self.places.is_empty() => self.named.iter().position(|(n, _)| **n == *name),
            _ => self.places.get(name).copied(),
        }
    }

    /// Returns the value of the stream, or `None` if it has no value.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&T> {
        if name.is_empty() {
            return self.unnamed.as_ref();
        }
        Some(&self.named[self.place(name)?].1)
    }

    /// Returns the value of the stream for modification, or `None` if it has no value.
    // Inlined for the unnamed stream only.
    #[inline(always)]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        if name.is_empty() {
            return self.unnamed.as_mut();
        }
        self.named_mut(name)
    }

    #[inline(never)]
    fn named_mut(&mut self, name: &str) -> Option<&mut T> {
        self.last = self.place(name)?;
        Some(&mut self.named[self.last].1)
    }

    /// Removes the value of the stream and returns it.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        if name.is_empty() {
            return self.unnamed.take();
        }
        let at = self.place(name)?;
        let (_, value) = self.named.swap_remove(at);
        if self.places.remove(name).is_some()
            && let Some((moved, _)) = self.named.get(at)
        {
            self.places.insert(moved.clone(), at);
        }
        Some(value)
    }

    /// Returns the value of the stream, after inserting the default value if the stream is new.
    pub fn of(&mut self, name: &str) -> &mut T
    where
        T: Default,
    {
        if name.is_empty() {
            return self.unnamed.get_or_insert_default();
        }
        self.last = self
            .place(name)
            .unwrap_or_else(|| self.add(name, T::default()));
        &mut self.named[self.last].1
    }

    /// Sets the value of the stream.
    pub fn insert(&mut self, name: &str, value: T) {
        if name.is_empty() {
            self.unnamed = Some(value);
        } else if let Some(at) = self.place(name) {
            self.named[at].1 = value;
        } else {
            self.add(name, value);
        }
    }

    /// Adds a named stream that has no value yet, and returns its position in `named`.
    fn add(&mut self, name: &str, value: T) -> usize {
        let at = self.named.len();
        self.named.push((name.into(), value));
        if !self.places.is_empty() {
            self.places.insert(name.into(), at);
        } else if at >= FEW {
            let names = self.named.iter().map(|(name, _)| name.clone());
            self.places = names.zip(0..).collect();
        }
        at
    }

    /// Removes all values and returns them with their names, the unnamed stream first and the others
    /// sorted by name.
    pub fn drain(&mut self) -> impl Iterator<Item = (Box<str>, T)> + use<T> {
        let Streams {
            unnamed, mut named, ..
        } = std::mem::take(self);
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let unnamed = unnamed.map(|value| (Box::default(), value));
        unnamed.into_iter().chain(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use testkit::Random;

    #[test]
    fn a_stream_keeps_its_value_whatever_other_streams_do() {
        const NAMES: [&str; 9] = [
            "", "\"a\"", "\"b\"", "\"ab\"", "\"c\"", "\"d\"", "\"e\"", "\"f\"", "\"g\"",
        ];
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (mut streams, mut expected) = (Streams::<usize>::default(), BTreeMap::new());
            for step in 0..200 {
                let name = NAMES[random.below(NAMES.len())];
                match random.below(5) {
                    0 => {
                        streams.insert(name, step);
                        expected.insert(name, step);
                    }
                    1 => assert_eq!(streams.remove(name), expected.remove(name)),
                    2 => assert_eq!(streams.get_mut(name), expected.get_mut(name)),
                    _ => {
                        *streams.of(name) += step;
                        *expected.entry(name).or_default() += step;
                    }
                }
                for name in NAMES {
                    assert_eq!(streams.get(name), expected.get(name), "{name} {streams:?}");
                }
                assert_eq!(streams.len(), expected.len());
            }
            let all: Vec<_> = streams.drain().collect();
            let expected: Vec<_> = expected.into_iter().map(|(k, v)| (k.into(), v)).collect();
            assert_eq!(all, expected);
            assert!(streams.is_empty());
        }
    }
}
