//! The request of OpenAI's Responses API: a flat list of items, and nothing stored on the
//! provider's side.
//!
//! Source of the format: OpenAI's Responses API reference
//! (platform.openai.com/docs/api-reference/responses/create); reasoning goes back after "Keeping
//! reasoning items in context" (platform.openai.com/docs/guides/reasoning).

use crate::conversation::{Conversation, Message};
use crate::members::{GetText, Put};
use crate::openai_responses::stream::OpenaiResponses;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{
    RequestError, RequestOptions, RequestTool, ToolChoice, is_system, system, value,
};
use crate::request::part::{MediaKind, Part, PartSource, parts};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// This API's name in the table, and the key of its data in a message.
const API: &str = "openai-responses";

/// This API in the table.
pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-responses",
    aliases: &["responses"],
    base_url: "https://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    path: |_| Ok("/responses".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: true,
    has_text_results: false,
    decoder: || Box::new(OpenaiResponses::default()),
    body,
    answers: Some(&crate::openai_responses::writer::FORMAT),
};

/// The body of the request.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Map<String, Value>, RequestError> {
    let mut body = Map::new();
    body.put("model", options.model.as_str());
    if let Some(system) = system(talk, options) {
        body.put("instructions", system);
    }
    let input = items(talk, &mut HashSet::new())?;
    if input.is_empty() {
        return Err(RequestError::Empty);
    }
    body.put("input", input);
    let tools = options.tool_list();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.iter().map(tool).collect());
        if let Some(choice) = options.choice() {
            let choice = match choice {
                ToolChoice::Auto => "auto".into(),
                ToolChoice::None => "none".into(),
                ToolChoice::Required => "required".into(),
                ToolChoice::Name(name) => json!({"type": "function", "name": name}),
            };
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    body.put("store", false);
    if may_reason(&options.model) {
        body.put("include", json!(["reasoning.encrypted_content"]));
    }
    if options.stream {
        body.put("stream", true);
    }
    Ok(body)
}

/// Models that cannot reason reject a request for their encrypted reasoning.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !["gpt-3", "gpt-4", "chatgpt", "ft:gpt-3", "ft:gpt-4"]
        .iter()
        .any(|old| name.starts_with(old))
        && !name.contains("-chat")
}

fn tool(tool: &RequestTool<'_>) -> Value {
    let tool = match tool {
        RequestTool::Function(tool) => tool,
        RequestTool::Provider(tool) => return value(&tool.text),
    };
    let mut out = Map::new();
    out.put("type", "function");
    out.put("name", tool.name.as_str());
    if let Some(description) = &tool.description {
        out.put("description", description.as_str());
    }
    out.insert("parameters".to_owned(), value(tool.schema()));
    // Left out, it would be true here, and the provider would rewrite the schema so that every
    // member is required.
    out.put("strict", tool.strict.unwrap_or(false));
    Value::Object(out)
}

/// The messages but for system prompts, as items. `custom` has the ids of the custom calls before
/// them, and gets those of theirs.
///
/// # Errors
/// A message of an unknown role.
pub(crate) fn items(
    talk: &Conversation,
    custom: &mut HashSet<String>,
) -> Result<Vec<Value>, RequestError> {
    let mut input = Vec::new();
    for (position, message) in (1..).zip(&talk.messages) {
        match message.role() {
            role if is_system(role) => {}
            "user" => {
                let content = content(message);
                if content != json!([]) {
                    input.push(json!({"type": "message", "role": "user", "content": content}));
                }
            }
            "assistant" => answer(message, custom, &mut input),
            "tool" => {
                let id = message.tool_call_id();
                let kind = if custom.contains(id) {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                };
                let output = content(message);
                let output = if output == json!([]) {
                    "".into()
                } else {
                    output
                };
                input.push(json!({"type": kind, "call_id": id, "output": output}));
            }
            role => return Err(RequestError::role(position, role)),
        }
    }
    Ok(input)
}

/// The content of a user's message or of a result: a string if it is nothing but one text.
fn content(message: &Message) -> Value {
    let parts = parts(message.content());
    if let [Part::Text(text)] = parts[..] {
        return text.into();
    }
    let part = |part: &Part<'_>| match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Media {
            kind: MediaKind::Image,
            source,
            detail,
            ..
        } => {
            json!({"type": "input_image", "image_url": source.url(), "detail": detail.unwrap_or("auto")})
        }
        Part::Media {
            kind: MediaKind::File,
            source: PartSource::Url(url),
            ..
        } => {
            json!({"type": "input_file", "file_url": url})
        }
        Part::Media {
            kind: MediaKind::File,
            source,
            name,
            ..
        } => {
            json!({"type": "input_file", "filename": name.unwrap_or("file"), "file_data": source.url()})
        }
        Part::Other(part) => (*part).clone(),
    };
    parts.iter().map(part).collect()
}

/// An assistant's message as items. The ids of custom calls go into `custom`: their results have
/// another type.
fn answer(message: &Message, custom: &mut HashSet<String>, input: &mut Vec<Value>) {
    let calls = message.calls();
    let text = message.text();
    let refusal = message.refusal();
    if calls.is_empty() && text.is_empty() && refusal.is_empty() {
        // Reasoning that nothing follows is refused.
        return;
    }
    let own: Vec<_> = message
        .blocks()
        .into_iter()
        .filter_map(|b| Some((b, reasoning(b.data(API)?)?)))
        .collect();
    let before_text = |calls: usize, text: bool| calls == 0 && !text;
    input.extend(
        own.iter()
            .filter(|(b, _)| before_text(b.calls, b.text))
            .map(|(_, item)| item.clone()),
    );
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({"type": "output_text", "text": text, "annotations": []}));
    }
    if !refusal.is_empty() {
        parts.push(json!({"type": "refusal", "refusal": refusal}));
    }
    if !parts.is_empty() {
        input.push(json!({"type": "message", "role": "assistant", "status": "completed", "content": parts}));
    }
    for n in 0..=calls.len() {
        let here = own
            .iter()
            .filter(|(b, _)| !before_text(b.calls, b.text) && b.calls.min(calls.len()) == n);
        // The same holds after the last call.
        input.extend(
            here.filter(|_| n < calls.len())
                .map(|(_, item)| item.clone()),
        );
        let Some(call) = calls.get(n) else { continue };
        let free = call.provider(API).and_then(|p| p.get("custom")) == Some(&Value::Bool(true));
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or_default();
        input.push(match arguments.text_of("input").filter(|_| free) {
            Some(text) => {
                custom.insert(call.id.to_owned());
                json!({"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": text})
            }
            None => {
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
            }
        });
    }
}

/// A reasoning item as the provider takes it back: it refuses members that its own stream has, such
/// as `status`.
fn reasoning(data: &Value) -> Option<Value> {
    let item = data.get("item")?.as_object()?;
    let mut kept = Map::new();
    kept.put("type", "reasoning");
    for key in ["id", "summary", "content", "encrypted_content"] {
        let value = item.get(key).filter(|v| !v.is_null());
        // `content` is there only for open models, whose reasoning is plain.
        if let Some(value) =
            value.filter(|v| key != "content" || v.as_array().is_some_and(|v| !v.is_empty()))
        {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    kept.entry("summary").or_insert_with(|| json!([]));
    Some(Value::Object(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Api::OpenaiResponses;
    use crate::support::body;

    #[test]
    fn a_turn_of_calls_and_results() {
        let body = body(
            OpenaiResponses,
            &RequestOptions {
                system: Some("Be brief.".into()),
                tool_choice: Some("f".into()),
                ..RequestOptions::default()
            },
            r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"strict":true}},{"type":"custom","name":"sql"}]"#,
            r#"{"role":"user","content":"Hello"}
            {"role":"assistant","content":"Two calls.","provider":[
                {"thinking":"hm","data":{"openai-responses":{"item":{"type":"reasoning","id":"rs","status":null,"summary":[],"content":[],"encrypted_content":"e"}}},"calls":0,"text":false},
                {"thinking":"","data":{"openai-responses":{"item":{"type":"reasoning","id":"rs2","content":[{"type":"reasoning_text","text":"x"}]}}},"calls":2,"text":true}],
             "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
                {"id":"b","type":"function","function":{"name":"sql","arguments":"{\"input\":\"SELECT 1\"}"},"provider":{"openai-responses":{"custom":true}}}]}
            {"role":"tool","tool_call_id":"a","content":"one"}
            {"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"1"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}"#,
        );
        let want = json!({
            "model": "m", "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user", "content": "Hello"},
                {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"},
                {"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Two calls.", "annotations": []}]},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"a\":1}"},
                {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "SELECT 1"},
                {"type": "function_call_output", "call_id": "a", "output": "one"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "1"}, {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}]},
            ],
            "tools": [
                {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": true},
                {"type": "custom", "name": "sql"},
            ],
            "tool_choice": {"type": "function", "name": "f"},
            "store": false, "include": ["reasoning.encrypted_content"], "stream": true,
        });
        assert_eq!(body, want);
    }

    #[test]
    fn only_models_that_reason_are_asked_for_it() {
        for (model, asked) in [
            ("gpt-5.1", true),
            ("openai/gpt-4o", false),
            ("gpt-4.1-mini", false),
            ("gpt-5-chat-latest", false),
            ("o3", true),
        ] {
            assert_eq!(may_reason(model), asked, "{model}");
        }
    }
}
