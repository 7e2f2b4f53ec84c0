//! A bounded list of the streams on which a checker was wrong.

use crate::group::cut;
use crate::measured::{Answer, Measured, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum length of an id in characters; longer ids are cut, so that hostile ids do not fill the
/// memory.
const ID_LIMIT: usize = 1_000;
/// Maximum length of a reason, in characters.
const REASON_LIMIT: usize = 300;

/// A stream on which a checker was wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct WrongStream {
    /// The path of the index file that lists the stream, as the user typed it.
    pub corpus: String,
    /// The id, cut after 1,000 characters.
    pub id: String,
    /// The answer: `no` or `undecided` for a missed call, `yes` for a false yes.
    pub answer: Answer,
    /// The number of events up to the answer; `None` if the checker does not report its place.
    pub events: Option<u64>,
    /// The number of characters of text up to the answer; `None` if unknown.
    pub chars: Option<u64>,
    /// The checker's reason, cut after 300 characters.
    pub reason: String,
}

/// The first wrong streams of one checker by corpus and id, so that the order in which parts are
/// merged does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct WrongStreams {
    limit: usize,
    missed: BTreeSet<WrongStream>,
    false_yes: BTreeSet<WrongStream>,
}

impl WrongStreams {
    /// Returns an empty list, which keeps at most `limit` streams of each kind.
    #[must_use]
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            missed: BTreeSet::new(),
            false_yes: BTreeSet::new(),
        }
    }

    /// Returns the maximum number of streams of each kind.
    #[must_use]
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the streams with a call and an answer other than yes.
    #[must_use]
    pub(crate) fn missed(&self) -> &BTreeSet<WrongStream> {
        &self.missed
    }

    /// Returns the streams without a call and with the answer yes.
    #[must_use]
    pub(crate) fn false_yes(&self) -> &BTreeSet<WrongStream> {
        &self.false_yes
    }

    /// Adds the stream if the outcome is wrong.
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

/// Drops all but the first `limit` streams.
fn keep(kept: &mut BTreeSet<WrongStream>, limit: usize) {
    while kept.len() > limit {
        kept.pop_last();
    }
}
