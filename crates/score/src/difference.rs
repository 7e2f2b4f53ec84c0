//! Compares two recordings by their meaning.
//!
//! The comparison covers texts, calls with their arguments as values, results, and the finish
//! reason. It ignores ids, times, how a text was split, the order of keys, and the spelling of
//! numbers. Lists of different lengths are aligned at their start and their end, so that an added
//! item is reported as one. The time is linear in the length of the texts.

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

/// Returns the first differences between two recordings, at most `limit`, in the order of the
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
