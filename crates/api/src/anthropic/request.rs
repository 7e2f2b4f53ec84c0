//! Builds Anthropic requests: a separate system prompt, content in blocks, and tool results in the
//! next user message.
//!
//! Source of the format: Anthropic's Messages API reference
//! (platform.claude.com/docs/en/api/messages). Reasoning blocks are sent back according to
//! "Extended thinking" (platform.claude.com/docs/en/build-with-claude/extended-thinking).

use crate::anthropic::cache;
use crate::anthropic::models::claude;
use crate::anthropic::stream::Anthropic;
use crate::conversation::{Conversation, Message, PastBlock};
use crate::members::Put;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{
    RequestBody, RequestError, RequestOptions, RequestTool, ToolChoice, is_system, system, value,
};
use crate::request::part::{MediaKind, Part, PartSource, parts};
use serde_json::{Map, Value, json};

/// The API's name in the table, and the key of its data in a message.
const API: &str = "anthropic";

/// The `max_tokens` for models other than Claude. The API has no default for this member. Other
/// servers' models may support more, but their limits are unknown.
const MAX_TOKENS: u64 = 8192;

/// Returns the `max_tokens` for a model.
pub(crate) fn max_tokens(model: &str) -> u64 {
    claude(model).map_or(MAX_TOKENS, |family| family.max_tokens)
}

/// Anthropic's row in the table of APIs.
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

/// Builds the request body.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<RequestBody, RequestError> {
    let mut body = Map::new();
    body.put("model", options.model.as_str());
    body.put("max_tokens", max_tokens(&options.model));
    if let Some(text) = system(talk, options) {
        let mut marks = talk.messages.iter().filter(|m| is_system(m.role()));
        match marks.find_map(message_mark) {
            Some(mark) => {
                let mut block = self::text(&text);
                block[cache::MARK] = mark;
                body.put("system", vec![block]);
            }
            None => body.put("system", text),
        }
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
    let is_marked = options.params.iter().any(|(name, _)| name == cache::MARK);
    if options.caches_prefix && !is_marked {
        let is_later_turn = talk.messages.iter().any(|m| m.role() == "assistant");
        cache::mark_prefix(&mut body, is_later_turn);
    }
    cache::keep_most(&mut body);
    Ok(body.into())
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
        // The API requires this member, and tool schemas often omit it.
        schema.entry("type").or_insert_with(|| "object".into());
    }
    out.insert("input_schema".to_owned(), schema);
    if tool.strict == Some(true) {
        out.put("strict", true);
    }
    if let Some(mark) = cache::mark(&value(&tool.text)) {
        out.put(cache::MARK, mark.clone());
    }
    Value::Object(out)
}

fn messages(talk: &Conversation) -> Result<Vec<Value>, RequestError> {
    let mut messages = Vec::new();
    // All results of one turn go into one message. If they were in several messages, the provider
    // would only treat the first as an answer.
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

/// Converts a single plain text block to a string.
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
    let items = message.content().and_then(Value::as_array);
    for (number, part) in parts(message.content()).into_iter().enumerate() {
        let mark = items.and_then(|items| cache::mark(items.get(number)?));
        let mut block = match part {
            // The provider rejects blocks without text.
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
        };
        if let Some(mark) = mark {
            block[cache::MARK] = mark.clone();
        }
        blocks.push(block);
    }
    if let (Some(mark), Some(last)) = (message.get(cache::MARK), blocks.last_mut()) {
        last[cache::MARK] = mark.clone();
    }
    Ok(blocks)
}

/// Returns the cache mark of a message or of its last marked part.
fn message_mark(message: &Message) -> Option<Value> {
    let items = message.content().and_then(Value::as_array);
    let of_parts = || items.into_iter().flatten().rev().find_map(cache::mark);
    message
        .get(cache::MARK)
        .filter(|mark| mark.is_object())
        .or_else(of_parts)
        .cloned()
}

fn result(message: &Message, position: usize) -> Result<Value, RequestError> {
    let mut content = blocks(message, position)?;
    // The mark applies to the whole result.
    content
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .for_each(|block| {
            block.shift_remove(cache::MARK);
        });
    let content = plain(content);
    let mut result = Map::new();
    result.put("type", "tool_result");
    result.put("tool_use_id", id(message.tool_call_id()));
    if content.as_array().is_none_or(|c| !c.is_empty()) {
        result.insert("content".to_owned(), content);
    }
    if message.get("is_error").and_then(Value::as_bool) == Some(true) {
        result.put("is_error", true);
    }
    if let Some(mark) = message_mark(message) {
        result.put(cache::MARK, mark);
    }
    Ok(Value::Object(result))
}

/// Converts an assistant message. Blocks that must be sent back keep their position among text and
/// calls.
fn answer(message: &Message) -> Vec<Value> {
    let calls = message.calls();
    let own: Vec<(PastBlock<'_>, Value)> = message
        .blocks()
        .into_iter()
        .filter_map(|b| Some((b, kept(&b)?)))
        .collect();
    let mut content = Vec::new();
    // A message has only one text, so text between or after calls moves before them.
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
        // A message must not end with reasoning, and reasoning after the last call explains no
        // further content.
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
        return Vec::new();
    }
    if let (Some(mark), Some(last)) = (message_mark(message), content.last_mut()) {
        last[cache::MARK] = mark;
    }
    content
}

/// Returns the provider's own block in its original form, or `None` if the block is not its own.
fn kept(block: &PastBlock<'_>) -> Option<Value> {
    let data = block.data(API)?;
    if let Some(signature) = data.get("signature") {
        // The provider rejects an empty signature.
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

/// Replaces characters in other providers' ids that this API rejects (`functions.find:0`).
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

    /// Returns the body of a Chat Completions client's request for a model.
    fn of_chat(request: Value, model: &str) -> Value {
        let inbound = crate::inbound(crate::Api::OpenaiChat, request.to_string().as_bytes());
        let inbound = inbound.unwrap();
        let target = crate::TargetServer {
            api: Anthropic,
            url: "",
            model,
        };
        let options = RequestOptions {
            model: model.to_owned(),
            params: inbound.parameters_for(crate::Api::OpenaiChat, &target).0,
            tools: inbound.tools.clone(),
            tool_choice: inbound.tool_choice.clone(),
            ..RequestOptions::default()
        };
        let made = crate::request(Anthropic, &inbound.conversation, &options).unwrap();
        serde_json::from_str(&made.body).unwrap()
    }

    fn chat(more: &Value, text: &str) -> Value {
        let call =
            json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let mut body = json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": text},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "a", "content": "a hut"},
                {"role": "user", "content": "And?"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    }

    fn marks(body: &Value) -> usize {
        body.to_string().matches("\"cache_control\"").count()
    }

    #[test]
    fn the_marks_of_a_chat_client_arrive_and_are_at_most_four() {
        let mark = json!({"type": "ephemeral", "ttl": "1h"});
        let mut request = chat(&json!({}), &"x".repeat(9000));
        let part = |text: &str| json!([{"type": "text", "text": text, "cache_control": mark}]);
        request["messages"][0]["content"] = part("Be brief.");
        request["messages"][1]["content"] = part("Load it.");
        request["messages"][3]["cache_control"] = mark.clone();
        request["messages"][4]["content"] = part("And?");
        request["tools"][0]["cache_control"] = mark.clone();
        let body = of_chat(request.clone(), "claude-x");
        assert_eq!(body["system"][0]["cache_control"], mark);
        assert_eq!(body["tools"][0]["cache_control"], mark);
        // Of five marks, the first one in the messages is dropped.
        assert_eq!(body["messages"][0]["content"], json!([text("Load it.")]));
        assert_eq!(body["messages"][2]["content"][0]["cache_control"], mark);
        assert_eq!(body["messages"][3]["content"][0]["cache_control"], mark);
        assert_eq!(marks(&body), 4);
        // A mark for the whole request, which the provider places at its end.
        let whole = of_chat(
            chat(&json!({"cache_control": mark}), &"x".repeat(9000)),
            "claude-x",
        );
        assert_eq!((whole["cache_control"].clone(), marks(&whole)), (mark, 1));
    }

    #[test]
    fn a_prefix_is_marked_where_it_pays() {
        let long = "x".repeat(9000);
        let body = of_chat(chat(&json!({}), &long), "claude-x");
        let mark = json!({"type": "ephemeral"});
        assert_eq!(body["system"][0]["cache_control"], mark);
        assert_eq!(body["messages"][3]["content"][0]["cache_control"], mark);
        assert_eq!(marks(&body), 2);
        let first = json!([{"role": "user", "content": long}]);
        let tools = json!({"messages": first});
        let nothing = json!({"messages": first, "tools": []});
        for (request, want) in [
            (chat(&json!({}), "short"), 0),
            (chat(&tools, ""), 2),
            (chat(&nothing, ""), 0),
        ] {
            let body = of_chat(request, "claude-x");
            assert_eq!(marks(&body), want, "{body}");
        }
        let talk = crate::inbound(
            crate::Api::OpenaiChat,
            chat(&json!({}), &long).to_string().as_bytes(),
        );
        let off = RequestOptions {
            caches_prefix: false,
            ..RequestOptions::default()
        };
        let body = crate::request(Anthropic, &talk.unwrap().conversation, &off)
            .unwrap()
            .body;
        assert!(!body.contains("cache_control"));
    }

    #[test]
    fn an_effort_makes_a_model_think_where_it_can() {
        let of = |model: &str, more: Value| {
            let mut more = more;
            let first = json!([{"role": "user", "content": "Hi"}]);
            more["messages"] = more.get("messages").cloned().unwrap_or(first);
            let body = of_chat(chat(&more, ""), model);
            (
                body["thinking"].clone(),
                body["max_tokens"].as_u64().unwrap(),
                body,
            )
        };
        let high = json!({"reasoning_effort": "high"});
        let (adaptive, budget) = (
            json!({"type": "adaptive", "display": "summarized"}),
            |n: u64| json!({"type": "enabled", "budget_tokens": n}),
        );
        for (model, thinking, most) in [
            ("claude-opus-4-6", adaptive.clone(), 128_000),
            ("claude-sonnet-4-6", adaptive.clone(), 64_000),
            ("us.anthropic.claude-opus-5-5-v1", adaptive.clone(), 128_000),
            ("claude-new-9", adaptive.clone(), 64_000),
            ("anthropic/claude-haiku-4.5", budget(24576), 64_000),
            ("claude-sonnet-4", budget(24576), 64_000),
            ("claude-opus-4-5-20251101", budget(24576), 64_000),
            ("claude-haiku-4-5", budget(24576), 64_000),
            ("claude-opus-4-1", budget(24576), 32_000),
            ("claude-3-5-haiku-latest", Value::Null, 8192),
            ("kimi-k2", Value::Null, 8192),
        ] {
            let (got, tokens, _) = of(model, high.clone());
            assert_eq!((got, tokens), (thinking, most), "{model}");
        }
        for (model, thinking, effort) in [
            ("claude-opus-4-6", Value::Null, Value::Null),
            ("claude-opus-5", json!({"type": "disabled"}), Value::Null),
            (
                "claude-sonnet-5-5",
                json!({"type": "between_tools"}),
                Value::Null,
            ),
            ("claude-opus-5-5", Value::Null, json!("low")),
            ("claude-new-9", Value::Null, json!("low")),
        ] {
            assert_eq!(of(model, json!({})).0, Value::Null);
            let (got, _, body) = of(model, json!({"reasoning_effort": "none"}));
            assert_eq!(
                (got, &body["output_config"]["effort"]),
                (thinking, &effort),
                "{model}"
            );
        }
        let with = |member: &str, value: Value| {
            let mut more = high.clone();
            more[member] = value;
            of("claude-haiku-4-5", more)
        };
        assert_eq!(with("max_tokens", json!(8000)).0, budget(6976));
        assert_eq!(with("max_tokens", json!(1500)).0, Value::Null);
        assert_eq!(with("tool_choice", json!("required")).0, Value::Null);
        let (thinking, _, body) = with("temperature", json!(0));
        assert_eq!((thinking, body.get("temperature")), (budget(24576), None));
        // Results of calls whose reasoning is missing.
        let mut talk = chat(&json!({}), "Hi")["messages"].clone();
        talk.as_array_mut().unwrap().pop();
        assert_eq!(with("messages", talk.clone()).0, Value::Null);
        let more = json!({"reasoning_effort": "low", "messages": talk});
        assert_eq!(of("claude-opus-4-6", more).0, adaptive);
    }

    #[test]
    fn what_a_model_refuses_beside_its_thinking_is_left_out() {
        let sampling = json!({"temperature": 0, "top_p": 0.97, "reasoning_effort": "xhigh", "tool_choice": "required"});
        let any = json!({"type": "any"});
        for (model, thinking, effort, choice, kept) in [
            ("claude-opus-4-6", Value::Null, "xhigh", &any, true),
            ("claude-opus-4-8", Value::Null, "xhigh", &any, false),
            (
                "claude-haiku-5-5",
                json!({"type": "disabled"}),
                "high",
                &any,
                false,
            ),
            (
                "claude-sonnet-5-5",
                json!({"type": "adaptive", "display": "summarized"}),
                "xhigh",
                &json!({"type": "auto"}),
                false,
            ),
        ] {
            let body = of_chat(chat(&sampling, ""), model);
            assert_eq!(body.get("thinking").unwrap_or(&Value::Null), &thinking);
            assert_eq!(body["output_config"]["effort"], effort, "{model}");
            assert_eq!(&body["tool_choice"], choice, "{model}");
            let settings = ["temperature", "top_p"].map(|name| body.get(name).is_some());
            assert_eq!(settings, [kept; 2], "{model}");
        }
        // Other models receive the client's settings unchanged.
        let body = of_chat(chat(&json!({"temperature": 0}), ""), "kimi-k2");
        assert_eq!(body["temperature"], 0);
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
