//! The counts split by API, provider, model, tag and corpus.

use crate::add_up::AddUp;
use crate::counts::{Counts, StreamCounts};
use crate::measured::Measured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The maximum number of values of a dimension with separate counts. They are the first in
/// alphabetical order, so that the order of streams does not matter.
const LIMIT: usize = 300;
/// Maximum length of a value in characters; longer ones are cut, so that hostile names do not fill
/// the memory.
const NAME_LIMIT: usize = 200;

/// The property by which a report is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// The provider API.
    Api,
    /// The provider that served the model.
    Provider,
    /// The model.
    Model,
    /// The tags of the label. A stream is in the group of each of its tags.
    Tag,
    /// The index file that lists the stream.
    Corpus,
}

impl Dimension {
    /// All dimensions, in the order of reports.
    pub const ALL: [Self; 5] = [
        Self::Api,
        Self::Provider,
        Self::Model,
        Self::Tag,
        Self::Corpus,
    ];

    /// Returns the name in options, requirements and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Tag => "tag",
            Self::Corpus => "corpus",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Dimension {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|dimension| dimension.name() == name)
            .ok_or(())
    }
}

counts! {
/// The counts of one group.
pub struct Group {
    /// The streams of the group.
    pub streams: StreamCounts,
    /// The answers of each checker.
    pub counts: Vec<Counts>,
}
}

/// The groups of one dimension; their number is bounded.
///
/// Only the first 300 names in alphabetical order have separate counts. A name among the final 300
/// is also among the first 300 of any part of the streams, so its counts are never discarded, and
/// the remaining counts are the same in any order.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Groups {
    dimension: Dimension,
    named: BTreeMap<String, Group>,
    other: Option<Group>,
}

impl Groups {
    /// Returns an empty list of groups.
    #[must_use]
    pub(crate) fn new(dimension: Dimension) -> Self {
        Self {
            dimension,
            named: BTreeMap::new(),
            other: None,
        }
    }

    /// Returns the dimension of these groups.
    #[must_use]
    pub(crate) fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Iterates over the groups by name, followed by the group of all other names (`None`).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &Group)> {
        let named = self
            .named
            .iter()
            .map(|(name, group)| (Some(name.as_str()), group));
        named.chain(self.other.iter().map(|group| (None, group)))
    }

    /// Counts a stream in each of its groups.
    pub(crate) fn add(&mut self, measured: &Measured, checkers: usize) {
        match self.dimension {
            Dimension::Api => self.add_to(&measured.api, measured, checkers),
            Dimension::Provider => self.add_to(&measured.provider, measured, checkers),
            Dimension::Model => self.add_to(&measured.model, measured, checkers),
            Dimension::Corpus => self.add_to(&measured.corpus, measured, checkers),
            Dimension::Tag => measured
                .tags
                .iter()
                .for_each(|tag| self.add_to(tag, measured, checkers)),
        }
    }

    fn add_to(&mut self, name: &str, measured: &Measured, checkers: usize) {
        let name = cut(name, NAME_LIMIT);
        let is_last = || {
            self.named
                .last_key_value()
                .is_some_and(|(last, _)| *last < name)
        };
        let group = if !self.named.contains_key(&name) && self.named.len() >= LIMIT && is_last() {
            self.other.get_or_insert_with(|| Group::new(checkers))
        } else {
            self.named
                .entry(name)
                .or_insert_with(|| Group::new(checkers))
        };
        group.add(measured);
        self.give_up_last();
    }

    /// Adds the groups of `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        for (name, more) in other.named {
            match self.named.get_mut(&name) {
                Some(group) => group.add_up(&more),
                None => drop(self.named.insert(name, more)),
            }
        }
        if let Some(more) = other.other {
            self.put_aside(more);
        }
        self.give_up_last();
    }

    /// Whether each group has counts for this number of checkers.
    #[must_use]
    pub(crate) fn fits(&self, checkers: usize) -> bool {
        self.iter().all(|(_, group)| group.counts.len() == checkers)
    }

    /// Moves the counts of names beyond [`LIMIT`] into the group of other names.
    fn give_up_last(&mut self) {
        while self.named.len() > LIMIT {
            let Some((_, last)) = self.named.pop_last() else {
                return;
            };
            self.put_aside(last);
        }
    }

    fn put_aside(&mut self, more: Group) {
        match &mut self.other {
            Some(group) => group.add_up(&more),
            None => self.other = Some(more),
        }
    }
}

impl Group {
    fn new(checkers: usize) -> Self {
        Self {
            streams: StreamCounts::default(),
            counts: (0..checkers).map(|_| Counts::of_group()).collect(),
        }
    }

    fn add(&mut self, measured: &Measured) {
        self.streams.add(measured);
        for (counts, outcome) in self.counts.iter_mut().zip(&measured.outcomes) {
            counts.add(measured, outcome);
        }
    }
}

/// Returns the text, cut after `limit` characters with `…` at the end.
#[must_use]
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
