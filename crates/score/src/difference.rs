//! Two recordings compared by their meaning.
//!
//! What counts: texts, calls with their arguments as values, results, and the finish. What does
//! not: ids, times, where a text was cut into pieces, the order of keys, and the spelling of
//! numbers. A list that has grown or shrunk is aligned at its beginning and its end, so that one
//! item more is named as that. Time is linear in the texts.

mod compare;
mod found;
mod recording;
mod text;
mod value;

pub use found::{Difference, Locus, Side, What};
pub use recording::{
    CallNotes, Passage, RecordedArguments, RecordedCall, RecordedChoice, RecordedConversation,
    RecordedTurn, RecordedWord, Recording,
};
pub use text::{DiffSettings, Ignored};

/// The first differences of two recordings, at most `limit` of them, in the order of the
/// recordings.
pub fn differences(
    a: &Recording,
    b: &Recording,
    settings: &DiffSettings<'_>,
    limit: usize,
) -> Vec<Difference> {
    let has_results = a.holds_results && b.holds_results;
    let mut walk = compare::CompareWalk::new(settings, limit, has_results);
    walk.recordings(a, b);
    walk.found
}
