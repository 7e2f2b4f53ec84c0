//! Ollama's own chat endpoint (github.com/ollama/ollama, docs/api.md, "Generate a chat
//! completion"): one JSON object a line.
//!
//! A call comes whole in one line, its arguments an object, often without an id. The last line has
//! `done`, the reason and the counts; a response without streaming is that line alone.

use crate::decoder::Decoder;
use crate::stream::openai_chat;
use crate::stream::reasoning_field::ReasoningField;
use crate::turn::Turn;
use crate::usage::Usage;
use event::payload::ToolCallDelta;
use event::{Raw, Sink, Text};
use std::borrow::Cow;

const API: &str = "ollama";

/// The members of a line that are read.
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

/// The rules of this stream.
#[derive(Debug, Default)]
pub(crate) struct Ollama {
    thinking: ReasoningField,
}

impl Decoder for Ollama {
    fn frame(&mut self, _name: Option<&str>, data: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        turn.model(data.get("model"));
        turn.id(data.get("created_at")); // Responses have no id.
        if let Some(list) = data.get("logprobs").filter(|list| list.is_array()) {
            // The entries are those of chat completions (https://docs.ollama.com/api/chat).
            turn.member(
                0,
                "choice",
                "logprobs",
                &format!("{{\"content\":{}}}", list.text()),
                out,
            );
        }
        turn.details(0, "answer", data, &READ, out);
        if let Some(message) = data.get("message") {
            self.message(message, turn, out);
        }
        if let Some(text) = data.get("response").filter(|t| t.is_str()) {
            self.text(text, turn, out);
        }
        if data.get("done").and_then(Raw::bool) == Some(true) {
            let n = |key: &str| Usage::count(data, &[key]);
            turn.usage(&Usage {
                prompt: n("prompt_eval_count"),
                completion: n("eval_count"),
                ..Usage::default()
            });
            let word = data.get_str("done_reason").unwrap_or(Cow::Borrowed("stop"));
            turn.finish_reason(0, openai_chat::reason(&word), &word);
            turn.end_mark();
        }
    }

    fn finish(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        self.thinking.close(API, turn, out);
    }
}

impl Ollama {
    fn message(&mut self, message: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        turn.choice(0);
        let calls = || message.get("tool_calls").into_iter().flat_map(Raw::items);
        turn.with_call(calls().next().is_some());
        if let Some(text) = message.get("thinking") {
            self.thinking.piece("thinking", text, API, turn, out);
        }
        if let Some(text) = message.get("content").filter(|t| t.is_str()) {
            self.text(text, turn, out);
        }
        for call in calls() {
            self.thinking.close(API, turn, out);
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
            turn.call(0, &delta, function.get("arguments"), out);
        }
    }

    fn text(&mut self, text: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        if text.text() != "\"\"" {
            self.thinking.close(API, turn, out);
            turn.text(0, text, out);
        }
    }
}
