//! What this filter wrote of a choice when the stream went through it before, so that it writes none of it twice.

use crate::call::Call;
use std::collections::{HashMap, HashSet};

/// Whole calls and warnings that are in the input already.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// The deltas may be in the input too, and make the same calls again: each then takes its place, and those without deltas
    /// follow at the end.
    calls: Vec<Option<Call>>,
    by_id: HashMap<Box<str>, usize>,
    /// Those of them that have begun again.
    begun: HashSet<Box<str>>,
    /// How often each message of a warning was read and its cause not yet met.
    warnings: HashMap<String, usize>,
}

impl Before {
    /// The call of an id, which has `begun` here or not.
    pub fn call(&mut self, id: &str, begun: bool) -> &mut Call {
        let at = *self.by_id.entry(id.into()).or_insert_with(|| {
            self.calls.push(None);
            self.calls.len() - 1
        });
        if begun {
            self.begun.insert(id.into());
        }
        self.calls[at].get_or_insert_with(|| Call::new(at, id.to_owned(), false))
    }

    /// A call of this id has begun here.
    pub fn begin(&mut self, id: &str) {
        if self.by_id.contains_key(id) {
            self.begun.insert(id.into());
        }
    }

    /// Takes out the call of an id.
    pub fn take(&mut self, id: &str) -> Option<Call> {
        self.begun.remove(id);
        self.by_id.remove(id).and_then(|at| self.calls[at].take())
    }

    /// How many calls have not begun here.
    pub fn waiting(&self) -> usize {
        self.by_id.len() - self.begun.len()
    }

    /// Takes out the calls that are left, in order.
    pub fn rest(&mut self) -> impl Iterator<Item = Call> {
        self.by_id.clear();
        self.begun.clear();
        std::mem::take(&mut self.calls).into_iter().flatten()
    }

    /// Notes a warning.
    pub fn warning(&mut self, message: String) {
        *self.warnings.entry(message).or_default() += 1;
    }

    /// Whether this warning is in the input already; it counts once.
    pub fn warned(&mut self, message: &str) -> bool {
        let Some(count) = self.warnings.get_mut(message).filter(|count| **count > 0) else { return false };
        *count -= 1;
        true
    }
}
