//! The answers of the streams of a run, and what they are together.

use std::cell::Cell;
use std::rc::Rc;

/// The answer of one stream, or of all streams together, as grep answers over several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamAnswer {
    /// It does not call a tool.
    #[default]
    No,
    /// It failed before that was decided.
    Undecided,
    /// It calls a tool.
    Yes,
}

impl StreamAnswer {
    pub(crate) fn of(is_undecided: bool, tool_call: bool) -> Self {
        match (is_undecided, tool_call) {
            (true, _) => StreamAnswer::Undecided,
            (false, true) => StreamAnswer::Yes,
            (false, false) => StreamAnswer::No,
        }
    }
}

/// The answers of the streams of a run. Clones share them: each machine adds its own.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// How many streams gave each answer.
    counts: Rc<Cell<[u64; 3]>>,
}

impl Answers {
    /// The answer of all streams so far: a yes of any stream outweighs everything, and undecided
    /// outweighs a no.
    pub fn answer(&self) -> StreamAnswer {
        let counts = self.counts.get();
        let some = |answer: &StreamAnswer| counts[*answer as usize] > 0;
        [StreamAnswer::Yes, StreamAnswer::Undecided]
            .into_iter()
            .find(some)
            .unwrap_or_default()
    }

    /// Adds the answer of an input without a stream.
    pub fn undecided(&self) {
        self.add(StreamAnswer::Undecided);
    }

    /// Adds the answer of a stream.
    pub(crate) fn add(&self, answer: StreamAnswer) {
        let mut counts = self.counts.get();
        counts[answer as usize] += 1;
        self.counts.set(counts);
    }

    /// Takes an answer back, which was revised.
    pub(crate) fn take_back(&self, answer: StreamAnswer) {
        let mut counts = self.counts.get();
        counts[answer as usize] = counts[answer as usize].saturating_sub(1);
        self.counts.set(counts);
    }
}
