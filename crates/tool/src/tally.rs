//! The counts of a plan, from which a command makes its exit status.

use crate::turn::Turn;

/// The counts of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tool messages.
    pub messages: u64,
    /// Whether a result is the turn's final answer.
    pub is_final: bool,
    /// Calls that wait for a person.
    pub pending: u64,
    /// Calls that no message confirmed although their stream did not fail.
    pub unconfirmed: u64,
    /// Calls that were started.
    pub started: u64,
    /// Streams that failed, or ended without a `stream_end`.
    pub failed: u64,
    /// Streams whose deltas no stage merged: they ended without a `tool_call` and without the
    /// assistant's message.
    pub unmerged: u64,
    /// Whether a line within a turn was not an event: it may have been a call or the message.
    pub lost: bool,
}

impl Tally {
    /// Counts a turn that ended without its message.
    pub(crate) fn unconfirmed(&mut self, turn: &Turn) {
        let calls = turn.calls().count() as u64;
        self.unconfirmed += calls;
        self.unmerged += u64::from(turn.deltas && calls == 0);
    }

    /// Whether the turn failed, even without an `error` event.
    pub fn is_failure(&self) -> bool {
        let answered = self.messages == 0 || self.is_final;
        self.failed + self.unconfirmed + self.unmerged > 0
            || (self.lost && answered && self.pending == 0)
    }
}

/// Whether a line that is not an event may be one that was cut or grew too long: it begins or ends
/// as a JSON object does. `raw` is the line or its beginning.
pub(crate) fn may_hold_event(raw: &str) -> bool {
    let text = raw.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    text.is_empty() || text.starts_with('{') || text.ends_with('}')
}
