//! `first-chunk`: the first event with text or a call decides. Most frameworks do this; it is wrong whenever text precedes a call.
//! White space counts as text, as it does for most frameworks; only an event with empty text is skipped.

use crate::checker::{CallFilter, Checker, CheckerRow, Meaning, StreamEnding, Verdict, alike, none};
use event::Event;

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "first-chunk",
    help: "the first event with text or a call decides",
    checkers: |calls, _, _| alike(move || FirstChunk { calls: calls.clone() }),
};

struct FirstChunk {
    calls: CallFilter,
}

impl Checker for FirstChunk {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::OtherCall => Some(Verdict::new(false, "a call of another tool came first")),
            Meaning::Text(_) => Some(Verdict::new(false, "text came first")),
            Meaning::Nothing => None,
        }
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        none(ending)
    }
}
