//! Holds back the end of a call that the text may still retract: what follows the arguments may
//! show that it is not a call, or reasoning may end after it.

use crate::calls::ArgumentsEnd;
use json::Balance;

/// The arguments of one call. All pass but the bytes from the one that closes them, so that nobody
/// takes the call for complete.
#[derive(Debug, Default)]
pub(super) struct Gate {
    balance: Balance,
    is_closed: bool,
    held: String,
}

impl Gate {
    /// Whether the arguments are complete: what follows is held back.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The part of this piece that may be emitted now. `end` comes from the engine, so that most
    /// pieces are not searched for the end a second time.
    pub fn pass<'t>(&mut self, text: &'t str, end: ArgumentsEnd) -> &'t str {
        if self.is_closed {
            self.held.push_str(text);
            return "";
        }
        // A bracket or a quotation mark closes arguments.
        let last = match end {
            ArgumentsEnd::Later => None,
            ArgumentsEnd::Here => text.rfind(['}', ']', '"']),
            ArgumentsEnd::Unknown => self.balance.push(text.as_bytes()).map(|end| end - 1),
        };
        let Some(last) = last else { return text };
        let (now, held) = text.split_at(last);
        self.is_closed = true;
        self.held.push_str(held);
        now
    }

    /// The bytes that did not pass.
    pub fn into_held(self) -> String {
        self.held
    }
}
