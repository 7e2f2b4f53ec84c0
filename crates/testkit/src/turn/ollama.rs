//! Ollama's chat. Source: <https://github.com/ollama/ollama/blob/main/docs/api.md>

use super::{Part, Turn, value};
use serde_json::{Value, json};

pub(super) fn frames(turn: &Turn) -> Vec<String> {
    let mut messages = vec![];
    for part in &turn.parts {
        match part {
            Part::Text(pieces) => messages.extend(
                pieces
                    .iter()
                    .map(|text| json!({"role": "assistant", "content": text})),
            ),
            Part::Thinking(pieces) => messages.extend(
                pieces
                    .iter()
                    .map(|text| json!({"role": "assistant", "content": "", "thinking": text})),
            ),
            Part::Call { .. } => {}
        }
    }
    let calls = calls(turn);
    if !calls.is_empty() {
        messages.push(json!({"role": "assistant", "content": "", "tool_calls": calls}));
    }
    let lines = messages.into_iter().map(|message| line(turn, message));
    let end = end(turn, json!({"role": "assistant", "content": ""}));
    lines.chain([end]).map(|line| format!("{line}\n")).collect()
}

pub(super) fn whole(turn: &Turn) -> Value {
    let mut message = json!({"role": "assistant", "content": turn.text()});
    if !turn.thinking().is_empty() {
        message["thinking"] = turn.thinking().into();
    }
    let calls = calls(turn);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    end(turn, message)
}

fn calls(turn: &Turn) -> Vec<Value> {
    let calls = turn.calls_only().enumerate();
    calls
        .map(|(index, (id, name, arguments))| {
            json!({"id": id, "function": {"index": index, "name": name, "arguments": value(arguments)}})
        })
        .collect()
}

fn line(turn: &Turn, message: Value) -> Value {
    json!({"model": turn.model_name(), "created_at": "2026-11-22T10:00:00.000001Z", "message": message, "done": false})
}

fn end(turn: &Turn, message: Value) -> Value {
    let mut line = line(turn, message);
    line["done"] = true.into();
    line["done_reason"] = turn.reason_as(["stop", "stop", "length", "stop"]).into();
    line["total_duration"] = 2_000_000.into();
    line["load_duration"] = 1_000_000.into();
    if let Some(tokens) = turn.tokens {
        for (name, value) in [
            ("prompt_eval_count", tokens.input),
            ("prompt_eval_duration", 300_000),
            ("eval_count", tokens.output),
            ("eval_duration", 700_000),
        ] {
            line[name] = value.into();
        }
    }
    line
}
