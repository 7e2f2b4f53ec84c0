//! Anthropic's request: the system prompt apart, content in blocks, results of tools in the user's
//! next message.
//!
//! Source of the format: Anthropic's Messages API reference
//! (platform.claude.com/docs/en/api/messages); blocks of reasoning go back after "Extended
//! thinking" (platform.claude.com/docs/en/build-with-claude/extended-thinking).

use crate::anthropic::stream::Anthropic;
use crate::conversation::{Conversation, Message, PastBlock};
use crate::members::Put;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{
    RequestError, RequestOptions, RequestTool, ToolChoice, is_system, system, value,
};
use crate::request::part::{MediaKind, Part, PartSource, parts};
use serde_json::{Map, Value, json};

/// This API's name in the table, and the key of its data in a message.
const API: &str = "anthropic";

/// `max_tokens` has no default of the provider's. Every model since Claude 3.5 can write as much.
const MAX_TOKENS: u64 = 8192;

/// This API in the table.
pub(crate) const PROVIDER: Provider = Provider {
    name: "anthropic",
    aliases: &["claude"],
    base_url: "https://api.anthropic.com",
    key_env: "ANTHROPIC_API_KEY",
    path: |_| Ok("/v1/messages".to_owned()),
    key: KeyRule::XApiKey,
    headers: &[("anthropic-version", "2023-06-01")],
    has_refusals: false,
    has_text_results: false,
    decoder: || Box::new(Anthropic::default()),
    body,
    answers: Some(&crate::anthropic::writer::FORMAT),
};

/// The body of the request.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Map<String, Value>, RequestError> {
    let mut body = Map::new();
    body.put("model", options.model.as_str());
    body.put("max_tokens", MAX_TOKENS);
    if let Some(system) = system(talk, options) {
        body.put("system", system);
    }
    let messages = messages(talk)?;
    if messages.is_empty() {
        return Err(RequestError::Empty);
    }
    body.put("messages", messages);
    let tools = options.tool_list();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.iter().map(tool).collect());
        if let Some(choice) = options.choice() {
            let choice = match choice {
                ToolChoice::Auto => json!({"type": "auto"}),
                ToolChoice::None => json!({"type": "none"}),
                ToolChoice::Required => json!({"type": "any"}),
                ToolChoice::Name(name) => json!({"type": "tool", "name": name}),
            };
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    if options.stream {
        body.put("stream", true);
    }
    Ok(body)
}

fn tool(tool: &RequestTool<'_>) -> Value {
    let tool = match tool {
        RequestTool::Function(tool) => tool,
        RequestTool::Provider(tool) => return value(&tool.text),
    };
    let mut out = Map::new();
    out.put("name", tool.name.as_str());
    if let Some(description) = &tool.description {
        out.put("description", description.as_str());
    }
    let mut schema = value(tool.schema());
    if let Some(schema) = schema.as_object_mut() {
        // Required here, and often left out.
        schema.entry("type").or_insert_with(|| "object".into());
    }
    out.insert("input_schema".to_owned(), schema);
    if tool.strict == Some(true) {
        out.put("strict", true);
    }
    Value::Object(out)
}

fn messages(talk: &Conversation) -> Result<Vec<Value>, RequestError> {
    let mut messages = Vec::new();
    // The results of one turn go into one message; of several messages the provider takes only the
    // first as an answer.
    let mut results: Vec<Value> = Vec::new();
    for (position, message) in (1..).zip(&talk.messages) {
        if message.role() != "tool" {
            flush(&mut results, &mut messages);
        }
        let (role, content) = match message.role() {
            role if is_system(role) => continue,
            "user" => ("user", blocks(message, position)?),
            "assistant" => ("assistant", answer(message)),
            "tool" => {
                results.push(result(message, position)?);
                continue;
            }
            role => return Err(RequestError::role(position, role)),
        };
        if !content.is_empty() {
            messages.push(json!({"role": role, "content": plain(content)}));
        }
    }
    flush(&mut results, &mut messages);
    Ok(messages)
}

fn flush(results: &mut Vec<Value>, messages: &mut Vec<Value>) {
    if !results.is_empty() {
        messages.push(json!({"role": "user", "content": std::mem::take(results)}));
    }
}

/// One block of text alone is written as a string.
fn plain(mut blocks: Vec<Value>) -> Value {
    let is_text = |b: &Value| b["type"] == "text" && b.as_object().is_some_and(|b| b.len() == 2);
    if blocks.len() == 1 && is_text(&blocks[0]) {
        return blocks[0]["text"].take();
    }
    Value::Array(blocks)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn blocks(message: &Message, position: usize) -> Result<Vec<Value>, RequestError> {
    let mut blocks = Vec::new();
    for part in parts(message.content()) {
        blocks.push(match part {
            // The provider refuses blocks without text.
            Part::Text(t) if t.trim().is_empty() => continue,
            Part::Text(t) => text(t),
            Part::Media {
                kind, source, name, ..
            } => {
                let source = match source {
                    PartSource::Base64 { mime, data } => {
                        json!({"type": "base64", "media_type": mime, "data": data})
                    }
                    PartSource::Url(url) => json!({"type": "url", "url": url}),
                };
                match (kind, name) {
                    (MediaKind::Image, _) => json!({"type": "image", "source": source}),
                    (MediaKind::File, Some(name)) => {
                        json!({"type": "document", "source": source, "title": name})
                    }
                    (MediaKind::File, None) => json!({"type": "document", "source": source}),
                }
            }
            Part::Other(part) if part["type"] == "input_audio" => {
                let why = "the API has no audio".to_owned();
                return Err(RequestError::Message { position, why });
            }
            Part::Other(part) => part.clone(),
        });
    }
    Ok(blocks)
}

fn result(message: &Message, position: usize) -> Result<Value, RequestError> {
    let content = plain(blocks(message, position)?);
    let mut result = Map::new();
    result.put("type", "tool_result");
    result.put("tool_use_id", id(message.tool_call_id()));
    if content.as_array().is_none_or(|c| !c.is_empty()) {
        result.insert("content".to_owned(), content);
    }
    if message.get("is_error").and_then(Value::as_bool) == Some(true) {
        result.put("is_error", true);
    }
    Ok(Value::Object(result))
}

/// An assistant's message: what must go back keeps its place among text and calls.
fn answer(message: &Message) -> Vec<Value> {
    let calls = message.calls();
    let own: Vec<(PastBlock<'_>, Value)> = message
        .blocks()
        .into_iter()
        .filter_map(|b| Some((b, kept(&b)?)))
        .collect();
    let mut content = Vec::new();
    // Text between or after calls goes before them: our messages have one text.
    let before_text = |b: &PastBlock<'_>| b.calls == 0 && (!b.text || calls.is_empty());
    content.extend(
        own.iter()
            .filter(|(b, _)| before_text(b))
            .map(|(_, block)| block.clone()),
    );
    let said = message.text();
    if !said.trim().is_empty() {
        content.push(text(&said));
    }
    for n in 0..=calls.len() {
        let here = own
            .iter()
            .filter(|(b, _)| !before_text(b) && b.calls.min(calls.len()) == n);
        // A message must not end with reasoning, and what follows the last call has nothing to
        // explain any more.
        let here = here.filter(|(_, block)| n < calls.len() || !is_thinking(block));
        content.extend(here.map(|(_, block)| block.clone()));
        if let Some(call) = calls.get(n) {
            let input: Value = serde_json::from_str(call.arguments).unwrap_or_else(|_| json!({}));
            content.push(
                json!({"type": "tool_use", "id": id(call.id), "name": call.name, "input": input}),
            );
        }
    }
    if content.iter().all(is_thinking) {
        Vec::new()
    } else {
        content
    }
}

/// The provider's own block, as it was.
fn kept(block: &PastBlock<'_>) -> Option<Value> {
    let data = block.data(API)?;
    if let Some(signature) = data.get("signature") {
        // An empty signature is refused.
        return (signature != "").then(
            || json!({"type": "thinking", "thinking": block.thinking, "signature": signature}),
        );
    }
    if let Some(data) = data.get("redacted") {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    data.get("block").cloned()
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// Ids of other providers may hold what this one refuses (`functions.find:0`).
fn id(id: &str) -> String {
    id.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Api::Anthropic;
    use crate::support::body;

    #[test]
    fn a_turn_of_calls_and_results() {
        let body = body(
            Anthropic,
            &RequestOptions {
                system: Some("Be brief.".into()),
                tool_choice: Some("required".into()),
                ..RequestOptions::default()
            },
            r#"[{"type":"function","function":{"name":"f","description":"F.","parameters":{"properties":{"a":{"type":"integer"}}}},"exec":{"command":["f"]}},{"type":"web_search_20250305","name":"web_search"}]"#,
            r#"{"role":"system","content":"Be kind."}
            {"role":"user","content":[{"type":"text","text":"See:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
            {"role":"assistant","content":"Two calls.","reasoning":"hmhm","provider":[
                {"thinking":"hm","data":{"anthropic":{"signature":"s1"}},"calls":0,"text":false},
                {"thinking":"","data":{"anthropic":{"redacted":"r"}},"calls":0,"text":false},
                {"thinking":"hm","data":{"anthropic":{"signature":"s2"}},"calls":1,"text":true},
                {"thinking":"","data":{"gemini":{"thoughtSignature":"x"}},"calls":1,"text":true}],
             "tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"functions.f:0","content":"one"}
            {"role":"tool","tool_call_id":"b","content":""}
            {"role":"user","content":"Go on."}"#,
        );
        let want = json!({
            "model": "m", "max_tokens": 8192, "system": "Be brief.\n\nBe kind.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "See:"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s1"},
                    {"type": "redacted_thinking", "data": "r"},
                    {"type": "text", "text": "Two calls."},
                    {"type": "tool_use", "id": "functions_f_0", "name": "f", "input": {"a": 1}},
                    {"type": "thinking", "thinking": "hm", "signature": "s2"},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "functions_f_0", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "b"},
                ]},
                {"role": "user", "content": "Go on."},
            ],
            "tools": [
                {"name": "f", "description": "F.", "input_schema": {"properties": {"a": {"type": "integer"}}, "type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "tool_choice": {"type": "any"},
            "stream": true,
        });
        assert_eq!(body, want);
    }

    #[test]
    fn a_message_neither_ends_with_reasoning_nor_is_empty() {
        let talk = r#"{"role":"user","content":"a"}
            {"role":"assistant","content":"","provider":[{"thinking":"hm","data":{"anthropic":{"signature":"s"}},"calls":0,"text":false}]}
            {"role":"user","content":"b"}
            {"role":"assistant","content":"c","provider":[{"thinking":"hm","data":{"anthropic":{"signature":"s"}},"calls":0,"text":true},
                {"thinking":"","data":{"anthropic":{"block":{"type":"server_tool_use","id":"x"}}},"calls":0,"text":true}]}
            {"role":"user","content":"d"}"#;
        let body = body(Anthropic, &RequestOptions::default(), "null", talk);
        let want = json!([
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "server_tool_use", "id": "x"},
                {"type": "text", "text": "c"},
            ]},
            {"role": "user", "content": "d"},
        ]);
        assert_eq!(body["messages"], want);
    }
}
