//! A conversation as its client wrote it, for an upstream of the same API.

use crate::Api;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The members of a client's request that became a conversation, its tools and the choice among them. Blocks of Anthropic and items of OpenAI
/// Responses hold more than a conversation can (`cache_control`, citations, the order of text and calls), and Claude Code expects that a gateway
/// passes them on as they are (<https://code.claude.com/docs/en/llm-gateway>).
#[derive(Clone, Debug)]
pub(crate) struct Verbatim {
    api: Api,
    members: Arc<Map<String, Value>>,
    /// How many messages they became.
    messages: usize,
}

impl Verbatim {
    /// Keeps `members` of a request in `api`, which became so many messages.
    pub(crate) fn new(api: Api, mut members: Map<String, Value>, messages: usize) -> Verbatim {
        // Servers reject an empty list, and a choice without tools (https://github.com/open-webui/open-webui/issues/26655).
        if members.get("tools").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            members.shift_remove("tools");
            members.shift_remove("tool_choice");
        }
        Verbatim { api, members: Arc::new(members), messages }
    }

    /// Whether they may go to an upstream of `api` for a conversation that now has so many messages.
    pub(crate) fn fits(&self, api: Api, messages: usize) -> bool {
        self.api == api && self.messages == messages
    }

    /// Puts the members in the place of those that were made of the conversation.
    pub(crate) fn put(&self, body: &mut Map<String, Value>) {
        for name in names(self.api) {
            match self.members.get(*name) {
                Some(value) => _ = body.insert((*name).to_owned(), value.clone()),
                None => _ = body.shift_remove(*name),
            }
        }
    }
}

/// The members of a request that become a conversation, its tools and the choice among them. The messages of chat completions are those of a
/// conversation already.
pub(crate) fn names(api: Api) -> &'static [&'static str] {
    match api {
        Api::Anthropic => &["system", "messages", "tools", "tool_choice"],
        Api::OpenaiResponses => &["instructions", "input", "tools", "tool_choice"],
        _ => &["tools", "tool_choice"],
    }
}
