//! `lookahead:N`: no, once N characters of text have come without a call.
//!
//! It counts characters, not events: providers split the same text into 1 or 1,000 deltas. White
//! space alone does not count, since models write it before calls too: the count starts at the
//! first other character, and white space after it counts once more text follows.

use crate::checker::{
    CallFilter, Checker, CheckerRow, Meaning, StreamEnding, Verdict, alike, none,
};
use event::Event;

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "lookahead:N",
    help: "no after N characters of text; white space before it does not count",
    checkers: |calls, limit, _| {
        let limit = limit.parse().ok()?;
        alike(move || Lookahead {
            calls: calls.clone(),
            limit,
            seen: 0,
            white: 0,
        })
    },
};

struct Lookahead {
    calls: CallFilter,
    /// The number of characters (Unicode scalar values) of text that decides.
    limit: u64,
    /// How many have come.
    seen: u64,
    /// White space since then, which counts once text follows it.
    white: u64,
}

impl Lookahead {
    /// Counts one piece of text; returns whether the limit is reached.
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
            Meaning::Text(text) => self.count(&text).then(|| {
                Verdict::new(
                    false,
                    format!("{} characters of text without a call", self.limit),
                )
            }),
            Meaning::OtherCall | Meaning::Nothing => None,
        }
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        none(ending)
    }
}
