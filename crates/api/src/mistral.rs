//! Mistral's API (docs.mistral.ai/api): Chat Completions with ids of nine letters or digits,
//! reasoning in content parts, and a strict order of roles.

use crate::conversation::Message;
use crate::members::Put;
use crate::openai_chat::request::{ChatLog, ChatRow, chat_body, content, put_calls, role};
use crate::openai_chat::stream::OpenaiChat;
use crate::provider::{KeyRule, Provider};
use serde_json::{Map, Value, json};

const API: &str = "mistral";

/// Mistral's row in the table of APIs.
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
    decoder: || Box::new(OpenaiChat::default()),
    body: |talk, options| chat_body(talk, options, &ROW),
    answers: None,
};

const ROW: ChatRow = ChatRow {
    choices: [Some("auto"), Some("none"), Some("any")],
    names_tools: true,
    has_strict: true,
    asks_for_usage: false,
    after_results: Some("(no answer)"),
    message,
};

fn message(message: &Message, log: &mut ChatLog<'_>) -> Result<Value, String> {
    let mut out = Map::new();
    out.put("role", role(message));
    match message.role() {
        "assistant" => {
            out.insert("content".into(), answer(message));
            put_calls(&mut out, message, |c| {
                let function = json!({"name": c.name, "arguments": c.arguments});
                json!({"id": nine(log, c.id), "type": "function", "function": function})
            });
            if let Some(prefix) = message.get("prefix") {
                out.insert("prefix".into(), prefix.clone());
            }
        }
        "tool" => {
            let id = nine(log, message.tool_call_id());
            out.put("tool_call_id", id);
            if let Some(name) = message.get_str("name") {
                out.put("name", name);
            }
            out.insert("content".into(), content(message));
        }
        _ => _ = out.insert("content".into(), content(message)),
    }
    Ok(out.into())
}

/// Returns the content of an answer: its text, preceded by its reasoning if that came from Mistral,
/// which requires it to be sent back.
fn answer(message: &Message) -> Value {
    let thoughts: String = message
        .reasoning_fields(API)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let text = content(message);
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

/// Converts an id to Mistral's form, nine of `[A-Za-z0-9]`. An id in that form is kept. Other ids
/// are hashed, so that the same log always produces the same request. The results are unique.
fn nine(log: &mut ChatLog<'_>, id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    if let Some(given) = log.ids.get(id) {
        return given.clone();
    }
    let made = (0..)
        .map(|salt| hashed(id, salt))
        .find(|made| log.ids.values().all(|other| other != made));
    let made = made.unwrap_or_default();
    log.ids.insert(id.to_owned(), made.clone());
    made
}

/// Returns the FNV-1a hash of the id and a number, in base 62.
fn hashed(id: &str, salt: u64) -> String {
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
