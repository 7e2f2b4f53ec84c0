//! Cohere's chat API, version 2 (docs.cohere.com/v2/docs/streaming and /tool-use-streaming): typed
//! events, each with a delta of a message. The plan text before a call is treated as reasoning.
//! Citations are only kept as `details`.

use crate::conversation::Message;
use crate::failure::StreamFailure;
use crate::members::Put;
use crate::openai_chat::request::{ChatRow, chat_body, content, put_calls, role};
use crate::provider::{KeyRule, Provider};
use crate::turn::{Decoder, EventWriter, ReasoningField};
use event::payload::{FinishReason, SessionStats, ToolCallDelta};
use event::{Raw, Text};
use serde_json::{Map, Value, json};

const API: &str = "cohere";

/// Decodes this API's streams.
#[derive(Debug, Default)]
pub(crate) struct Cohere {
    reasoning: ReasoningField,
}

impl Decoder for Cohere {
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        let kind = data.get_str("type");
        let message = data.at(&["delta", "message"]);
        match (kind.as_deref().or(name).unwrap_or_default(), message) {
            ("message-start", _) => {
                turn.id(data.get("id"));
                turn.choice(0);
            }
            ("content-start" | "content-delta" | "tool-plan-delta", Some(message)) => {
                self.message(message, turn)
            }
            ("tool-call-start" | "tool-call-delta", Some(message)) => {
                let Some(call) = message.get("tool_calls") else {
                    return;
                };
                // Every stream seen contains an object here, but the documented schema would allow
                // a list.
                for call in call.items().chain(Some(call).filter(|c| c.is_object())) {
                    self.call(data.get("index").and_then(Raw::i64), call, false, turn);
                }
            }
            ("tool-call-end", _) => {
                let index = data.get("index").and_then(Raw::i64);
                turn.end_call(0, index, "");
            }
            ("message-end", _) => {
                if let Some(delta) = data.get("delta") {
                    self.end(delta, turn);
                }
                turn.marked = true;
            }
            ("citation-start", Some(message)) => turn.details(0, "message", message, &[]),
            _ => {}
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn is_whole(&self, body: Raw<'_>) -> bool {
        body.get("type").is_none() && body.get("message").is_some_and(Raw::is_object)
    }

    fn whole(&mut self, body: Raw<'_>, turn: &mut EventWriter<'_>) {
        turn.id(body.get("id"));
        turn.choice(0);
        if let Some(message) = body.get("message") {
            let calls = || message.list("tool_calls");
            turn.with_call = calls().next().is_some();
            self.message(message, turn);
            for (position, call) in calls().enumerate() {
                self.call(i64::try_from(position).ok(), call, true, turn);
            }
        }
        self.end(body, turn);
    }

    fn finish(&mut self, turn: &mut EventWriter<'_>) {
        self.reasoning.close(turn);
    }
}

impl Cohere {
    /// Decodes the plan and the content of a message or delta. The content is one part or a list of
    /// parts.
    fn message(&mut self, message: Raw<'_>, turn: &mut EventWriter<'_>) {
        if let Some(plan) = message.get("tool_plan") {
            self.reasoning.piece("tool_plan", plan, turn);
        }
        turn.details(
            0,
            "message",
            message,
            &["role", "content", "tool_plan", "tool_calls"],
        );
        let Some(content) = message.get("content") else {
            return;
        };
        for part in content
            .items()
            .chain(Some(content).filter(|c| !c.is_array()))
        {
            if let Some(text) = part.get("thinking") {
                self.reasoning.piece("thinking", text, turn);
            }
            if let Some(text) = part
                .get("text")
                .or(Some(part))
                .filter(|t| t.is_str() && t.text() != "\"\"")
            {
                self.reasoning.close(turn);
                turn.text(0, text);
            }
        }
    }

    fn call(&mut self, index: Option<i64>, call: Raw<'_>, done: bool, turn: &mut EventWriter<'_>) {
        self.reasoning.close(turn);
        let function = call.get("function");
        let delta = ToolCallDelta {
            index,
            tool_id: call.get("id").and_then(Text::of),
            tool_name: function.and_then(|f| f.get("name")).and_then(Text::of),
            done,
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, function.and_then(|f| f.get("arguments")));
    }

    /// Decodes the end of a message: the finish reason and the token counts. `tokens` counts what
    /// the model processed; `billed_units` are fewer.
    fn end(&mut self, delta: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.reasoning.close(turn);
        if let Some(usage) = delta.get("usage") {
            let n = |key: &str| {
                crate::turn::count(usage, &["tokens", key])
                    .or_else(|| crate::turn::count(usage, &["billed_units", key]))
            };
            let cached = crate::turn::count(usage, &["cached_tokens"]);
            turn.usage(SessionStats {
                prompt_tokens: n("input_tokens"),
                completion_tokens: n("output_tokens"),
                cached_tokens: cached,
                ..SessionStats::default()
            });
        }
        if let Some(error) = delta.get("error").filter(|e| e.is_str() || e.is_object()) {
            let mut failure = StreamFailure::of(error, None);
            if let Some(code) = delta.get_str("error_type") {
                failure.code = code.to_lowercase();
            }
            turn.error(&failure);
        }
        let word = delta.get_str("finish_reason").unwrap_or_default();
        let reason = match word.as_ref() {
            "MAX_TOKENS" => FinishReason::Length,
            "TOOL_CALL" => FinishReason::ToolCalls,
            "ERROR_TOXIC" => FinishReason::ContentFilter,
            "ERROR" | "TIMEOUT" | "ERROR_LIMIT" => FinishReason::Error,
            _ => FinishReason::Stop,
        };
        turn.finish_reason(0, reason, &word);
    }
}

/// Cohere's row in the table of APIs.
pub(crate) const PROVIDER: Provider = Provider {
    name: "cohere",
    aliases: &[],
    base_url: "https://api.cohere.com",
    key_env: "COHERE_API_KEY",
    path: |_| Ok("/v2/chat".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: false,
    has_text_results: true,
    decoder: || Box::new(Cohere::default()),
    body: |talk, options| chat_body(talk, options, &ROW),
    answers: None,
};

// `strict_tools` applies to the whole request in this API, so it is left to the user. Tools by
// name: https://docs.cohere.com/docs/tool-use-usage-patterns
const ROW: ChatRow = ChatRow {
    choices: [None, Some("NONE"), Some("REQUIRED")],
    names_tools: false,
    has_strict: false,
    asks_for_usage: false,
    after_results: None,
    message: |message, _| Ok(self::message(message)),
};

fn message(message: &Message) -> Value {
    let mut out = Map::new();
    out.put("role", role(message));
    if message.role() == "tool" {
        out.put("tool_call_id", message.tool_call_id());
    }
    if message.role() != "assistant" {
        out.insert("content".into(), content(message));
        return out.into();
    }
    let has_calls = !message.calls().is_empty();
    let mut thoughts = None;
    for (field, text) in message.reasoning_fields(API) {
        match field.as_str() {
            "tool_plan" if has_calls => {
                out.put("tool_plan", text);
            }
            "thinking" => thoughts = Some(text),
            _ => {}
        }
    }
    let text = message.text();
    if let Some(thoughts) = thoughts {
        let mut parts = vec![json!({"type": "thinking", "thinking": thoughts})];
        if !text.is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
        out.put("content", parts);
    } else if !text.is_empty() || !has_calls {
        out.insert("content".into(), content(message));
    }
    put_calls(&mut out, message, |c| {
        let function = json!({"name": c.name, "arguments": c.arguments});
        json!({"id": c.id, "type": "function", "function": function})
    });
    out.into()
}
