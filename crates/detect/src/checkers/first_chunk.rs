//! `first-chunk`: the first event with text or a call decides. What most frameworks do, and wrong whenever text comes first.
//! White space is text here, as most frameworks have it; only an empty event is skipped.

use crate::checker::{Calls, Checker, CheckerRow, End, Meaning, Verdict, none};
use event::Event;
use std::rc::Rc;

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "first-chunk",
    help: "the first event with text or a call decides",
    factory: |calls, _| Some(Rc::new(move || Box::new(FirstChunk { calls: calls.clone() }))),
};

struct FirstChunk {
    calls: Calls,
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

    fn end(&mut self, end: End) -> Option<Verdict> {
        none(end)
    }
}
