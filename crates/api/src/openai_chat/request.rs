//! A conversation as chat completions take it
//! (platform.openai.com/docs/api-reference/chat/create), and as the APIs that differ from them in a
//! row of [`ChatRow`].

use crate::conversation::{Conversation, Message, PastCall};
use crate::members::{GetText, Put};
use crate::openai_chat::stream::OpenaiChat;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{RequestError, RequestOptions, RequestTool, ToolChoice};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

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

fn body(talk: &Conversation, options: &RequestOptions) -> Result<Map<String, Value>, RequestError> {
    chat_body(talk, options, &ROW)
}

/// What the APIs of this family do differently.
pub(crate) struct ChatRow {
    /// The words of `tool_choice` for `auto`, `none` and `required`, where the API has them. A tool
    /// that must not be called is not sent where it has none.
    pub choices: [Option<&'static str>; 3],
    /// Whether `tool_choice` can name a tool. Elsewhere the request has that tool alone, and
    /// requires a call.
    pub names_tools: bool,
    /// Whether `strict` is a member of a tool.
    pub has_strict: bool,
    /// Whether a request for a stream also asks for its counts, and one for a whole response has no
    /// `stream`.
    pub asks_for_usage: bool,
    /// The answer between the results of tools and a message of the user, where the API rejects
    /// one right behind the other: an interrupted turn leaves such a conversation.
    pub after_results: Option<&'static str>,
    /// A message, or why the API cannot have it.
    pub message: fn(&Message, &mut ChatLog<'_>) -> Result<Value, String>,
}

/// What came before a message.
pub(crate) struct ChatLog<'t> {
    pub before: &'t [Message],
    /// The ids that took the place of others.
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

/// The body of the request to an API of this family.
pub(crate) fn chat_body(
    talk: &Conversation,
    options: &RequestOptions,
    row: &ChatRow,
) -> Result<Map<String, Value>, RequestError> {
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
    put_tools(&mut body, options, row);
    if !row.asks_for_usage {
        body.put("stream", options.stream);
    } else if options.stream {
        body.put("stream", true);
        body.put("stream_options", json!({"include_usage": true}));
    }
    Ok(body)
}

/// `tools` and `tool_choice`, if there are tools.
fn put_tools(body: &mut Map<String, Value>, options: &RequestOptions, row: &ChatRow) {
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
        return;
    }
    let mut tools: Vec<Value> = tools.iter().map(RequestTool::openai).collect();
    if !row.has_strict {
        let functions = tools.iter_mut().filter_map(|tool| tool.get_mut("function"));
        for function in functions.filter_map(Value::as_object_mut) {
            function.shift_remove("strict");
        }
    }
    body.put("tools", tools);
    if let Some(choice) = choice {
        body.insert("tool_choice".into(), choice);
    }
}

/// The role of a message, for APIs without the role `developer`.
pub(crate) fn role(message: &Message) -> &str {
    match message.role() {
        "developer" => "system",
        role => role,
    }
}

/// The content of a message; "" if it has none.
pub(crate) fn content(message: &Message) -> Value {
    message.content().cloned().unwrap_or_else(|| "".into())
}

/// Puts the calls of a message into `out`, if it has any.
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
            out.put("content", "");
        }
        return Value::Object(out);
    }
    put_calls(&mut out, message, call);
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
