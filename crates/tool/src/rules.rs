//! The rules of what may run, and the answers that were given before the run.

use crate::approval::ApprovalLevel;
use crate::call_reference::CallReference;
use crate::canonical::Hash;
use crate::continuation::Continuation;
use event::Glob;
use std::collections::{HashMap, HashSet};

/// The rules of what may run, and a person's answers.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// If there are any, a name must match one of them.
    pub allow: Vec<Glob>,
    /// A tool whose name matches one of these never runs, even if it matches one in `allow`.
    pub deny: Vec<Glob>,
    /// Which classes need a person's yes.
    pub approve: ApprovalLevel,
    /// The calls that a person has approved. Each approval counts for one start.
    pub approved: HashSet<CallReference>,
    /// The calls that a person has refused, even if they are in `approved` too.
    pub denied: HashSet<CallReference>,
    /// The results that a person gave for calls that had been started, in place of the results that
    /// were never recorded.
    pub results: HashMap<CallReference, String>,
    /// The tools, by name and definition, whose calls a person has approved for the rest of the
    /// run.
    pub always: HashSet<(String, Hash)>,
    /// The command that continues the run, for the texts of pending calls.
    pub continuation: Continuation,
}

impl Rules {
    /// Whether tools of that name may run.
    pub fn let_through(&self, name: &str) -> bool {
        !self.deny.iter().any(|glob| glob.matches(name))
            && (self.allow.is_empty() || self.allow.iter().any(|glob| glob.matches(name)))
    }
}
