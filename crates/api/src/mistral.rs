//! A conversation as Mistral takes it (docs.mistral.ai/api): chat completions with ids of nine
//! letters or digits, reasoning as parts of the content, and a strict order of roles.

use crate::conversation::{Conversation, Message};
use crate::openai_chat::stream::OpenaiChat;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{RequestError, RequestOptions, Tool, ToolChoice};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const API: &str = "mistral";

/// This API in the table.
pub(crate) const PROVIDER: Provider = Provider {
    name: "mistral",
    aliases: &[],
    base_url: "https://api.mistral.ai/v1",
    key_env: "MISTRAL_API_KEY",
    path: |_| Ok("/chat/completions".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: false,
    has_text_results: true,
    decoder: || Box::new(OpenaiChat::mistral()),
    body,
    answers: None,
};

/// The body of the request.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Map<String, Value>, RequestError> {
    let mut ids = Ids::default();
    let mut messages = options.opening(talk);
    let mut before = "";
    for m in &talk.messages {
        if before == "tool" && m.role() == "user" {
            // Mistral rejects a user's message right after a tool's: an interrupted turn leaves
            // such a conversation.
            messages.push(json!({"role": "assistant", "content": "(no answer)"}));
        }
        before = m.role();
        messages.push(message(m, &mut ids));
    }
    let mut body = options.chat(messages);
    let tools = options.tool_list();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.iter().map(Tool::openai).collect());
        if let Some(choice) = options.choice() {
            let choice = match choice {
                ToolChoice::Auto => "auto".into(),
                ToolChoice::None => "none".into(),
                ToolChoice::Required => "any".into(),
                ToolChoice::Name(name) => json!({"type": "function", "function": {"name": name}}),
            };
            body.insert("tool_choice".into(), choice);
        }
    }
    body.insert("stream".into(), options.stream.into());
    Ok(body)
}

fn message(message: &Message, ids: &mut Ids) -> Value {
    let mut out = Map::new();
    let role = if message.role() == "developer" {
        "system"
    } else {
        message.role()
    };
    out.insert("role".into(), role.into());
    match role {
        "assistant" => {
            out.insert("content".into(), answer(message));
            let calls = message.calls();
            if !calls.is_empty() {
                let calls = calls.iter().map(
                    |c| json!({"id": ids.of(c.id), "type": "function", "function": {"name": c.name, "arguments": c.arguments}}),
                );
                out.insert("tool_calls".into(), calls.collect());
            }
            if let Some(prefix) = message.get("prefix") {
                out.insert("prefix".into(), prefix.clone());
            }
        }
        "tool" => {
            out.insert("tool_call_id".into(), ids.of(message.tool_call_id()).into());
            if let Some(name) = message.get_str("name") {
                out.insert("name".into(), name.into());
            }
            out.insert(
                "content".into(),
                message.content().cloned().unwrap_or_else(|| "".into()),
            );
        }
        _ => {
            out.insert(
                "content".into(),
                message.content().cloned().unwrap_or_else(|| "".into()),
            );
        }
    }
    Value::Object(out)
}

/// The content of an answer: its text, after its reasoning where Mistral sent some, since it wants
/// that back.
fn answer(message: &Message) -> Value {
    let thoughts: String = message
        .reasoning_fields(API)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let text = message.content().cloned().unwrap_or_else(|| "".into());
    if thoughts.is_empty() {
        return text;
    }
    let mut parts =
        vec![json!({"type": "thinking", "thinking": [{"type": "text", "text": thoughts}]})];
    match text {
        Value::Array(more) => parts.extend(more),
        Value::String(text) if text.is_empty() => {}
        text => parts.push(json!({"type": "text", "text": text})),
    }
    parts.into()
}

/// Ids of other providers as Mistral wants them: nine of `[A-Za-z0-9]`. One that has the form
/// stays; the others are hashed, so that the same log gives the same request; two ids never get the
/// same name.
#[derive(Default)]
struct Ids {
    given: BTreeMap<String, String>,
}

impl Ids {
    fn of(&mut self, id: &str) -> String {
        if id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return id.to_owned();
        }
        if let Some(given) = self.given.get(id) {
            return given.clone();
        }
        let made = (0..)
            .map(|salt: u64| nine(id, salt))
            .find(|made| self.given.values().all(|other| other != made));
        let made = made.unwrap_or_default();
        self.given.insert(id.to_owned(), made.clone());
        made
    }
}

/// FNV-1a over the id and a number, written in base 62.
fn nine(id: &str, salt: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in id.bytes().chain(salt.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    let mut out = String::with_capacity(9);
    for _ in 0..9 {
        out.push(DIGITS[(hash % 62) as usize] as char);
        hash /= 62;
    }
    out
}
