//! A conversation as Cohere's chat endpoint, version 2, takes it (docs.cohere.com/reference/chat).

use super::options::{RequestError, RequestOptions};
use super::tools::{Tool, ToolChoice};
use crate::conversation::{Conversation, Message};
use crate::provider::{KeyRule, Provider};
use crate::stream;
use serde_json::{Map, Value, json};

const API: &str = "cohere";

/// This API in the table.
pub(crate) const PROVIDER: Provider = Provider {
    name: "cohere",
    aliases: &[],
    base_url: "https://api.cohere.com",
    key_env: "COHERE_API_KEY",
    path: |_| Ok("/v2/chat".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: false,
    has_text_results: true,
    decoder: || Box::new(stream::cohere::Cohere::default()),
    body,
};

/// The body of the request.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Map<String, Value>, RequestError> {
    let mut messages = options.opening(talk);
    messages.extend(talk.messages.iter().map(message));
    let mut body = options.chat(messages);
    let mut tools = options.tool_list();
    let choice = options.choice();
    if let Some(ToolChoice::Name(name)) = choice {
        // The API has no choice by name: the request has that tool alone, and requires a call.
        // https://docs.cohere.com/docs/tool-use-usage-patterns
        tools.retain(|tool| tool.name() == Some(name));
    }
    if !tools.is_empty() {
        body.insert(
            "tools".into(),
            tools.iter().map(Tool::openai).map(without_strict).collect(),
        );
        match choice {
            Some(ToolChoice::Required | ToolChoice::Name(_)) => {
                body.insert("tool_choice".into(), "REQUIRED".into())
            }
            Some(ToolChoice::None) => body.insert("tool_choice".into(), "NONE".into()),
            Some(ToolChoice::Auto) | None => None,
        };
    }
    body.insert("stream".into(), options.stream.into());
    Ok(body)
}

/// `strict_tools` is a member of the whole request here, and the user's to set.
fn without_strict(mut tool: Value) -> Value {
    if let Some(function) = tool.get_mut("function").and_then(Value::as_object_mut) {
        function.shift_remove("strict");
    }
    tool
}

fn message(message: &Message) -> Value {
    let mut out = Map::new();
    let role = if message.role() == "developer" {
        "system"
    } else {
        message.role()
    };
    out.insert("role".into(), role.into());
    let content = message.content().cloned();
    if role == "tool" {
        out.insert("tool_call_id".into(), message.tool_call_id().into());
    }
    if role != "assistant" {
        out.insert("content".into(), content.unwrap_or_else(|| "".into()));
        return Value::Object(out);
    }
    let calls = message.calls();
    let mut thoughts = None;
    for (field, text) in message.reasoning_fields(API) {
        match field.as_str() {
            "tool_plan" if !calls.is_empty() => {
                out.insert("tool_plan".into(), text.into());
            }
            "thinking" => thoughts = Some(text),
            _ => {}
        }
    }
    let text = message.text();
    if let Some(thoughts) = thoughts {
        let mut parts = vec![json!({"type": "thinking", "thinking": thoughts})];
        if !text.is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
        out.insert("content".into(), parts.into());
    } else if !text.is_empty() || calls.is_empty() {
        out.insert("content".into(), content.unwrap_or_else(|| "".into()));
    }
    if !calls.is_empty() {
        let calls = calls
            .iter()
            .map(|c| json!({"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}));
        out.insert("tool_calls".into(), calls.collect());
    }
    Value::Object(out)
}
