//! The streams on which a checker was wrong: a bounded number of them, by name.

use crate::group::cut;
use crate::measured::{Answer, Measured, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Characters of an id; what is longer is cut, so that hostile ids do not fill the memory.
const ID_LIMIT: usize = 1_000;
/// Characters of a reason.
const REASON_LIMIT: usize = 300;

/// One stream on which a checker was wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct WrongStream {
    /// The index that names it, as the user typed it.
    pub corpus: String,
    /// Its id, cut after 1,000 characters.
    pub id: String,
    /// The answer: `no` or `undecided` for a call that was missed, `yes` for a false yes.
    pub answer: Answer,
    /// The events up to the answer, where the checker reports its place.
    pub events: Option<u64>,
    /// The characters of text up to it.
    pub chars: Option<u64>,
    /// The checker's reason, cut after 300 characters.
    pub reason: String,
}

/// The wrong streams of one checker: those that are first by corpus and id, so that the order in
/// which parts are merged does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct WrongStreams {
    limit: usize,
    missed: BTreeSet<WrongStream>,
    false_yes: BTreeSet<WrongStream>,
}

impl WrongStreams {
    /// No streams; at most `limit` of a kind are kept.
    #[must_use]
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            missed: BTreeSet::new(),
            false_yes: BTreeSet::new(),
        }
    }

    /// How many of a kind are kept.
    #[must_use]
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Streams with a call to which the answer was not yes.
    #[must_use]
    pub(crate) fn missed(&self) -> &BTreeSet<WrongStream> {
        &self.missed
    }

    /// Streams without a call to which the answer was yes.
    #[must_use]
    pub(crate) fn false_yes(&self) -> &BTreeSet<WrongStream> {
        &self.false_yes
    }

    /// Keeps the stream if the outcome is wrong.
    pub(crate) fn add(&mut self, measured: &Measured, outcome: &Outcome) {
        let kept = match (measured.has_tool_call, outcome.answer) {
            (true, Answer::No | Answer::Undecided) => &mut self.missed,
            (false, Answer::Yes) => &mut self.false_yes,
            _ => return,
        };
        kept.insert(WrongStream {
            corpus: cut(&measured.corpus, ID_LIMIT),
            id: cut(&measured.id, ID_LIMIT),
            answer: outcome.answer,
            events: outcome.at.map(|at| at.events),
            chars: outcome.at.map(|at| at.chars),
            reason: cut(&outcome.reason, REASON_LIMIT),
        });
        keep(kept, self.limit);
    }

    /// Adds the streams of `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        self.missed.extend(other.missed);
        self.false_yes.extend(other.false_yes);
        keep(&mut self.missed, self.limit);
        keep(&mut self.false_yes, self.limit);
    }
}

/// Drops all but the first `limit`.
fn keep(kept: &mut BTreeSet<WrongStream>, limit: usize) {
    while kept.len() > limit {
        kept.pop_last();
    }
}
