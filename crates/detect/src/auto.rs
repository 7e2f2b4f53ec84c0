//! What the checker `auto` knows of texts and models: how likely a call still is, from what has
//! come so far.
//!
//! `words.rs` has the words by which models announce a call, `signs.rs` reads a text for them,
//! `origin.rs` is what the start of a stream shows of its model and tools, `table.rs` holds the
//! learned counts, and `limits.rs` turns these into the places at which the risk falls under a limit.
//! [`Texts`] reads a text for calls, and [`Observer`] counts one more stream. `docs/evaluation.md` explains
//! the model.

use crate::checker::{CallFilter, Meaning, StreamEnding};
use crate::text_calls::{Found, TextCalls};
use event::payload::FinishReason;
use event::{Event, Kind};
use origin::OfferedTools;
use tag::{Options, Streams, Tag};

mod limits;
mod origin;
mod signs;
mod table;
mod words;

pub(crate) use limits::Limits;
pub(crate) use origin::Origin;
pub(crate) use signs::Signs;
pub use table::{Observation, Table, TableError};
pub(crate) use words::Sign;

/// Reads choice 0 of a stream up to its first call, in an event or in the text.
pub struct Observer {
    text: TextCalls,
    seen: Seen,
}

struct Seen {
    origin: Origin,
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
    /// Of the stream that `first` begins; [`Observer::push`] takes this event too.
    pub fn new(first: &Event<'_>) -> Self {
        let (origin, calls) = (Origin::read(first), CallFilter::default());
        let text = TextCalls::new(Texts::default().begin(&origin, first), calls.clone());
        Observer {
            text,
            seen: Seen {
                origin,
                calls,
                signs: Signs::default(),
                has_call: false,
            },
        }
    }

    /// Takes the next event; those of other choices do not count.
    pub fn push(&mut self, event: &Event<'_>) {
        let Observer { text, seen } = self;
        if !seen.has_call && event.choice() == 0 {
            text.push(event, &mut |found| seen.take(found));
        }
    }

    /// Ends the stream, which did not fail.
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

impl Seen {
    fn take(&mut self, found: Found<'_, '_>) {
        let Seen {
            origin,
            calls,
            signs,
            has_call,
        } = self;
        match found {
            _ if *has_call => {}
            Found::Call(_) => *has_call = true,
            Found::Text(text) => drop(signs.push(text, &origin.tools, None)),
            Found::Event(event) if event.kind() == Kind::ServerItem => signs.item(),
            Found::Event(event) => match calls.meaning(event) {
                Meaning::Call(_) => *has_call = true,
                Meaning::Text(text) => drop(signs.push(&text, &origin.tools, None)),
                Meaning::OtherCall | Meaning::Nothing => {}
            },
        }
    }
}

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
