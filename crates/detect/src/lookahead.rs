//! `lookahead:N`: no, once N characters of text have come without a call.
//!
//! Characters are counted, and not events: providers cut the same text into 1 or 1,000 deltas. White space alone is no text, since
//! models write it before their calls too: they are counted from the first that is none, and at the end only once text follows.

use crate::checker::{Calls, Checker, End, Meaning, Verdict, none};
use event::Event;

pub(crate) struct Lookahead {
    pub calls: Calls,
    /// How many characters (Unicode scalar values) of text are waited for.
    pub limit: u64,
    pub seen: u64,
    /// White space since then, which counts once text follows it.
    pub white: u64,
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
