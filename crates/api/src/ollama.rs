//! Ollama's chat API (github.com/ollama/ollama, docs/api.md, "Generate a chat completion"): one
//! JSON object per line.
//!
//! A call arrives complete in one line, with an object as its arguments and often without an id.
//! The last line contains `done`, the finish reason and the token counts. A non-streaming response
//! consists of that line alone.

use crate::conversation::{Message, called};
use crate::members::{GetText, Put};
use crate::openai_chat;
use crate::openai_chat::request::{ChatLog, ChatRow, chat_body, put_calls, role};
use crate::provider::{KeyRule, Provider};
use crate::template::Varying;
use crate::turn::{Decoder, EventWriter, ReasoningField};
use event::payload::{SessionStats, ToolCallDelta};
use event::{Raw, Text};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

const API: &str = "ollama";

/// The members of a line that are parsed.
const READ: [&str; 9] = [
    "model",
    "created_at",
    "message",
    "response",
    "done",
    "done_reason",
    "prompt_eval_count",
    "eval_count",
    "logprobs",
];

/// Decodes this API's streams.
#[derive(Debug, Default)]
pub(crate) struct Ollama {
    thinking: ReasoningField,
}

impl Decoder for Ollama {
    fn frame(&mut self, _name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        turn.model(data.get("model"));
        turn.id(data.get("created_at")); // Responses have no id.
        if let Some(list) = data.get("logprobs").filter(|list| list.is_array()) {
            // The entries have the form of Chat Completions (https://docs.ollama.com/api/chat).
            turn.member(
                0,
                "choice",
                "logprobs",
                &format!("{{\"content\":{}}}", list.text()),
            );
        }
        turn.details(0, "answer", data, &READ);
        if let Some(message) = data.get("message") {
            self.message(message, turn);
        }
        if let Some(text) = data.get("response").filter(|t| t.is_str()) {
            self.text(text, turn);
        }
        if data.get("done").and_then(Raw::bool) == Some(true) {
            let n = |key: &str| crate::turn::count(data, &[key]);
            turn.usage(SessionStats {
                prompt_tokens: n("prompt_eval_count"),
                completion_tokens: n("eval_count"),
                ..SessionStats::default()
            });
            let word = data.get_str("done_reason").unwrap_or(Cow::Borrowed("stop"));
            turn.finish_reason(0, openai_chat::stream::reason(&word), &word);
            turn.marked = true;
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn varying(&self) -> Varying {
        Varying {
            unread: &["created_at"],
            ..Varying::default()
        }
    }

    fn finish(&mut self, turn: &mut EventWriter<'_>) {
        self.thinking.close(turn);
    }
}

impl Ollama {
    fn message(&mut self, message: Raw<'_>, turn: &mut EventWriter<'_>) {
        turn.choice(0);
        let calls = || message.list("tool_calls");
        turn.with_call = calls().next().is_some();
        if let Some(text) = message.get("thinking") {
            self.thinking.piece("thinking", text, turn);
        }
        if let Some(text) = message.get("content").filter(|t| t.is_str()) {
            self.text(text, turn);
        }
        for call in calls() {
            self.thinking.close(turn);
            let function = call.get("function").unwrap_or(call);
            let delta = ToolCallDelta {
                index: function
                    .get("index")
                    .or_else(|| call.get("index"))
                    .and_then(Raw::i64),
                tool_id: call.get("id").and_then(Text::of),
                tool_name: function.get("name").and_then(Text::of),
                done: true,
                ..ToolCallDelta::default()
            };
            turn.call(0, &delta, function.get("arguments"));
        }
    }

    fn text(&mut self, text: Raw<'_>, turn: &mut EventWriter<'_>) {
        if text.text() != "\"\"" {
            self.thinking.close(turn);
            turn.text(0, text);
        }
    }
}

/// Ollama's row in the table of APIs.
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
    decoder: || Box::new(Ollama::default()),
    body: |talk, options| chat_body(talk, options, &ROW),
    answers: None,
};

// The API has no `tool_choice` (https://docs.ollama.com/api/chat), so a call cannot be required.
const ROW: ChatRow = ChatRow {
    choices: [None; 3],
    names_tools: false,
    has_strict: true,
    asks_for_usage: false,
    after_results: None,
    message,
};

fn message(message: &Message, log: &mut ChatLog<'_>) -> Result<Value, String> {
    let mut out = Map::new();
    out.put("role", role(message));
    out.put("content", message.text());
    let images = images(message)?;
    if !images.is_empty() {
        out.put("images", images);
    }
    if message.role() == "tool" {
        let called = || called(log.before, message.tool_call_id());
        if let Some(name) = message.get_str("name").or_else(called) {
            out.put("tool_name", name);
        }
        out.put("tool_call_id", message.tool_call_id());
    }
    if message.role() == "assistant" {
        for (_, text) in message.reasoning_fields(API) {
            out.put("thinking", text);
        }
        put_calls(&mut out, message, |c| {
            let arguments: Value = serde_json::from_str(c.arguments).unwrap_or_else(|_| json!({}));
            json!({"id": c.id, "function": {"name": c.name, "arguments": arguments}})
        });
    }
    Ok(out.into())
}

/// Returns the images in the content, base64-encoded.
fn images(message: &Message) -> Result<Vec<Value>, String> {
    let parts = message.list_of("content").iter();
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
