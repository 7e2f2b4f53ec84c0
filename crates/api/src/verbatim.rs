//! A client's conversation in its original JSON, for an upstream of the same API.

use crate::carried::{id_without, is_carried, is_made_here};
use crate::members::GetText;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The members of a client's request that contain the conversation, the tools and the tool choice.
/// Anthropic's blocks and OpenAI Responses' items contain more than a [`crate::Conversation`] can
/// represent (`cache_control`, citations, the order of text and calls), and Claude Code expects a
/// gateway to forward them unchanged (<https://code.claude.com/docs/en/llm-gateway>).
#[derive(Clone, Debug)]
pub(crate) struct Verbatim {
    /// The name of the API.
    api: &'static str,
    members: Arc<Map<String, Value>>,
    /// The number of messages that the members were converted to.
    messages: usize,
    /// Whether the request refers to earlier messages that the provider stores.
    pub(crate) is_partial: bool,
}

impl Verbatim {
    /// Stores the `members` of a request in `api`, which were converted to `messages` messages.
    /// `is_partial` means that the request refers to earlier messages that the provider stores.
    pub(crate) fn new(
        api: &'static str,
        mut members: Map<String, Value>,
        messages: usize,
        is_partial: bool,
    ) -> Verbatim {
        // Servers reject an empty list, and a tool choice without tools
        // (https://github.com/open-webui/open-webui/issues/26655).
        let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        if members.get("tools").is_none_or(is_empty) {
            members.shift_remove("tools");
            if additional_tools(&members).all(is_empty) {
                members.shift_remove("tool_choice");
            }
        }
        drop_foreign_reasoning(api, &mut members);
        bare_ids(api, &mut members);
        Verbatim {
            api,
            members: Arc::new(members),
            messages,
            is_partial,
        }
    }

    /// Whether the members may be sent to an upstream of `api` for a conversation that now has
    /// `messages` messages.
    pub(crate) fn fits(&self, api: &str, messages: usize) -> bool {
        self.api == api && self.messages == messages
    }

    /// Replaces the converted members of `body` with the original ones.
    pub(crate) fn put(&self, body: &mut Map<String, Value>) {
        for name in names(self.api) {
            match self.members.get(*name) {
                Some(value) => {
                    // The old value may be just as large, so it is freed first.
                    let place = body.entry(*name).or_insert(Value::Null);
                    *place = Value::Null;
                    *place = value.clone();
                }
                None => _ = body.shift_remove(*name),
            }
        }
        // The client decides whether the provider stores the answer. By default the API does, and a
        // later request may refer to it.
        body.shift_remove("store");
    }
}

/// Removes other providers' reasoning, which our responses carry, and reasoning that the API would
/// look up by an id created here. OpenAI rejects an item without encrypted content that it has not
/// stored (github.com/vercel/ai/issues/7543).
fn drop_foreign_reasoning(api: &str, members: &mut Map<String, Value>) {
    fn text<'v>(value: &'v Value, key: &str) -> &'v str {
        value.text_of(key).unwrap_or_default()
    }
    match api {
        "openai-responses" => {
            let Some(items) = members.get_mut("input").and_then(Value::as_array_mut) else {
                return;
            };
            items.retain(|item| {
                let encrypted = text(item, "encrypted_content");
                let content = item
                    .get("content")
                    .and_then(Value::as_array)
                    .is_some_and(|content| !content.is_empty());
                let is_looked_up =
                    is_made_here(text(item, "id")) && encrypted.is_empty() && !content;
                text(item, "type") != "reasoning" || !(is_carried(encrypted) || is_looked_up)
            });
        }
        "anthropic" => {
            let Some(messages) = members.get_mut("messages").and_then(Value::as_array_mut) else {
                return;
            };
            messages.retain_mut(|message| {
                let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) else {
                    return true;
                };
                let count = blocks.len();
                blocks.retain(|block| !is_carried(text(block, "signature")));
                blocks.len() == count || !blocks.is_empty()
            });
        }
        _ => {}
    }
}

/// Removes another provider's data from call ids.
fn bare_ids(api: &str, members: &mut Map<String, Value>) {
    fn bare(object: &mut Value, names: &[&str]) {
        for name in names {
            if let Some(Value::String(id)) = object.get_mut(*name)
                && let (bare, Some(_)) = id_without(id)
            {
                *id = bare.to_owned();
            }
        }
    }
    fn list(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
        object.and_then(Value::as_array_mut).into_iter().flatten()
    }
    match api {
        "openai-responses" => {
            list(members.get_mut("input")).for_each(|item| bare(item, &["call_id"]));
        }
        "anthropic" => {
            for message in list(members.get_mut("messages")) {
                list(message.get_mut("content")).for_each(|b| bare(b, &["id", "tool_use_id"]));
            }
        }
        _ => {}
    }
}

/// The request members that contain the conversation, the tools and the tool choice. The messages
/// of Chat Completions are not listed, because a conversation already uses their form.
pub(crate) fn names(api: &str) -> &'static [&'static str] {
    match api {
        "anthropic" => &["system", "messages", "tools", "tool_choice"],
        "openai-responses" => &["instructions", "input", "tools", "tool_choice"],
        _ => &["tools", "tool_choice"],
    }
}

/// The type of an input item that contains a list of tools (`AdditionalTools` in openai-python's
/// `response_input_item.py`). For its newest models Codex sends all tools in such an item and has
/// no `tools` member.
pub(crate) const ADDITIONAL_TOOLS: &str = "additional_tools";

/// Returns the tool lists in a request's input.
pub(crate) fn additional_tools(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let items = members.list_of("input").iter();
    items
        .filter(|item| item.text_of("type") == Some(ADDITIONAL_TOOLS))
        .filter_map(|item| item.get("tools"))
}
