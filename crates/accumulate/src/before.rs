//! The output of this filter that is in its input: a stream that goes through it twice gets each
//! line once (law 3 of the protocol).

use crate::call::OpenCall;
use std::collections::{HashMap, HashSet};

/// Calls and warnings of one choice that are in the input already.
#[derive(Debug, Default)]
pub(crate) struct EarlierOutput {
    /// Where the deltas are in the input, too, they make the same calls again, and each takes its
    /// place here. Calls without deltas follow at the end.
    calls: Vec<Option<OpenCall>>,
    by_id: HashMap<Box<str>, usize>,
    /// The ids of calls that their deltas have begun again.
    begun: HashSet<Box<str>>,
    /// How often each warning was read without its cause.
    warnings: HashMap<String, usize>,
}

impl EarlierOutput {
    /// The call of an id. `begun`: its deltas have begun it again.
    pub(crate) fn call(&mut self, id: &str, begun: bool) -> &mut OpenCall {
        let at = *self.by_id.entry(id.into()).or_insert_with(|| {
            self.calls.push(None);
            self.calls.len() - 1
        });
        if begun {
            self.begun.insert(id.into());
        }
        self.calls[at].get_or_insert_with(|| OpenCall::new(at, id.to_owned(), false))
    }

    /// Notes that deltas have begun a call of this id.
    pub(crate) fn begin(&mut self, id: &str) {
        if self.by_id.contains_key(id) {
            self.begun.insert(id.into());
        }
    }

    /// Removes and returns the call of an id.
    pub(crate) fn take(&mut self, id: &str) -> Option<OpenCall> {
        self.begun.remove(id);
        self.by_id.remove(id).and_then(|at| self.calls[at].take())
    }

    /// How many calls no deltas have begun.
    pub(crate) fn waiting(&self) -> usize {
        self.by_id.len() - self.begun.len()
    }

    /// Removes and returns the calls that are left, in order.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = OpenCall> {
        self.by_id.clear();
        self.begun.clear();
        std::mem::take(&mut self.calls).into_iter().flatten()
    }

    /// Takes a warning of the input, by its message.
    pub(crate) fn warning(&mut self, message: String) {
        *self.warnings.entry(message).or_default() += 1;
    }

    /// Whether this warning is in the input already. Each one of the input counts once.
    pub(crate) fn warned(&mut self, message: &str) -> bool {
        let Some(count) = self.warnings.get_mut(message).filter(|count| **count > 0) else {
            return false;
        };
        *count -= 1;
        true
    }
}
