//! Which streams `auto` reads the text of, for calls.

use super::origin::{OfferedTools, Origin};
use event::Event;
use tag::{Options, Streams, Tag};

/// Reads the text of streams for calls, in any dialect. One value serves all streams of a run.
#[derive(Debug)]
pub(crate) struct Texts(Streams);

impl Default for Texts {
    fn default() -> Self {
        // Text that may still be reasoning is not held back: a no would wait for it.
        Texts(Streams::new(Options {
            always: true,
            eager: true,
            ..Options::default()
        }))
    }
}

impl Texts {
    /// The parser of the stream of this origin that `first` begins. `None` where the request had no
    /// tools: its text is not a call.
    pub fn begin(&self, origin: &Origin, first: &Event<'_>) -> Option<Tag> {
        (origin.offered != OfferedTools::None).then(|| self.0.begin(first))
    }
}
