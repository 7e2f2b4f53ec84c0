//! `generateContent`. Source: <https://ai.google.dev/api/generate-content>

use super::{Part, Turn, data, value};
use serde_json::{Value, json};

pub(super) fn frames(turn: &Turn) -> Vec<String> {
    let mut parts = vec![];
    for part in &turn.parts {
        match part {
            Part::Text(pieces) => parts.extend(pieces.iter().map(|text| json!({"text": text}))),
            Part::Thinking(pieces) => {
                let pieces = pieces.iter();
                parts.extend(pieces.map(|text| json!({"text": text, "thought": true})));
            }
            Part::Call {
                id,
                name,
                arguments,
            } => parts.push(call(id, name, arguments)),
        }
    }
    // The finish reason is sent with the last part.
    let last = parts.pop().unwrap_or_else(|| json!({"text": ""}));
    let frames = parts.into_iter().map(|part| chunk(turn, vec![part], false));
    let frames = frames.chain([chunk(turn, vec![last], true)]);
    frames.map(|chunk| data(&chunk)).collect()
}

pub(super) fn whole(turn: &Turn) -> Value {
    let parts = turn.parts.iter().map(|part| match part {
        Part::Text(pieces) => json!({"text": pieces.concat()}),
        Part::Thinking(pieces) => json!({"text": pieces.concat(), "thought": true}),
        Part::Call {
            id,
            name,
            arguments,
        } => call(id, name, arguments),
    });
    chunk(turn, parts.collect(), true)
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"functionCall": {"id": id, "name": name, "args": value(arguments)}, "thoughtSignature": "CsMBAdHtim8="})
}

fn chunk(turn: &Turn, parts: Vec<Value>, is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}});
    if is_last {
        candidate["finishReason"] = turn
            .reason_as(["STOP", "STOP", "MAX_TOKENS", "SAFETY"])
            .into();
    }
    candidate["index"] = 0.into();
    let mut chunk = json!({"candidates": [candidate]});
    if let Some(tokens) = turn.tokens {
        chunk["usageMetadata"] = json!({"promptTokenCount": tokens.input, "candidatesTokenCount": tokens.output,
            "totalTokenCount": tokens.input + tokens.output, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.input}]});
        if tokens.cached > 0 {
            chunk["usageMetadata"]["cachedContentTokenCount"] = tokens.cached.into();
        }
    }
    chunk["modelVersion"] = turn.model_name().into();
    chunk["responseId"] = turn.id.as_str().into();
    chunk
}
