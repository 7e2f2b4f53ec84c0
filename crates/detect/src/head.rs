//! The fields of an event that name a call.

use event::payload::{ToolCall, ToolCallDelta};
use event::{Event, Kind, Text};

/// The fields by which a `tool_call_delta` or a `tool_call` names its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallHead<'a> {
    pub index: Option<i64>,
    /// The id, unless it is empty.
    pub id: Option<Text<'a>>,
    pub name: Text<'a>,
    /// Whether the event has an id or a name, even an empty one.
    has_arguments: bool,
}

impl<'a> CallHead<'a> {
    /// Reads a `tool_call_delta` or a `tool_call`; any other event names nothing.
    #[inline]
    pub fn read(event: &Event<'a>) -> Self {
        let (index, id, name, has_arguments) = if event.kind() == Kind::ToolCall {
            let call = ToolCall::read(event);
            (
                call.index,
                Some(call.tool_id),
                Some(call.tool_name),
                call.arguments.is_some(),
            )
        } else {
            let delta = ToolCallDelta::read(event);
            (
                delta.index,
                delta.tool_id,
                delta.tool_name,
                delta.arguments.is_some_and(|text| !text.is_empty()),
            )
        };
        CallHead {
            index,
            id: id.filter(|id| !id.is_empty()),
            name: name.unwrap_or_default(),
            has_arguments,
        }
    }

    /// Whether the event is not a call: a delta without an id, a name and arguments. Some servers
    /// write the word null as an id.
    pub fn is_blank(&self) -> bool {
        self.name.is_empty() && !self.has_arguments && self.id.is_none_or(|id| id == "null")
    }
}
