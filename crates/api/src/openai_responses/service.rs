//! Represents the calls that the service itself runs as items: `mcp_call`, whose events openai-node
//! and openai-python know, and `mcp_approval_request` for a call that needs approval. Several calls
//! may be open at the same time. Source of the format: `response_output_item.py` and
//! `response_mcp_call_*_event.py` in openai-python.
//!
//! A pending call stays open until its result. If it is still pending when the response ends, it
//! gets no `done` event, because the AI SDK would treat that as its result. In the output such a
//! call is `incomplete` and contains the id of the request for approval.

use crate::answer::service::SERVICE;
use event::Object;
use std::collections::HashSet;

/// The prefix of an item id that contains a call's id.
pub(crate) const CALL: &str = "mcp_";

/// The prefix of the id of a request for approval, followed by the call's id.
pub(crate) const APPROVAL: &str = "mcpr_";

/// A call as an output item.
#[derive(Clone, Debug)]
pub(crate) struct ServiceItem {
    /// The call's id.
    pub call_id: String,
    /// The item's id.
    pub id: String,
    /// The item's index in the output.
    pub index: usize,
    pub name: String,
    pub arguments: String,
    /// The id of the request for its approval; `None` if approval was not requested.
    pub approval: Option<String>,
}

/// The state of an item's call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServiceItemState<'a> {
    Open,
    /// The call has a result.
    Ended(&'a str),
    /// The call failed. Contains the tool's message.
    Failed(&'a str),
    /// The call was truncated, or is still pending when the response ends.
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
    /// Serializes the item as JSON.
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

    /// Serializes the request for approval with this id as JSON.
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

/// The ids in use for call items. openai-node throws an exception for a duplicate item id, and some
/// providers reuse call ids in every turn.
#[derive(Debug, Default)]
pub(crate) struct ServiceIds(HashSet<String>);

impl ServiceIds {
    /// Returns a unique id with `prefix` for the call `call_id`. `index` is the item's index in the
    /// output.
    pub(crate) fn make(&mut self, prefix: &str, call_id: &str, index: usize) -> String {
        let mut id = format!("{prefix}{call_id}");
        if !self.0.insert(id.clone()) {
            id = format!("{id}_{index}");
            self.0.insert(id.clone());
        }
        id
    }
}
