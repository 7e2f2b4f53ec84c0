//! Output that an earlier run of this filter already wrote into the input. A stream that passes
//! through the filter twice contains each line once (law 3 of the protocol).

use crate::call::OpenCall;
use std::collections::{HashMap, HashSet};

/// The calls and warnings that the input already contains for one choice.
#[derive(Debug, Default)]
pub(crate) struct EarlierOutput {
    /// The calls in the order in which the input has them; `None` once a call was taken. If the
    /// input also contains the deltas, they start the same calls again, and each call is taken from
    /// here. Calls without deltas follow at the end.
    calls: Vec<Option<OpenCall>>,
    by_id: HashMap<Box<str>, usize>,
    /// Ids of the calls whose deltas have started them again.
    begun: HashSet<Box<str>>,
    /// How many times each warning was read without its cause, by message.
    warnings: HashMap<String, usize>,
}

impl EarlierOutput {
    /// Returns the call with this id, added if it is new. `begun` says that deltas have started it
    /// again.
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

    /// Records that deltas have started a call with this id.
    pub(crate) fn begin(&mut self, id: &str) {
        if self.by_id.contains_key(id) {
            self.begun.insert(id.into());
        }
    }

    /// Removes and returns the call with this id.
    pub(crate) fn take(&mut self, id: &str) -> Option<OpenCall> {
        self.begun.remove(id);
        self.by_id.remove(id).and_then(|at| self.calls[at].take())
    }

    /// Returns the number of calls that no deltas have started.
    pub(crate) fn waiting(&self) -> usize {
        self.by_id.len() - self.begun.len()
    }

    /// Removes and returns the remaining calls, in order.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = OpenCall> {
        self.by_id.clear();
        self.begun.clear();
        std::mem::take(&mut self.calls).into_iter().flatten()
    }

    /// Records a warning of the input by its message.
    pub(crate) fn warning(&mut self, message: String) {
        *self.warnings.entry(message).or_default() += 1;
    }

    /// Whether the input already contains this warning. Each warning of the input counts once.
    pub(crate) fn warned(&mut self, message: &str) -> bool {
        let Some(count) = self.warnings.get_mut(message).filter(|count| **count > 0) else {
            return false;
        };
        *count -= 1;
        true
    }
}
