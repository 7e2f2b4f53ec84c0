//! `lookahead:N`: no, once N characters of text have come without a call.
//!
//! Characters are counted, and not events: providers cut the same text into 1 or 1,000 deltas. White space alone is no text, since
//! models write it before their calls too: they are counted from the first that is none, and at the end only once text follows.

use crate::checker::{Calls, Checker, CheckerRow, End, Meaning, Verdict, none};
use event::Event;
use std::rc::Rc;

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "lookahead:N",
    help: "no after N characters of text; white space before it does not count",
    factory: |calls, limit| {
        let limit = limit.parse().ok()?;
        Some(Rc::new(move || Box::new(Lookahead { calls: calls.clone(), limit, seen: 0, white: 0 })))
    },
};

struct Lookahead {
    calls: Calls,
    /// How many characters (Unicode scalar values) of text decide.
    limit: u64,
    /// How many have come.
    seen: u64,
    /// White space since then, which counts once text follows it.
    white: u64,
}

impl Lookahead {
    /// Counts one piece of text; gives whether the limit is reached.
    fn count(&mut self, text: &str) -> bool {
        for c in text.chars() {
            if !c.is_whitespace() {
                self.seen += std::mem::take(&mut self.white) + 1;
            } else if self.seen > 0 {
                self.white += 1;
            }
        }
        self.seen > 0 && self.seen >= self.limit
    }
}

impl Checker for Lookahead {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::Text(text) => self
                .count(&text)
                .then(|| Verdict::new(false, format!("{} characters of text without a call", self.limit))),
            Meaning::OtherCall | Meaning::Nothing => None,
        }
    }

    fn end(&mut self, end: End) -> Option<Verdict> {
        none(end)
    }
}
