//! Counts one stream for the table: how long its text went on after each sign, and whether a call
//! followed.

use super::observation::Observation;
use super::origin::Origin;
use super::signs::Signs;
use super::texts::Texts;
use crate::checker::{CallFilter, Meaning, StreamEnding};
use crate::text_calls::{Found, TextCalls};
use event::payload::FinishReason;
use event::{Event, Kind};

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
