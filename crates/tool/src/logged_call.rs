//! What a log has of one call.

use crate::call::RequestedCall;
use crate::canonical::Hash;
use crate::result::Answer;
use std::rc::Rc;

/// One call of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedCall {
    /// The digest of its name and arguments, if an assistant's message lists it.
    pub fingerprint: Option<Hash>,
    /// An assistant's message lists it.
    pub listed: bool,
    /// Its `tool_use` event was written.
    pub started: bool,
    /// Its result.
    pub answer: Option<Rc<Answer>>,
    /// A tool message answers it.
    pub sent: bool,
    /// The id of the response that it came in, if the log has it.
    pub response: Option<Box<str>>,
    /// When it was started, in milliseconds since 1970, if the log has that.
    pub time: Option<u64>,
    /// The number of the file that has it first.
    pub file: usize,
}

impl LoggedCall {
    /// Whether the log has all that the call needs.
    pub fn is_over(&self) -> bool {
        self.sent || (self.answer.is_some() && !self.listed)
    }

    /// Whether it can be that call.
    pub fn fits(&self, call: &RequestedCall) -> bool {
        let is_same = match (&self.fingerprint, call.fingerprint()) {
            (Some(mine), Some(other)) => *mine == other,
            _ => true,
        };
        is_same && call.is_in_response(self.response.as_deref())
    }
}
