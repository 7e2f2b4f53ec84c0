//! The interface of external checkers.

use crate::corpus::CorpusEntry;
use anyhow::Result;
use event::Event;
use score::{Outcome, Place};

/// A checker outside of this process, or its decisions in a file: whatever `--checker` names that
/// `detect` does not have.
pub(crate) trait Judges: Send {
    /// The judge of one reading of the next stream. Called in the order of the corpus, one call at
    /// a time, though several streams may be judged at once. `reading` is 0 for the stream as it
    /// was recorded, and 1, 2, … for the splits of `--resplit`, which follow it at once. `None`
    /// where no answer is known for this reading; of reading 0 that counts as undecided.
    ///
    /// # Errors
    /// Fails, which ends the run, if the checker cannot start or its decisions cannot be read.
    fn judge(
        &mut self,
        entry: &CorpusEntry,
        reading: usize,
    ) -> Result<Option<Box<dyn CheckerJudge>>>;

    /// Called after the last stream.
    ///
    /// # Errors
    /// Fails if the checker failed, or if decisions for unknown streams are left over.
    fn finish(&mut self) -> Result<()>;
}

/// One reading of one stream before a checker outside of this process. It may be used in another
/// thread than the one that made it.
pub(crate) trait CheckerJudge: Send {
    /// Takes the next event, in order. `place` counts the stream up to and with this event. The
    /// event has no name of a stream and no time unless it comes from a log.
    fn push(&mut self, event: &Event<'_>, place: Place);

    /// Waits for the answer, after the last event. `end` is the whole stream. `depends_on_split` is
    /// set by the caller.
    fn outcome(self: Box<Self>, end: Place) -> Outcome;
}
