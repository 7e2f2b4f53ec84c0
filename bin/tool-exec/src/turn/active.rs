//! A call that was announced, until its result is known.

use crate::call::Handle;
use event::payload::ToolUse;
use std::rc::Rc;
use tool::{Hash, ReadyCall, RequestedCall};

/// A call that runs.
pub struct ActiveCall {
    /// The call.
    pub call: Rc<RequestedCall>,
    /// What it started.
    pub ready: Rc<ReadyCall>,
    /// Ends it.
    pub handle: Rc<Handle>,
    /// The key under which its result is kept, if it is.
    pub cache: Option<Hash>,
    /// Its arguments for people, without secrets.
    pub summary: String,
    /// When it was announced.
    pub timestamp: Option<u64>,
}

impl ActiveCall {
    /// Has `write` write the event that announces the call.
    pub fn announce<T>(&self, write: impl FnOnce(ToolUse<'_>, Option<&str>, u32) -> T) -> T {
        let RequestedCall {
            id,
            name,
            stream,
            choice,
            ..
        } = &*self.call;
        let intent = ToolUse {
            tool_name: (&**name).into(),
            tool_id: (&**id).into(),
            input_summary: (&self.summary).into(),
            timestamp: self.timestamp,
            ..ToolUse::default()
        };
        write(intent, stream.as_deref(), *choice)
    }
}
