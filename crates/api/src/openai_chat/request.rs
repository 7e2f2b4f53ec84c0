//! Builds Chat Completions requests (platform.openai.com/docs/api-reference/chat/create).
//! [`ChatRow`] describes the differences of the APIs derived from it.

use crate::conversation::{Conversation, Message, PastCall};
use crate::members::{GetText, Put};
use crate::openai_chat::stream::OpenaiChat;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{
    RequestBody, RequestError, RequestOptions, RequestTool, TOOLS, ToolChoice,
};
use event::Array;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const API: &str = "openai-chat";

/// The API's row in the table of APIs.
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

fn body(talk: &Conversation, options: &RequestOptions) -> Result<RequestBody, RequestError> {
    chat_body(talk, options, &ROW)
}

/// The differences between the APIs of this family.
pub(crate) struct ChatRow {
    /// The values of `tool_choice` for `auto`, `none` and `required`; `None` if the API lacks one.
    /// If it has no value for `none`, the tools are not sent.
    pub choices: [Option<&'static str>; 3],
    /// Whether `tool_choice` can name a tool. If not, only that tool is sent, with a required call.
    pub names_tools: bool,
    /// Whether a tool may have the member `strict`.
    pub has_strict: bool,
    /// Whether streaming requests ask for token counts and non-streaming requests omit `stream`.
    pub asks_for_usage: bool,
    /// An assistant message to insert between tool results and a user message, for APIs that reject
    /// a user message directly after results. An interrupted turn leaves such a conversation.
    pub after_results: Option<&'static str>,
    /// Converts a message. Returns the reason if the API cannot represent it.
    pub message: fn(&Message, &mut ChatLog<'_>) -> Result<Value, String>,
}

/// The context of a message.
pub(crate) struct ChatLog<'t> {
    pub before: &'t [Message],
    /// The replaced ids, by original id.
    pub ids: BTreeMap<String, String>,
}

const ROW: ChatRow = ChatRow {
    choices: [Some("auto"), Some("none"), Some("required")],
    names_tools: true,
    has_strict: true,
    asks_for_usage: true,
    after_results: None,
    message: |message, _| Ok(self::message(message)),
};

/// Builds the request body for an API of this family.
pub(crate) fn chat_body(
    talk: &Conversation,
    options: &RequestOptions,
    row: &ChatRow,
) -> Result<RequestBody, RequestError> {
    let mut messages = Vec::with_capacity(talk.messages.len() + 1);
    if let Some(text) = &options.system {
        messages.push(json!({"role": "system", "content": text}));
    }
    let mut log = ChatLog {
        before: &[],
        ids: BTreeMap::new(),
    };
    for (at, message) in talk.messages.iter().enumerate() {
        log.before = &talk.messages[..at];
        let follows_result = log.before.last().is_some_and(|m| m.role() == "tool");
        if let Some(text) = row.after_results
            && follows_result
            && message.role() == "user"
        {
            messages.push(json!({"role": "assistant", "content": text}));
        }
        let position = at + 1;
        let message = (row.message)(message, &mut log);
        messages.push(message.map_err(|why| RequestError::Message { position, why })?);
    }
    let mut body = Map::new();
    body.put("model", options.model.as_str());
    body.put("messages", messages);
    let tools = put_tools(&mut body, options, row);
    if !row.asks_for_usage {
        body.put("stream", options.stream);
    } else if options.stream {
        body.put("stream", true);
        body.put("stream_options", json!({"include_usage": true}));
    }
    Ok(RequestBody {
        members: body,
        tools,
    })
}

/// Inserts `tools` and `tool_choice`, if there are tools. Returns the value of `tools`.
fn put_tools(
    body: &mut Map<String, Value>,
    options: &RequestOptions,
    row: &ChatRow,
) -> Option<String> {
    let mut tools = options.tool_list();
    let [auto, none, required] = row.choices.map(|word| word.map(Value::from));
    let choice = match options.choice() {
        Some(ToolChoice::Auto) => auto,
        Some(ToolChoice::None) => {
            tools.retain(|_| none.is_some());
            none
        }
        Some(ToolChoice::Required) => required,
        Some(ToolChoice::Name(name)) if row.names_tools => {
            Some(json!({"type": "function", "function": {"name": name}}))
        }
        Some(ToolChoice::Name(name)) => {
            tools.retain(|tool| tool.name() == Some(name));
            required
        }
        None => None,
    };
    if tools.is_empty() {
        return None;
    }
    body.put(TOOLS, Value::Null);
    if let Some(choice) = choice {
        body.insert("tool_choice".into(), choice);
    }
    let mut out = Vec::new();
    let mut list = Array::open(&mut out);
    for tool in tools {
        match tool {
            RequestTool::Function(tool) if row.has_strict => {
                list.object(|entry| tool.write_openai(entry));
            }
            tool => {
                let mut tool = tool.openai();
                let function = tool.get_mut("function").and_then(Value::as_object_mut);
                if let Some(function) = function.filter(|_| !row.has_strict) {
                    function.shift_remove("strict");
                }
                list.raw(&tool.to_string());
            }
        }
    }
    list.close();
    String::from_utf8(out).ok()
}

/// Returns a message's role, with `developer` replaced by `system`.
pub(crate) fn role(message: &Message) -> &str {
    match message.role() {
        "developer" => "system",
        role => role,
    }
}

/// Returns a message's content, or "" if it has none.
pub(crate) fn content(message: &Message) -> Value {
    message.content().cloned().unwrap_or_else(|| "".into())
}

/// Inserts a message's calls into `out`, if there are any.
pub(crate) fn put_calls(
    out: &mut Map<String, Value>,
    message: &Message,
    call: impl FnMut(&PastCall<'_>) -> Value,
) {
    let calls: Vec<Value> = message.calls().iter().map(call).collect();
    if !calls.is_empty() {
        out.put("tool_calls", calls);
    }
}

/// Converts a message: removes members that only our logs use, and adds the data that its provider
/// requires back.
fn message(message: &Message) -> Value {
    let mut out = message.fields().clone();
    out.shift_remove("reasoning");
    out.shift_remove("provider");
    // Anthropic's clients add this member to results, and strict servers reject unknown members.
    out.shift_remove("is_error");
    if message.role() != "assistant" {
        return Value::Object(out);
    }
    let calls = message.calls();
    if calls.is_empty() {
        // Servers reject `"content":null` in a message without calls.
        if message.content().is_none() {
            out.put("content", "");
        }
        return Value::Object(out);
    }
    put_calls(&mut out, message, call);
    // DeepSeek rejects tool results if the reasoning before them is missing
    // (api-docs.deepseek.com/guides/thinking_mode). Other providers only receive a field that they
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
        out.put("reasoning_details", details);
    }
    Value::Object(out)
}

fn call(call: &PastCall<'_>) -> Value {
    let data = call.provider(API).and_then(Value::as_object);
    if data.is_some_and(|d| d.get("custom") == Some(&Value::Bool(true))) {
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or_default();
        let input = arguments.text_of("input").unwrap_or_default();
        return json!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": input}});
    }
    let mut out = Map::new();
    out.put("id", call.id);
    out.put("type", "function");
    out.put(
        "function",
        json!({"name": call.name, "arguments": call.arguments}),
    );
    for (key, value) in data.into_iter().flatten() {
        out.insert(key.clone(), value.clone());
    }
    Value::Object(out)
}
