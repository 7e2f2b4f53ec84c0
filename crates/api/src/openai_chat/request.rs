//! A conversation as chat completions take it (platform.openai.com/docs/api-reference/chat/create).

use crate::conversation::{Conversation, Message, PastCall};
use crate::openai_chat::stream::OpenaiChat;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{RequestError, RequestOptions, Tool, ToolChoice};
use serde_json::{Map, Value, json};

const API: &str = "openai-chat";

/// This API in the table.
pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-chat",
    aliases: &["openai", "chat-completions"],
    base_url: "https://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    path: |_| Ok("/chat/completions".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: true,
    has_text_results: true,
    decoder: || Box::new(OpenaiChat::default()),
    body,
    answers: Some(&crate::openai_chat::writer::FORMAT),
};

/// The body of the request.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Map<String, Value>, RequestError> {
    let mut messages = options.opening(talk);
    messages.extend(talk.messages.iter().map(message));
    let mut body = options.chat(messages);
    put_tools(&mut body, options)?;
    if options.stream {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Ok(body)
}

/// `tools` and `tool_choice`, if there are tools.
fn put_tools(body: &mut Map<String, Value>, options: &RequestOptions) -> Result<(), RequestError> {
    let tools = options.tool_list();
    if tools.is_empty() {
        return Ok(());
    }
    body.insert("tools".into(), tools.iter().map(Tool::openai).collect());
    let choice = match options.choice() {
        Some(ToolChoice::Auto) => "auto".into(),
        Some(ToolChoice::None) => "none".into(),
        Some(ToolChoice::Required) => "required".into(),
        Some(ToolChoice::Name(name)) => json!({"type": "function", "function": {"name": name}}),
        None => return Ok(()),
    };
    body.insert("tool_choice".into(), choice);
    Ok(())
}

/// A message without the members of our own logs, and with what its provider wants back.
fn message(message: &Message) -> Value {
    let mut out = message.fields().clone();
    out.shift_remove("reasoning");
    out.shift_remove("provider");
    // What Anthropic's clients add to a result; strict servers reject members that they do not
    // know.
    out.shift_remove("is_error");
    if message.role() != "assistant" {
        return Value::Object(out);
    }
    let calls = message.calls();
    if calls.is_empty() {
        // Servers reject `"content":null` in a message without calls.
        if message.content().is_none() {
            out.insert("content".into(), "".into());
        }
        return Value::Object(out);
    }
    out.insert("tool_calls".into(), calls.iter().map(call).collect());
    // DeepSeek rejects a tool loop whose reasoning does not come back
    // (api-docs.deepseek.com/guides/thinking_mode); other providers get only a field that they
    // sent.
    for (field, text) in message.reasoning_fields(API) {
        if matches!(field.as_str(), "reasoning_content" | "reasoning") {
            out.insert(field, text.into());
        }
    }
    let blocks = message.blocks();
    let details = blocks
        .iter()
        .filter_map(|b| b.data(API)?.get("reasoning_details")?.as_array());
    let details: Vec<Value> = details.flatten().cloned().collect();
    if !details.is_empty() {
        out.insert("reasoning_details".into(), details.into());
    }
    Value::Object(out)
}

fn call(call: &PastCall<'_>) -> Value {
    let data = call.provider(API).and_then(Value::as_object);
    if data.is_some_and(|d| d.get("custom") == Some(&Value::Bool(true))) {
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or_default();
        let input = arguments
            .get("input")
            .and_then(Value::as_str)
            .unwrap_or_default();
        return json!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": input}});
    }
    let mut out = Map::new();
    out.insert("id".into(), call.id.into());
    out.insert("type".into(), "function".into());
    out.insert(
        "function".into(),
        json!({"name": call.name, "arguments": call.arguments}),
    );
    for (key, value) in data.into_iter().flatten() {
        out.insert(key.clone(), value.clone());
    }
    Value::Object(out)
}
