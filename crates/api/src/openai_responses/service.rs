//! The calls that the service itself runs, as items: `mcp_call`, whose events openai-node and
//! openai-python know, and `mcp_approval_request` for one that waits for a person. Several may be
//! open at a time. Source of the format: `response_output_item.py` and
//! `response_mcp_call_*_event.py` in openai-python.
//!
//! A call that waits stays open until its result. One that still waits when the response ends has
//! no `done` event: the AI SDK takes that for its result. In the output that call is `incomplete`,
//! with the id of the request for approval.

use crate::answer::service::SERVICE;
use event::Object;
use std::collections::HashSet;

/// Before the id of a call in the id of its item.
pub(crate) const CALL: &str = "mcp_";

/// Before the id of a call in the id of the request for its approval.
pub(crate) const APPROVAL: &str = "mcpr_";

/// A call as an item.
#[derive(Clone, Debug)]
pub(crate) struct ServiceItem {
    /// The id of the call.
    pub call_id: String,
    /// The id of the item.
    pub id: String,
    /// Its place in the output.
    pub index: usize,
    pub name: String,
    pub arguments: String,
    /// The id of the request for its approval, if it has waited for one.
    pub approval: Option<String>,
}

/// How far the call of an item has come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServiceItemState<'a> {
    Open,
    /// It has a result.
    Ended(&'a str),
    /// It failed, with what the tool says of it.
    Failed(&'a str),
    /// It was cut, or still waits when the response ends.
    Cut,
}

impl ServiceItemState<'_> {
    fn name(self) -> &'static str {
        match self {
            ServiceItemState::Open => "in_progress",
            ServiceItemState::Ended(_) => "completed",
            ServiceItemState::Failed(_) => "failed",
            ServiceItemState::Cut => "incomplete",
        }
    }
}

impl ServiceItem {
    /// The item as JSON.
    pub(crate) fn json(&self, state: ServiceItemState<'_>) -> String {
        event::object(|o| {
            o.str("type", "mcp_call")
                .str("id", &self.id)
                .str("status", state.name());
            match &self.approval {
                Some(id) => o.str("approval_request_id", id),
                None => o.raw("approval_request_id", "null"),
            };
            self.named(o);
            match state {
                ServiceItemState::Failed(text) => o.object("error", |o| {
                    o.str("type", "mcp_tool_execution_error");
                    o.array("content", |a| {
                        a.object(|o| _ = o.str("type", "text").str("text", text));
                    });
                }),
                _ => o.raw("error", "null"),
            };
            match state {
                ServiceItemState::Ended(text) => o.str("output", text),
                _ => o.raw("output", "null"),
            };
        })
    }

    /// The request of this id for an approval, as JSON.
    pub(crate) fn request(&self, id: &str) -> String {
        event::object(|o| {
            o.str("type", "mcp_approval_request").str("id", id);
            self.named(o);
        })
    }

    fn named(&self, o: &mut Object<'_>) {
        o.str("arguments", &self.arguments)
            .str("name", &self.name)
            .str("server_label", SERVICE);
    }
}

/// The ids of the items of calls. openai-node throws on a second item with the same id, and some
/// providers give the ids of their calls again in each turn.
#[derive(Debug, Default)]
pub(crate) struct ServiceIds(HashSet<String>);

impl ServiceIds {
    /// An id of its own for the call `call_id`, with `prefix`; `index` is its place in the output.
    pub(crate) fn make(&mut self, prefix: &str, call_id: &str, index: usize) -> String {
        let mut id = format!("{prefix}{call_id}");
        if !self.0.insert(id.clone()) {
            id = format!("{id}_{index}");
            self.0.insert(id.clone());
        }
        id
    }
}
