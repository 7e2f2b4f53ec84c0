//! The calls of a plan by what a `retract` or another call may name them: their id or their index,
//! within their stream.

use crate::call::RequestedCall;
use std::collections::{BTreeSet, HashMap};

/// What a call is named by, within its stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallName {
    Id(Box<str>),
    Index(i64),
}

/// The numbers of the calls of each name. A later turn may use a name again, so there may be
/// several.
#[derive(Debug, Default)]
pub(crate) struct CallNames(HashMap<(Option<Box<str>>, CallName), BTreeSet<u64>>);

impl CallNames {
    pub(crate) fn add(&mut self, call: &RequestedCall, key: u64) {
        for name in names(call) {
            self.0
                .entry((call.stream.clone(), name))
                .or_default()
                .insert(key);
        }
    }

    pub(crate) fn remove(&mut self, call: &RequestedCall, key: u64) {
        for name in names(call) {
            let name = (call.stream.clone(), name);
            if let Some(keys) = self.0.get_mut(&name) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.0.remove(&name);
                }
            }
        }
    }

    /// The streams that have a call of that id.
    pub(crate) fn streams_of(&self, id: &str) -> Vec<Option<Box<str>>> {
        let name = CallName::Id(id.into());
        let mut streams: Vec<_> = self
            .0
            .keys()
            .filter(|(_, n)| *n == name)
            .map(|(stream, _)| stream.clone())
            .collect();
        streams.sort(); // a map has no order
        streams
    }

    /// The latest call of that id, or, without an id, of that index.
    pub(crate) fn latest(
        &self,
        stream: &Option<Box<str>>,
        id: Option<&str>,
        index: Option<i64>,
    ) -> Option<u64> {
        let name = match (id, index) {
            (Some(id), _) => CallName::Id(id.into()),
            (None, Some(index)) => CallName::Index(index),
            (None, None) => return None,
        };
        self.0.get(&(stream.clone(), name))?.last().copied()
    }
}

fn names(call: &RequestedCall) -> impl Iterator<Item = CallName> + use<> {
    [
        Some(CallName::Id(call.id.clone())),
        call.index.map(CallName::Index),
    ]
    .into_iter()
    .flatten()
}
