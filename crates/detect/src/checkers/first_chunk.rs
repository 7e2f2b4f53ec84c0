//! `first-chunk`: the first chunk with text or a call decides. Most frameworks do this; it is wrong
//! whenever text precedes a call. White space counts as text, as it does for most frameworks; only
//! an event with empty text is skipped.
//!
//! A chunk that has text and a call is a yes, as for eino's default
//! (`firstChunkStreamToolCallChecker` in
//! <https://github.com/cloudwego/eino/blob/02c92db59b5e4a73bbb8896aa50dd0e52272eab9/flow/agent/react/react.go>),
//! which asks for calls first.

use crate::checker::{
    CallFilter, Checker, CheckerRow, Meaning, StreamEnding, Verdict, alike, none,
};
use event::payload::ContentDelta;
use event::{Event, Kind};

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "first-chunk",
    help: "the first chunk with text or a call decides",
    checkers: |calls, _, _| {
        alike(move || FirstChunk {
            calls: calls.clone(),
        })
    },
};

struct FirstChunk {
    calls: CallFilter,
}

impl Checker for FirstChunk {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::OtherCall => Some(Verdict::new(false, "a call of another tool came first")),
            // The call of the same chunk follows, and decides.
            Meaning::Text(_)
                if event.kind() == Kind::ContentDelta && ContentDelta::read(event).with_call =>
            {
                None
            }
            Meaning::Text(_) => Some(Verdict::new(false, "text came first")),
            Meaning::Nothing => None,
        }
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        none(ending)
    }
}
