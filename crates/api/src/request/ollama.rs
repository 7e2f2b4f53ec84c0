//! A conversation as Ollama's own chat endpoint takes it (github.com/ollama/ollama, docs/api.md):
//! text and images apart, arguments as objects, results by the tool's name.

use super::options::{RequestError, RequestOptions};
use super::tools::{Tool, ToolChoice};
use crate::conversation::{Conversation, Message};
use crate::provider::{KeyRule, Provider};
use crate::stream;
use serde_json::{Map, Value, json};

const API: &str = "ollama";

/// This API in the table.
pub(crate) const PROVIDER: Provider = Provider {
    name: "ollama",
    aliases: &[],
    base_url: "http://localhost:11434",
    key_env: "OLLAMA_API_KEY",
    path: |_| Ok("/api/chat".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: false,
    has_text_results: false,
    decoder: || Box::new(stream::ollama::Ollama::default()),
    body,
};

/// The body of the request.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Map<String, Value>, RequestError> {
    let mut messages = options.opening(talk);
    for (at, m) in talk.messages.iter().enumerate() {
        let name = called(&talk.messages[..at], m.tool_call_id());
        let message = message(m, name).map_err(|why| RequestError::Message {
            position: at + 1,
            why,
        })?;
        messages.push(message);
    }
    let mut body = options.chat(messages);
    let mut tools = options.tool_list();
    // The API has no tool_choice (https://docs.ollama.com/api/chat): a tool that must not be called
    // is not sent, and a call cannot be required.
    match options.choice() {
        Some(ToolChoice::None) => tools.clear(),
        Some(ToolChoice::Name(name)) => tools.retain(|tool| tool.name() == Some(name)),
        _ => {}
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.iter().map(Tool::openai).collect());
    }
    body.insert("stream".into(), options.stream.into());
    Ok(body)
}

/// The name of the tool that the call `id` was for: the latest of that id.
fn called<'a>(before: &'a [Message], id: &str) -> Option<&'a str> {
    before
        .iter()
        .rev()
        .find_map(|m| m.calls().into_iter().find(|c| c.id == id).map(|c| c.name))
}

fn message(message: &Message, called: Option<&str>) -> Result<Value, String> {
    let mut out = Map::new();
    let role = if message.role() == "developer" {
        "system"
    } else {
        message.role()
    };
    out.insert("role".into(), role.into());
    out.insert("content".into(), message.text().into());
    let images = images(message)?;
    if !images.is_empty() {
        out.insert("images".into(), images.into());
    }
    if role == "tool" {
        if let Some(name) = message.get_str("name").or(called) {
            out.insert("tool_name".into(), name.into());
        }
        out.insert("tool_call_id".into(), message.tool_call_id().into());
    }
    if role == "assistant" {
        for (_, text) in message.reasoning_fields(API) {
            out.insert("thinking".into(), text.into());
        }
        let calls = message.calls();
        if !calls.is_empty() {
            let calls = calls.iter().map(|c| {
                let arguments: Value =
                    serde_json::from_str(c.arguments).unwrap_or_else(|_| json!({}));
                json!({"id": c.id, "function": {"name": c.name, "arguments": arguments}})
            });
            out.insert("tool_calls".into(), calls.collect());
        }
    }
    Ok(Value::Object(out))
}

/// The images of the content, in base64.
fn images(message: &Message) -> Result<Vec<Value>, String> {
    let parts = message
        .content()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    parts
        .filter(|part| part.get("image_url").is_some())
        .map(|part| {
            let url = part
                .pointer("/image_url/url")
                .or_else(|| part.get("image_url"))
                .and_then(Value::as_str)
                .unwrap_or_default();
            let data = url
                .strip_prefix("data:")
                .and_then(|rest| rest.split_once(";base64,"));
            data.map(|(_, base64)| base64.into())
                .ok_or_else(|| "Ollama takes images as data: URLs in base64 only".to_owned())
        })
        .collect()
}
