//! `lookahead:N`: no, once N characters of text have come without a call.
//!
//! Characters are counted, and not events: providers cut the same text into 1 or 1,000 deltas.

use crate::checker::{Calls, Checker, End, Meaning, Verdict, none};
use event::Event;

pub(crate) struct Lookahead {
    pub calls: Calls,
    /// How many characters (Unicode scalar values) of text are waited for.
    pub limit: u64,
    pub seen: u64,
}

impl Checker for Lookahead {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::Text(text) => {
                self.seen += text.chars().count() as u64;
                (self.seen >= self.limit)
                    .then(|| Verdict::new(false, format!("{} characters of text without a call", self.limit)))
            }
            Meaning::OtherCall | Meaning::Nothing => None,
        }
    }

    fn end(&mut self, end: End) -> Option<Verdict> {
        none(end)
    }
}
