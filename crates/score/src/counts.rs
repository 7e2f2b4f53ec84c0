//! The sums over streams and answers. They are integers, so that the order of addition does not
//! change the result.

use crate::add_up::AddUp;
use crate::clusters::{self, Cell, Clusters};
use crate::histogram::Histogram;
use crate::measured::{Answer, Measured, Outcome, Place};
use serde::{Deserialize, Serialize};

/// The number of random groups of sources for a whole corpus. Intervals from this many groups are
/// as good as intervals from the sources themselves.
const GROUPS_OF_ALL: u16 = 4096;
/// The number of groups for a single API, provider, model, tag or corpus, of which there may be
/// thousands.
const GROUPS_OF_PART: u16 = 32;
/// The number of equal parts into which the text of a stream is divided, to count in which part
/// decisions fall.
pub(crate) const PARTS_OF_TEXT: usize = 20;
/// The fraction of one stream is stored as an integer number of 1/`SHARE_UNIT`.
pub(crate) const SHARE_UNIT: u64 = 1_000_000_000;

counts! {
/// Counts of streams and of how their calls were read, independent of the checkers.
#[derive(Default)]
pub struct StreamCounts {
    /// The number of streams.
    pub streams: u64,
    /// The number of streams that call a tool.
    pub calling: u64,
    /// The number of calls in the labels.
    pub expected: u64,
    /// The number of calls read from the streams.
    pub read: u64,
    /// The number of calls that are in both.
    pub exact: u64,
    /// The number of streams with calls whose calls, as read, equal those of the label in order.
    pub in_order: u64,
    /// The number of calls whose arguments were repaired.
    pub repaired: u64,
    /// The number of truncated calls.
    pub incomplete: u64,
    /// Microseconds from the first complete call to the end of its stream.
    pub saved_us: Histogram,
}
}

counts! {
/// The answers of one checker, counted over all streams and for each group.
pub struct Counts {
    /// The number of answers in each [`Cell`].
    pub cells: [u64; 6],
    /// The same counts by source.
    pub clusters: Clusters,
    /// The number of streams whose last answer differs from the first.
    pub revised: u64,
    /// The number of streams whose answer depended on the split.
    pub split: u64,
    /// Characters before the decision, summed over the streams without calls.
    pub waited: u64,
    /// All characters of these streams.
    pub text: u64,
    /// The fraction of the text before the decision in units of 1/[`SHARE_UNIT`], summed over these
    /// streams.
    pub waited_shares: u64,
    /// The number of these streams that have text.
    pub texts: u64,
    /// Characters before the decision.
    pub decision_chars: Histogram,
}
}

counts! {
/// Counts for one checker that are kept only for all streams, not for groups.
#[derive(Default)]
pub struct Details {
    /// The distance of decisions from the start of the stream.
    pub decision: Distances,
    /// The distance of decisions from the first event of a call.
    pub late: Distances,
    /// The same distance in characters.
    pub late_chars: Histogram,
    /// The number of decisions in each part of the text; streams without text are not counted.
    pub parts: [u64; PARTS_OF_TEXT],
    /// Characters before a yes.
    pub yes_chars: Histogram,
    /// The decisions of `parts` that were a yes.
    pub yes_parts: [u64; PARTS_OF_TEXT],
}
}

counts! {
/// Distances in a stream; those in characters are stored beside this struct, or in [`Counts`].
#[derive(Default)]
pub struct Distances {
    /// The distance in events.
    pub events: Histogram,
    /// The distance in bytes of UTF-8.
    pub bytes: Histogram,
    /// The distance in microseconds of recorded time.
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
    /// Returns empty counts for the streams of a whole corpus.
    #[must_use]
    pub(crate) fn of_all() -> Self {
        Self::new(GROUPS_OF_ALL)
    }

    /// Returns empty counts for the streams of one group.
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

    /// Returns the number of answers in a cell.
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
                // A decision at the end of the text belongs to the last part.
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
    /// Counts the distance from `from` to `to`; it is 0 if `to` comes first.
    fn add(&mut self, to: Place, from: Place) {
        self.events.record(to.events.saturating_sub(from.events));
        self.bytes.record(to.bytes.saturating_sub(from.bytes));
        if let (Some(to), Some(from)) = (to.ms, from.ms) {
            self.us.record(microseconds(to - from));
        }
    }
}

/// Returns the cell of an answer.
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

/// Returns the place of a yes or a no; `None` for an undecided answer or an unknown place.
fn decision(outcome: &Outcome) -> Option<Place> {
    outcome.at.filter(|_| outcome.answer != Answer::Undecided)
}

/// Returns the place of a correct yes, and that of the first event of a call.
fn lateness(measured: &Measured, outcome: &Outcome) -> Option<(Place, Place)> {
    let is_right = measured.has_tool_call && outcome.answer == Answer::Yes;
    outcome.at.zip(measured.first_call).filter(|_| is_right)
}

/// Returns `part / whole` in units of 1/`unit`, rounded down; `None` if `whole` is 0.
fn share(part: u64, whole: u64, unit: u64) -> Option<u64> {
    let share = (u128::from(part) * u128::from(unit)).checked_div(u128::from(whole))?;
    u64::try_from(share).ok()
}

/// Converts milliseconds to whole microseconds; negative values and NaN become 0.
fn microseconds(ms: f64) -> u64 {
    // `as` saturates, and converts NaN to 0.
    (ms * 1000.0).round() as u64
}
