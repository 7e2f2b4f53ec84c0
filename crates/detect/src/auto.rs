//! The statistical model behind the checker `auto`: how likely a call still is after the text so
//! far.
//!
//! `words.rs` lists the words with which models announce a call, `signs.rs` searches a text for
//! these words, `origin.rs` reads the model and the tools from the start of a stream, `table.rs`
//! holds the learned counts, and `limits.rs` computes from the counts the text lengths at which the
//! risk falls below a limit. [`Texts`] searches a text for calls, and [`Observer`] measures one
//! more stream for the counts. `docs/evaluation.md` explains the model.

use crate::checker::{CallFilter, Meaning, StreamEnding};
use crate::text_calls::{ChoicePart, TextCalls};
use event::payload::FinishReason;
use event::{Event, Kind};
use origin::OfferedTools;
use tag::{Streams, Tag, TagOptions};

mod limits;
mod origin;
mod signs;
mod table;
mod words;

pub(crate) use limits::AutoLimits;
pub(crate) use origin::StreamOrigin;
pub(crate) use signs::Signs;
pub use table::{AutoTable, Observation, TableError};
pub(crate) use words::Sign;

/// Reads choice 0 of a stream up to its first call, which may be an event or text.
pub struct Observer {
    text: TextCalls,
    seen: SeenSigns,
}

struct SeenSigns {
    origin: StreamOrigin,
    calls: CallFilter,
    signs: Signs,
    has_call: bool,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer")
            .field("signs", &self.seen.signs)
            .finish_non_exhaustive()
    }
}

impl Observer {
    /// Returns an observer for the stream that `first` starts; pass `first` to [`Observer::push`]
    /// too.
    pub fn new(first: &Event<'_>) -> Self {
        let origin = StreamOrigin::read(first);
        let calls = CallFilter::default();
        let text = TextCalls::new(Texts::default().begin(&origin, first), calls.clone());
        Observer {
            text,
            seen: SeenSigns {
                origin,
                calls,
                signs: Signs::default(),
                has_call: false,
            },
        }
    }

    /// Reads the next event; events of choices other than 0 are ignored.
    pub fn push(&mut self, event: &Event<'_>) {
        let Observer { text, seen } = self;
        if !seen.has_call && event.choice() == 0 {
            text.push(event, &mut |found| seen.take(found));
        }
    }

    /// Handles the end of a stream that did not fail, and returns its counts.
    pub fn end(self) -> Observation {
        let Observer { mut text, mut seen } = self;
        if !seen.has_call {
            text.end(StreamEnding::Stream(FinishReason::Stop), &mut |found| {
                seen.take(found)
            });
        }
        let runs = seen.signs.runs(&seen.origin.tools);
        Observation {
            chars: seen.signs.chars(),
            has_call: seen.has_call,
            origin: seen.origin,
            runs,
        }
    }
}

impl SeenSigns {
    fn take(&mut self, found: ChoicePart<'_, '_>) {
        let SeenSigns {
            origin,
            calls,
            signs,
            has_call,
        } = self;
        match found {
            _ if *has_call => {}
            ChoicePart::Call(_) => *has_call = true,
            ChoicePart::Text(text) => drop(signs.push(text, &origin.tools, None)),
            ChoicePart::Event(event) if event.kind() == Kind::ServerItem => signs.item(),
            ChoicePart::Event(event) => match calls.meaning(event) {
                Meaning::Call(_) => *has_call = true,
                Meaning::Text(text) => drop(signs.push(&text, &origin.tools, None)),
                Meaning::OtherCall | Meaning::Nothing => {}
            },
        }
    }
}

/// Searches the text of streams for calls in any dialect. A single value serves all streams of a
/// run.
#[derive(Debug)]
pub(crate) struct Texts(Streams);

impl Default for Texts {
    fn default() -> Self {
        // Text that may still be reasoning is not held back, because a no would have to wait for
        // it.
        Texts(Streams::new(TagOptions {
            always: true,
            eager: true,
            ..TagOptions::default()
        }))
    }
}

impl Texts {
    /// Returns the parser for the stream that `first` starts, with this origin. Returns `None` if
    /// the request had no tools, because its text then contains no calls.
    pub(crate) fn begin(&self, origin: &StreamOrigin, first: &Event<'_>) -> Option<Tag> {
        (origin.offered != OfferedTools::None).then(|| self.0.begin(first))
    }
}
