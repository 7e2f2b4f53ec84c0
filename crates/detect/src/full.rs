//! `full`: a call anywhere is a yes at once, and only the end is a no.

use crate::checker::{Calls, Checker, End, Meaning, Verdict, none};
use event::{Event, Kind};

pub(crate) struct Full {
    pub calls: Calls,
}

impl Checker for Full {
    #[inline]
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        if !matches!(event.kind(), Kind::ToolCallDelta | Kind::ToolCall) {
            return None; // Text is of no interest here, so it is not even unescaped.
        }
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            _ => None,
        }
    }

    fn end(&mut self, end: End) -> Option<Verdict> {
        none(end)
    }
}
