//! Messages. Source: <https://docs.anthropic.com/en/api/messages-streaming>

use super::{Part, Turn, event, halves, value};
use serde_json::{Value, json};

/// The model's signature of its reasoning.
const SIGNATURE: &str = "EqQBCgIYAhIM";

pub(super) fn frames(turn: &Turn) -> Vec<String> {
    let mut begin = message(turn, vec![], None);
    if let Some(tokens) = begin.pointer_mut("/usage/output_tokens") {
        *tokens = 1.into();
    }
    let mut events = vec![
        json!({"type": "message_start", "message": begin}),
        json!({"type": "ping"}),
    ];
    for (index, part) in turn.parts.iter().enumerate() {
        let (block, deltas) = match part {
            Part::Text(pieces) => (
                json!({"type": "text", "text": ""}),
                pieces
                    .iter()
                    .map(|text| json!({"type": "text_delta", "text": text}))
                    .collect::<Vec<_>>(),
            ),
            Part::Thinking(pieces) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                pieces
                    .iter()
                    .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                    .chain([json!({"type": "signature_delta", "signature": SIGNATURE})])
                    .collect(),
            ),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let [first, second] = halves(arguments);
                (
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    ["", first, second]
                        .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                        .to_vec(),
                )
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let mut end = json!({"type": "message_delta", "delta": {"stop_reason": reason(turn), "stop_sequence": null}});
    if let Some(usage) = usage(turn) {
        end["usage"] = usage;
    }
    events.extend([end, json!({"type": "message_stop"})]);
    events.iter().map(event).collect()
}

pub(super) fn whole(turn: &Turn) -> Value {
    let blocks = turn.parts.iter().map(|part| match part {
        Part::Text(pieces) => json!({"type": "text", "text": pieces.concat()}),
        Part::Thinking(pieces) => {
            json!({"type": "thinking", "thinking": pieces.concat(), "signature": SIGNATURE})
        }
        Part::Call {
            id,
            name,
            arguments,
        } => json!({"type": "tool_use", "id": id, "name": name, "input": value(arguments)}),
    });
    message(turn, blocks.collect(), Some(reason(turn)))
}

fn message(turn: &Turn, content: Vec<Value>, reason: Option<&str>) -> Value {
    let mut message = json!({"id": turn.id, "type": "message", "role": "assistant", "model": turn.model_name(), "content": content,
        "stop_reason": reason, "stop_sequence": null});
    if let Some(usage) = usage(turn) {
        message["usage"] = usage;
    }
    message
}

fn reason(turn: &Turn) -> &'static str {
    turn.reason_as(["end_turn", "tool_use", "max_tokens", "refusal"])
}

fn usage(turn: &Turn) -> Option<Value> {
    turn.tokens.map(|tokens| {
        json!({"input_tokens": tokens.input - tokens.cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens.cached,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": tokens.output, "service_tier": "standard"})
    })
}
