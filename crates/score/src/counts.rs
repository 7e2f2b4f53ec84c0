//! What streams and answers add up to: integers alone, so that any order of adding gives the same
//! bits.

use crate::add_up::AddUp;
use crate::clusters::{self, Cell, Clusters};
use crate::histogram::Histogram;
use crate::measured::{Answer, Measured, Outcome, Place};
use serde::{Deserialize, Serialize};

/// Random groups of sources of a whole corpus. An interval computed from so many is as good as one
/// from each source.
const GROUPS_OF_ALL: u16 = 4096;
/// Those of one API, provider, model, tag or corpus, of which there may be thousands.
const GROUPS_OF_PART: u16 = 32;
/// In how many parts the text of a stream is divided, to count in which part decisions fall.
pub(crate) const PARTS_OF_TEXT: usize = 20;
/// A share of one stream is kept as a whole number of parts of this many.
pub(crate) const SHARE_UNIT: u64 = 1_000_000_000;

counts! {
/// Streams, and how their calls were read, whatever the checkers answered.
#[derive(Default)]
pub struct StreamCounts {
    /// Streams.
    pub streams: u64,
    /// Streams that call a tool.
    pub calling: u64,
    /// Calls of the labels.
    pub expected: u64,
    /// Calls that were read.
    pub read: u64,
    /// Calls that are in both.
    pub exact: u64,
    /// Streams with calls, of which the calls that were read equal those of the label in order.
    pub in_order: u64,
    /// Calls whose arguments were repaired.
    pub repaired: u64,
    /// Calls that were cut.
    pub incomplete: u64,
    /// Microseconds between the first complete call and the end of its stream.
    pub saved_us: Histogram,
}
}

counts! {
/// What one checker answered: what is counted of all streams and of each group.
pub struct Counts {
    /// How many answers fell into each [`Cell`].
    pub cells: [u64; 6],
    /// The same by source.
    pub clusters: Clusters,
    /// Streams whose last answer differs from the first.
    pub revised: u64,
    /// Streams whose answer depended on the split.
    pub split: u64,
    /// Characters that had gone by at the decision, of streams without calls.
    pub waited: u64,
    /// All characters of these streams.
    pub text: u64,
    /// The share that had gone by of each such stream, in parts of [`SHARE_UNIT`], added up.
    pub waited_shares: u64,
    /// Such streams that have text.
    pub texts: u64,
    /// Characters up to the decision.
    pub decision_chars: Histogram,
}
}

counts! {
/// What is counted of one checker over all streams only.
#[derive(Default)]
pub struct Details {
    /// Where the decisions were made.
    pub decision: Distances,
    /// How far they were from the first event of a call.
    pub late: Distances,
    /// The same in characters.
    pub late_chars: Histogram,
    /// Decisions by the part of the text in which they fell; streams without text are not counted.
    pub parts: [u64; PARTS_OF_TEXT],
    /// Characters up to a yes.
    pub yes_chars: Histogram,
    /// Those of `parts` that were a yes.
    pub yes_parts: [u64; PARTS_OF_TEXT],
}
}

counts! {
/// Distances in a stream; those in characters are beside it, or in [`Counts`].
#[derive(Default)]
pub struct Distances {
    /// Events.
    pub events: Histogram,
    /// Bytes of UTF-8.
    pub bytes: Histogram,
    /// Microseconds of recorded time.
    pub us: Histogram,
}
}

impl StreamCounts {
    /// Counts one stream.
    pub(crate) fn add(&mut self, measured: &Measured) {
        let calls = &measured.calls;
        self.add_up(&StreamCounts {
            streams: 1,
            calling: u64::from(measured.has_tool_call),
            expected: calls.expected,
            read: calls.read,
            exact: calls.exact,
            in_order: u64::from(measured.has_tool_call && calls.is_in_order),
            repaired: calls.repaired,
            incomplete: calls.incomplete,
            saved_us: Histogram::default(),
        });
        if let Some(ms) = measured.saved_ms {
            self.saved_us.record(microseconds(ms));
        }
    }
}

impl Counts {
    /// No answers to the streams of a whole corpus.
    #[must_use]
    pub(crate) fn of_all() -> Self {
        Self::new(GROUPS_OF_ALL)
    }

    /// No answers to the streams of one group.
    #[must_use]
    pub(crate) fn of_group() -> Self {
        Self::new(GROUPS_OF_PART)
    }

    fn new(groups: u16) -> Self {
        Self {
            cells: [0; 6],
            clusters: Clusters::new(groups),
            revised: 0,
            split: 0,
            waited: 0,
            text: 0,
            waited_shares: 0,
            texts: 0,
            decision_chars: Histogram::default(),
        }
    }

    /// Counts the outcome of one stream.
    pub(crate) fn add(&mut self, measured: &Measured, outcome: &Outcome) {
        let cell = cell(measured.has_tool_call, outcome.answer);
        self.cells[cell as usize] += 1;
        self.clusters.add(clusters::hash(&measured.source), cell);
        self.revised += u64::from(outcome.last != outcome.answer);
        self.split += u64::from(outcome.depends_on_split);
        if !measured.has_tool_call {
            let text = measured.end.chars;
            let waited = outcome.at.map_or(text, |at| at.chars.min(text));
            self.waited = self.waited.saturating_add(waited);
            self.text = self.text.saturating_add(text);
            if let Some(share) = share(waited, text, SHARE_UNIT) {
                self.waited_shares = self.waited_shares.saturating_add(share);
                self.texts += 1;
            }
        }
        if let Some(at) = decision(outcome) {
            self.decision_chars.record(at.chars);
        }
    }

    /// How many answers are in a cell.
    #[must_use]
    pub(crate) fn cell(&self, cell: Cell) -> u64 {
        self.cells[cell as usize]
    }
}

impl Details {
    /// Counts the outcome of one stream.
    pub(crate) fn add(&mut self, measured: &Measured, outcome: &Outcome) {
        if let Some(at) = decision(outcome) {
            self.decision.add(
                at,
                Place {
                    ms: at.ms.map(|_| 0.0),
                    ..Place::default()
                },
            );
            let is_yes = outcome.answer == Answer::Yes;
            if is_yes {
                self.yes_chars.record(at.chars);
            }
            let parts = PARTS_OF_TEXT as u64;
            if let Some(part) = share(at.chars.min(measured.end.chars), measured.end.chars, parts) {
                // The whole text belongs to the last part.
                let part = usize::try_from(part.min(parts - 1)).unwrap_or(0);
                self.parts[part] += 1;
                self.yes_parts[part] += u64::from(is_yes);
            }
        }
        if let Some((at, call)) = lateness(measured, outcome) {
            self.late.add(at, call);
            self.late_chars.record(at.chars.saturating_sub(call.chars));
        }
    }
}

impl Distances {
    /// Counts the distance from `from` to `to`, which is 0 where `to` comes first.
    fn add(&mut self, to: Place, from: Place) {
        self.events.record(to.events.saturating_sub(from.events));
        self.bytes.record(to.bytes.saturating_sub(from.bytes));
        if let (Some(to), Some(from)) = (to.ms, from.ms) {
            self.us.record(microseconds(to - from));
        }
    }
}

/// The cell of an answer.
fn cell(has_tool_call: bool, answer: Answer) -> Cell {
    match (has_tool_call, answer) {
        (true, Answer::Yes) => Cell::TruePositive,
        (false, Answer::Yes) => Cell::FalsePositive,
        (false, Answer::No) => Cell::TrueNegative,
        (true, Answer::No) => Cell::FalseNegative,
        (true, Answer::Undecided) => Cell::UndecidedCall,
        (false, Answer::Undecided) => Cell::UndecidedText,
    }
}

/// Where a yes or a no was given.
fn decision(outcome: &Outcome) -> Option<Place> {
    outcome.at.filter(|_| outcome.answer != Answer::Undecided)
}

/// Where a right yes was given, and the first event of a call.
fn lateness(measured: &Measured, outcome: &Outcome) -> Option<(Place, Place)> {
    let is_right = measured.has_tool_call && outcome.answer == Answer::Yes;
    outcome.at.zip(measured.first_call).filter(|_| is_right)
}

/// `part` of `whole` in units of which `unit` are the whole, rounded down; `None` where the whole
/// is empty.
fn share(part: u64, whole: u64, unit: u64) -> Option<u64> {
    let share = (u128::from(part) * u128::from(unit)).checked_div(u128::from(whole))?;
    u64::try_from(share).ok()
}

/// Milliseconds as whole microseconds; 0 for what is negative or not a number.
fn microseconds(ms: f64) -> u64 {
    // `as` saturates, and makes 0 of what is not a number.
    (ms * 1000.0).round() as u64
}
