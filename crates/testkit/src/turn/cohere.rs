//! Cohere's chat. Source: <https://docs.cohere.com/v2/docs/streaming>

use super::{Part, Turn, event, halves};
use serde_json::{Value, json};

pub(super) fn frames(turn: &Turn) -> Vec<String> {
    let mut events = vec![json!({"id": turn.id, "type": "message-start",
        "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}})];
    for (index, part) in turn.parts.iter().enumerate() {
        let content = |kind: &str, content: Value| json!({"type": kind, "index": index, "delta": {"message": {"content": content}}});
        let mut pieces_as = |name: &str, pieces: &[String]| {
            events.push(content("content-start", json!({"type": name, name: ""})));
            events.extend(
                pieces
                    .iter()
                    .map(|text| content("content-delta", json!({name: text}))),
            );
            events.push(json!({"type": "content-end", "index": index}));
        };
        match part {
            Part::Text(pieces) => pieces_as("text", pieces),
            Part::Thinking(pieces) => pieces_as("thinking", pieces),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let call = |kind: &str, call: Value| json!({"type": kind, "index": index, "delta": {"message": {"tool_calls": call}}});
                events.push(call(
                    "tool-call-start",
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": ""}}),
                ));
                events.extend(halves(arguments).map(|piece| {
                    call("tool-call-delta", json!({"function": {"arguments": piece}}))
                }));
                events.push(json!({"type": "tool-call-end", "index": index}));
            }
        }
    }
    let mut end = json!({"finish_reason": reason(turn)});
    if let Some(usage) = usage(turn) {
        end["usage"] = usage;
    }
    events.push(json!({"type": "message-end", "delta": end}));
    events.iter().map(event).collect()
}

pub(super) fn whole(turn: &Turn) -> Value {
    let mut content = vec![];
    for part in &turn.parts {
        match part {
            Part::Text(pieces) => content.push(json!({"type": "text", "text": pieces.concat()})),
            Part::Thinking(pieces) => {
                content.push(json!({"type": "thinking", "thinking": pieces.concat()}));
            }
            Part::Call { .. } => {}
        }
    }
    let calls: Vec<Value> = turn
        .calls_only()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut whole = json!({"id": turn.id, "message": message, "finish_reason": reason(turn)});
    if let Some(usage) = usage(turn) {
        whole["usage"] = usage;
    }
    whole
}

fn reason(turn: &Turn) -> &'static str {
    turn.reason_as(["COMPLETE", "TOOL_CALL", "MAX_TOKENS", "ERROR_TOXIC"])
}

fn usage(turn: &Turn) -> Option<Value> {
    turn.tokens.map(|tokens| {
        json!({"billed_units": {"input_tokens": tokens.input, "output_tokens": tokens.output},
            "tokens": {"input_tokens": tokens.input, "output_tokens": tokens.output}, "cached_tokens": tokens.cached})
    })
}
