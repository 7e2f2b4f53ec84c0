//! The same counts by API, provider, model, tag and corpus.

use crate::add_up::AddUp;
use crate::counts::{Counts, StreamCounts};
use crate::measured::Measured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How many values of a dimension have counts of their own: the first of the alphabet, so that the
/// order of streams does not matter.
const LIMIT: usize = 300;
/// Characters of a value; what is longer is cut, so that hostile names do not fill the memory.
const NAME_LIMIT: usize = 200;

/// By what a report is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// The provider API.
    Api,
    /// Who served the model.
    Provider,
    /// The model.
    Model,
    /// The tags of the label. A stream is in the group of each of its tags.
    Tag,
    /// The index that names the stream.
    Corpus,
}

impl Dimension {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] = [
        Self::Api,
        Self::Provider,
        Self::Model,
        Self::Tag,
        Self::Corpus,
    ];

    /// Its name in options, requirements and JSON.
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
    /// Its streams.
    pub streams: StreamCounts,
    /// What each checker answered.
    pub counts: Vec<Counts>,
}
}

/// The groups of one dimension, a bounded number of them.
///
/// Those with a name in the first 300 of the alphabet have counts of their own. A name of the final
/// 300 is among the first 300 of any part of the streams too, so its counts are never given up, and
/// the rest is the same whatever the order.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Groups {
    dimension: Dimension,
    named: BTreeMap<String, Group>,
    other: Option<Group>,
}

impl Groups {
    /// No groups.
    #[must_use]
    pub(crate) fn new(dimension: Dimension) -> Self {
        Self {
            dimension,
            named: BTreeMap::new(),
            other: None,
        }
    }

    /// By what these groups split.
    #[must_use]
    pub(crate) fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// The groups by name, and at the end those that have no counts of their own (`None`).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &Group)> {
        let named = self
            .named
            .iter()
            .map(|(name, group)| (Some(name.as_str()), group));
        named.chain(self.other.iter().map(|group| (None, group)))
    }

    /// Counts a stream in its groups.
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

    /// Whether each group has counts for so many checkers.
    #[must_use]
    pub(crate) fn fits(&self, checkers: usize) -> bool {
        self.iter().all(|(_, group)| group.counts.len() == checkers)
    }

    /// Keeps at most [`LIMIT`] names.
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

/// The text, cut after so many characters with `…` at its end.
#[must_use]
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
