//! Counts one stream for the table: how long its text went on after each sign, and whether a call followed.

use super::observation::Observation;
use super::origin::Origin;
use super::signs::Signs;
use crate::checker::{CallFilter, Meaning};
use event::{Event, Kind};

/// Reads choice 0 of a stream up to its first call.
#[derive(Debug)]
pub struct Observer {
    origin: Origin,
    calls: CallFilter,
    signs: Signs,
    has_call: bool,
}

impl Observer {
    /// Of the stream that `first` begins; [`Observer::push`] takes this event too.
    pub fn new(first: &Event<'_>) -> Self {
        Observer { origin: Origin::read(first), calls: CallFilter::default(), signs: Signs::default(), has_call: false }
    }

    /// Takes the next event; those of other choices do not count.
    pub fn push(&mut self, event: &Event<'_>) {
        if self.has_call || event.choice() != 0 {
            return;
        }
        match self.calls.meaning(event) {
            Meaning::Call(_) => self.has_call = true,
            Meaning::Text(text) => drop(self.signs.push(&text, &self.origin.tools, None)),
            _ if event.kind() == Kind::ServerItem => self.signs.item(),
            _ => {}
        }
    }

    /// Ends the stream.
    pub fn end(mut self) -> Observation {
        let runs = self.signs.runs(&self.origin.tools);
        Observation { chars: self.signs.chars(), has_call: self.has_call, origin: self.origin, runs }
    }
}
