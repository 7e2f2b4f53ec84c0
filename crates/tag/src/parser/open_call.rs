//! A call from its first marker to the end of its last one.

use super::contest::Contest;
use super::gate::Gate;
use super::prose::{Exclusion, Prose};

/// A call, several that belong together, or text that may still turn out to be one.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// What the text around it is. A call that counts ends reasoning.
    pub within: Prose,
    /// The readings of its first byte that have failed if this is not a call.
    pub exclusion: Exclusion,
    pub status: CallStatus,
    pub contest: Contest,
}

/// What has been emitted of the text that [`Contest`] keeps.
#[derive(Debug)]
pub(super) enum CallStatus {
    /// Nothing: the text has no name so far.
    Nothing,
    /// A call that is not complete. The byte that closes its arguments is held back until it is, so
    /// that nobody runs a call that the text may still turn into something else.
    Open {
        gate: Gate,
        /// The end of reasoning may still retract the call, so that its last byte waits for the end
        /// of the text.
        waits: bool,
    },
    /// A complete call.
    Complete,
    /// Nothing: the call follows a quotation mark. It is read to its end, so that nothing inside it
    /// is taken for a call, and released as text.
    Quoted,
    /// Nothing: the tool is not in the list. The call is read and released as a quoted one is.
    Unlisted {
        /// The same text has a call that counts, so that it cannot be released.
        after_call: bool,
    },
    /// Nothing, after an unlisted call that was released. What belongs to the same section is
    /// released, too.
    Released,
}

impl OpenCall {
    /// A call before its first byte.
    pub fn new(
        contest: Contest,
        within: Prose,
        is_quoted: bool,
        exclusion: Exclusion,
    ) -> Box<OpenCall> {
        let status = if is_quoted {
            CallStatus::Quoted
        } else {
            CallStatus::Nothing
        };
        Box::new(OpenCall {
            within,
            exclusion,
            status,
            contest,
        })
    }

    /// Whether another event may come before the rest of the call: a part of it was emitted, or its
    /// marker was read, which ordinary text does not have.
    pub fn goes_on(&self) -> bool {
        match self.status {
            CallStatus::Nothing => self.contest.is_marked(),
            CallStatus::Open { .. } | CallStatus::Complete => true,
            CallStatus::Quoted | CallStatus::Unlisted { .. } | CallStatus::Released => false,
        }
    }
}

impl CallStatus {
    /// Whether the call at hand is not emitted and will be text.
    pub fn is_withheld(&self) -> bool {
        matches!(
            self,
            CallStatus::Quoted | CallStatus::Unlisted { .. } | CallStatus::Released
        )
    }

    /// Whether arguments are emitted as they come.
    pub fn is_direct(&self) -> bool {
        match self {
            CallStatus::Open { gate, .. } => !gate.is_closed(),
            _ => false,
        }
    }
}
