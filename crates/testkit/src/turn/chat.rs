//! Chat completions. Source: <https://platform.openai.com/docs/api-reference/chat-streaming>, and
//! for Mistral's <https://docs.mistral.ai/api/#tag/chat>.

use super::{Part, Turn, data, halves};
use serde_json::{Value, json};

/// Returns a chunk of a stream with this delta and this finish reason, both JSON. For tests that
/// write a stream piece by piece, or need a delta that no [`Turn`] has.
pub fn chat_chunk(delta: &str, finish: &str) -> String {
    let [delta, finish] = [delta, finish].map(super::value);
    choice(&Turn::default(), true, &delta, &finish)
}

/// Returns the end of such a stream, after its last choice: the token counts and `[DONE]`.
pub fn chat_end() -> String {
    let turn = Turn::default();
    chunk(&turn, true, &json!([]), &usage(&turn)) + DONE
}

const DONE: &str = "data: [DONE]\n\n";

pub(super) fn frames(turn: &Turn, is_asked: bool) -> Vec<String> {
    let counts = is_asked && turn.has_usage();
    let choice = |delta, finish| choice(turn, counts, &delta, &finish);
    let first = json!({"role": "assistant", "content": "", "refusal": null});
    let mut frames = vec![choice(first, Value::Null)];
    frames.extend(deltas(turn).map(|delta| choice(delta, Value::Null)));
    frames.push(choice(json!({}), turn.reason().into()));
    frames.extend(counts.then(|| chunk(turn, true, &json!([]), &usage(turn))));
    frames.push(DONE.to_owned());
    frames
}

fn choice(turn: &Turn, counts: bool, delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    chunk(turn, counts, &json!([choice]), &Value::Null)
}

/// With `include_usage` every chunk has a `usage` member, which is `null` in all but the last one.
fn chunk(turn: &Turn, counts: bool, choices: &Value, usage: &Value) -> String {
    let mut chunk = json!({"id": turn.id, "object": "chat.completion.chunk", "created": 1, "model": turn.model_name(),
        "service_tier": "default", "system_fingerprint": null, "choices": choices});
    if counts {
        chunk["usage"] = usage.clone();
    }
    chunk["obfuscation"] = "Ok3".into();
    data(&chunk)
}

fn deltas(turn: &Turn) -> impl Iterator<Item = Value> {
    let mut calls = 0;
    turn.parts.iter().flat_map(move |part| match part {
        Part::Text(pieces) => pieces.iter().map(|text| json!({"content": text})).collect(),
        Part::Thinking(pieces) => {
            let pieces = pieces.iter();
            pieces.map(|text| json!({"reasoning_content": text})).collect::<Vec<_>>()
        }
        Part::Call { id, name, arguments } => {
            let index = calls;
            calls += 1;
            let begin = json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]});
            let piece = |piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            [vec![begin], halves(arguments).map(piece).to_vec()].concat()
        }
    })
}

/// Mistral's stream: calls are sent whole, and the token counts with the finish reason.
pub(super) fn frames_of_mistral(turn: &Turn) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": turn.id, "object": "chat.completion.chunk", "created": 1, "model": turn.model_name(),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut frames = vec![data(&chunk(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    ))];
    for part in &turn.parts {
        match part {
            Part::Text(pieces) => {
                let pieces = pieces.iter().map(|text| json!({"content": text}));
                frames.extend(pieces.map(|delta| data(&chunk(delta, Value::Null))));
            }
            Part::Thinking(pieces) => frames.extend(pieces.iter().map(|text| {
                let part =
                    json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
                data(&chunk(json!({"content": [part]}), Value::Null))
            })),
            Part::Call { .. } => {}
        }
    }
    let calls = turn.calls_only().enumerate().map(|(index, (id, name, arguments))| {
        json!({"id": id, "function": {"name": name, "arguments": arguments}, "index": index})
    });
    let calls: Vec<Value> = calls.collect();
    let delta = match calls.is_empty() {
        true => json!({"content": ""}),
        false => json!({"content": "", "tool_calls": calls}),
    };
    let mut last = chunk(delta, turn.reason().into());
    if turn.tokens.is_some() {
        last["usage"] = usage(turn);
    }
    frames.extend([data(&last), DONE.to_owned()]);
    frames
}

pub(super) fn whole(turn: &Turn) -> Value {
    let text = turn.text();
    let calls: Vec<Value> = turn
        .calls_only()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let content = Some(text).filter(|text| !text.is_empty() || calls.is_empty());
    let mut message =
        json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if !turn.thinking().is_empty() {
        message["reasoning_content"] = turn.thinking().into();
    }
    let choice =
        json!({"index": 0, "message": message, "logprobs": null, "finish_reason": turn.reason()});
    let mut whole = json!({"id": turn.id, "object": "chat.completion", "created": 1, "model": turn.model_name(), "choices": [choice]});
    if turn.tokens.is_some() {
        whole["usage"] = usage(turn);
    }
    whole["service_tier"] = "default".into();
    whole["system_fingerprint"] = Value::Null;
    whole
}

fn usage(turn: &Turn) -> Value {
    let tokens = turn.tokens.unwrap();
    json!({"prompt_tokens": tokens.input, "completion_tokens": tokens.output, "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}})
}
