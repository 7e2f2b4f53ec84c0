//! `full`: a call anywhere is a yes at once, and only the end is a no.

use crate::checker::{
    CallFilter, Checker, CheckerRow, Meaning, StreamEnding, Verdict, alike, none,
};
use event::{Event, Kind};

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "full",
    help: "a call anywhere is a yes, only the end is a no",
    checkers: |calls, _, _| {
        alike(move || Full {
            calls: calls.clone(),
        })
    },
};

/// A checker of this kind, for a checker that finds calls elsewhere too.
pub(crate) fn checker(calls: CallFilter) -> Full {
    Full { calls }
}

pub(crate) struct Full {
    calls: CallFilter,
}

impl Checker for Full {
    #[inline]
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        if !matches!(event.kind(), Kind::ToolCallDelta | Kind::ToolCall) {
            return None; // text decides nothing here, so it is not even unescaped
        }
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            _ => None,
        }
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        none(ending)
    }
}
