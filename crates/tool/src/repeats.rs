//! The loop guard: the same call again and again, with the same result.

use crate::call::{CallKey, RequestedCall};
use crate::canonical::{Hash, digest};
use crate::result::Status;
use std::collections::{HashMap, HashSet};

/// The calls since the last message of a user, with their results. A turn counts once, however
/// often it has the call.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// How many turns there were.
    turns: u64,
    /// The calls whose results are to come: what each asks for, and its turn.
    open: HashMap<CallKey, (Hash, u64)>,
    /// Calls whose results do not count, since the call did not run.
    unrun: HashSet<CallKey>,
    /// The last result of each call, in how many turns in a row it came, and the last of those
    /// turns.
    results: HashMap<Hash, (Hash, u32, u64)>,
}

impl Repeats {
    /// A user has written: what follows is another task.
    pub fn user(&mut self) {
        *self = Repeats::default();
    }

    /// Takes the calls of an assistant's message.
    pub fn turn(&mut self, calls: &[RequestedCall]) {
        self.turns += 1;
        for call in calls {
            self.unrun.remove(&call.key());
            if let Some(meaning) = call.meaning() {
                self.open.insert(call.key(), (meaning, self.turns));
            }
        }
    }

    /// Takes the status of a call's result. The tool message with its text follows.
    pub fn status(&mut self, call: CallKey, status: Status) {
        if matches!(status, Status::Denied | Status::Cancelled | Status::Pending) {
            self.unrun.insert(call);
        }
    }

    /// Takes the text of a tool message.
    pub fn result(&mut self, call: &CallKey, text: &str) {
        let Some((meaning, turn)) = self.open.remove(call) else {
            return;
        };
        if self.unrun.remove(call) {
            return;
        }
        let result = digest([text.as_bytes()]);
        let seen = self.results.entry(meaning).or_insert((result, 0, 0));
        if seen.0 != result {
            *seen = (result, 1, turn);
        } else if seen.2 != turn {
            (seen.1, seen.2) = (seen.1 + 1, turn);
        }
    }

    /// In how many turns in a row the call had the same result.
    pub fn of(&self, call: &RequestedCall) -> u32 {
        let seen = call
            .meaning()
            .and_then(|meaning| self.results.get(&meaning));
        seen.map_or(0, |(_, count, _)| *count)
    }
}
