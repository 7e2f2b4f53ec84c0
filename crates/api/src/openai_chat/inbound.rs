//! Parses client requests of Chat Completions
//! (<https://platform.openai.com/docs/api-reference/chat/create>). The messages already have the
//! form of a conversation. Content that servers reject is changed.

use crate::Api;
use crate::carried::id_without;
use crate::conversation::Message;
use crate::inbound::draft::InboundNotes;
use crate::inbound::request::{InboundError, InboundRequest};
use crate::members::{GetText, Put, Take};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Parses the body.
///
/// # Errors
/// See [`crate::inbound`].
pub(crate) fn read(mut body: Map<String, Value>) -> Result<InboundRequest, InboundError> {
    let mut notes = InboundNotes::default();
    let messages = body.take_member("messages");
    // `functions` and `function_call` are the older names.
    let functions = body.take_member("functions");
    let called = body.take_member("function_call");
    let tools = body.take_member("tools").or(functions);
    let choice = body.take_member("tool_choice").or(called);
    let include_usage = body
        .take_member("stream_options")
        .and_then(|options| options.get("include_usage")?.as_bool());
    let (mut request, _) = InboundRequest::begin(body, &[]);
    request.include_usage = include_usage.unwrap_or_default();
    let has_more = request.set_tools(tools.as_ref(), choice.as_ref(), &mut notes);
    request.drop_parallel_without_tools();
    let mut read = Vec::new();
    let mut open = OpenFunctions::default();
    let Some(Value::Array(messages)) = messages else {
        return request.end(read, "messages", true, notes);
    };
    for (at, value) in messages.into_iter().enumerate() {
        let Value::Object(fields) = value else {
            notes.add(format!("messages[{at}]: not an object, it is skipped"));
            continue;
        };
        read.extend(message(fields, at, &mut open, &mut notes).map(Message::new));
    }
    let is_empty = read.is_empty();
    let mut request = request.end(read, "messages", is_empty, notes)?;
    // Other servers of this API may have their own tools, such as GLM's web search, and members
    // such as `cache_control`.
    if has_more {
        let members = [("tools", tools), ("tool_choice", choice)];
        let members = members
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        request.keep(Api::OpenaiChat, members.collect());
    }
    Ok(request)
}

/// The calls made with `function_call`, which have no id. Generated ids, by function name.
#[derive(Debug, Default)]
struct OpenFunctions {
    ids: HashMap<String, String>,
}

/// Parses one message. Returns `None` if it must be skipped.
fn message(
    mut fields: Map<String, Value>,
    at: usize,
    open: &mut OpenFunctions,
    notes: &mut InboundNotes,
) -> Option<Map<String, Value>> {
    let role = fields.text_of("role").unwrap_or_default().to_owned();
    // Clients send back messages from responses, in which absent members are null.
    fields.retain(|key, value| !value.is_null() || key == "content");
    unread(&fields, notes);
    content(&mut fields, at, notes);
    match role.as_str() {
        "system" | "developer" | "user" if fields.get("content").is_none_or(Value::is_null) => {
            notes.add(format!("messages[{at}]: without content, it is skipped"));
            return None;
        }
        "system" | "developer" | "user" => {}
        "assistant" => assistant(&mut fields, at, open, notes),
        "tool" => {
            fields.entry("content").or_insert_with(|| "".into());
            if let Some(Value::String(id)) = fields.get_mut("tool_call_id") {
                *id = id_without(id).0.to_owned();
            }
        }
        "function" => {
            let name = fields.text_of("name").unwrap_or_default();
            let id = open.ids.get(name).cloned().unwrap_or_default();
            fields.put("role", "tool");
            fields.put("tool_call_id", id);
        }
        role => {
            notes.unknown_role("messages", at, role);
            return None;
        }
    }
    Some(fields)
}

/// Adds a note for each member that only servers of this API receive.
fn unread(fields: &Map<String, Value>, notes: &mut InboundNotes) {
    const MESSAGE: [&str; 10] = [
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "refusal",
        "function_call",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "provider",
    ];
    // A result's name is the name of its tool.
    let is_result = fields
        .get("role")
        .is_some_and(|role| role == "tool" || role == "function");
    let read = if is_result {
        [&MESSAGE[..], &["name"]].concat()
    } else {
        MESSAGE.to_vec()
    };
    for (name, value) in fields
        .iter()
        .filter(|(name, _)| !read.contains(&name.as_str()))
    {
        notes.unread("a message", &json!({ (name): value }), &[]);
    }
    for part in fields.list_of("content").iter() {
        notes.unread(
            "a part of a message",
            part,
            &[
                "type",
                "text",
                "refusal",
                "image_url",
                "file",
                "input_audio",
            ],
        );
    }
}

/// Reduces the content to a string or parts.
fn content(fields: &mut Map<String, Value>, at: usize, notes: &mut InboundNotes) {
    match fields.get_mut("content") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            let before = parts.len();
            parts.retain(|part| part.is_string() || part.get("type").is_some_and(Value::is_string));
            if parts.len() < before {
                notes.add(format!(
                    "messages[{at}].content: a part without a type is skipped"
                ));
            }
            for part in parts.iter_mut().filter(|part| part.is_string()) {
                *part = json!({"type": "text", "text": part.take()});
            }
            if parts.is_empty() {
                fields.put("content", "");
            }
        }
        Some(part @ Value::Object(_)) if part.get("type").is_some_and(Value::is_string) => {
            *part = json!([part.take()]);
        }
        Some(_) => {
            notes.add(format!(
                "messages[{at}].content: neither a text nor parts, it is skipped"
            ));
            fields.shift_remove("content");
        }
    }
}

fn assistant(
    fields: &mut Map<String, Value>,
    at: usize,
    open: &mut OpenFunctions,
    notes: &mut InboundNotes,
) {
    let mut calls = Vec::new();
    match fields.shift_remove("tool_calls") {
        Some(Value::Array(list)) => {
            for value in list {
                match call(value) {
                    Some(call) => calls.push(call),
                    None => notes.add(format!(
                        "messages[{at}].tool_calls: a call without a name is skipped"
                    )),
                }
            }
        }
        Some(_) => notes.add(format!(
            "messages[{at}].tool_calls: not an array, it is skipped"
        )),
        None => {}
    }
    if let Some(value) = fields.shift_remove("function_call") {
        let id = format!("call_function_{at}");
        if let Some(call) = call(json!({"id": id, "type": "function", "function": value})) {
            let name = call
                .pointer("/function/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            open.ids.insert(name.to_owned(), id);
            calls.push(call);
        }
    }
    if !calls.is_empty() {
        fields.put("tool_calls", calls);
    }
    if fields
        .get("annotations")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        fields.shift_remove("annotations");
    }
    reasoning(fields);
}

/// Converts the reasoning members of various servers (DeepSeek, vLLM, OpenRouter) to the form of a
/// conversation.
fn reasoning(fields: &mut Map<String, Value>) {
    let mut data = Map::new();
    let mut thoughts = String::new();
    for field in ["reasoning_content", "reasoning"] {
        // A response may have the same text in both members.
        let text = fields
            .shift_remove(field)
            .and_then(|text| text.as_str().map(str::to_owned));
        if let Some(text) = text.filter(|text| thoughts.is_empty() && !text.is_empty()) {
            data.put("field", field);
            thoughts = text;
        }
    }
    if let Some(details) = fields
        .shift_remove("reasoning_details")
        .filter(|d| d.as_array().is_some_and(|d| !d.is_empty()))
    {
        data.insert("reasoning_details".to_owned(), details);
    }
    if !thoughts.is_empty() {
        fields.put("reasoning", thoughts.as_str());
    }
    if !data.is_empty() && !fields.get("provider").is_some_and(Value::is_array) {
        let block =
            json!({"thinking": thoughts, "data": {"openai-chat": data}, "calls": 0, "text": false});
        fields.put("provider", json!([block]));
    }
}

/// Converts a call to the form of a conversation. Data that a provider requires back
/// (`extra_content` of Gemini's endpoint) becomes `provider`.
fn call(value: Value) -> Option<Value> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let mut own = Map::new();
    let id = fields
        .shift_remove("id")
        .filter(Value::is_string)
        .unwrap_or_else(|| "".into());
    let mut provider = fields
        .shift_remove("provider")
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    let (name, arguments);
    if let Some(custom) = fields.shift_remove("custom").filter(Value::is_object) {
        name = custom.get("name").cloned();
        let input = custom.text_of("input").unwrap_or_default();
        arguments = json!({"input": input}).to_string();
        own.put("custom", true);
    } else {
        let function = fields.shift_remove("function")?;
        name = function.get("name").cloned();
        arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => "{}".to_owned(),
        };
        for key in ["extra_content", "provider_specific_fields"] {
            own.extend(
                fields
                    .shift_remove(key)
                    .filter(|v| !v.is_null())
                    .map(|value| (key.to_owned(), value)),
            );
        }
    }
    let name = name.filter(|name| name.as_str().is_some_and(|name| !name.is_empty()))?;
    // Data that `tc-serve` itself added to a response for another provider.
    let ours = own
        .get_mut("extra_content")
        .and_then(Value::as_object_mut)
        .and_then(|extra| extra.shift_remove("toolpipe"));
    let (id, carried) = id_without(id.as_str().unwrap_or_default());
    for ours in [ours, carried].into_iter().flatten() {
        if let (Value::Object(ours), Some(provider)) = (ours, provider.as_object_mut()) {
            provider.extend(ours);
        }
        own.retain(|_, value| value != &json!({}));
    }
    if let Some(signature) = own
        .get("extra_content")
        .and_then(|extra| extra.pointer("/google/thought_signature"))
    {
        provider["gemini"]["thoughtSignature"] = signature.clone();
    }
    if !own.is_empty() {
        // The client sent this data back itself.
        provider["openai-chat"] = own.into();
    }
    let mut call = Map::new();
    call.put("id", id);
    call.put("type", "function");
    call.put("function", json!({"name": name, "arguments": arguments}));
    if provider
        .as_object()
        .is_some_and(|provider| !provider.is_empty())
    {
        call.insert("provider".to_owned(), provider);
    }
    Some(call.into())
}
