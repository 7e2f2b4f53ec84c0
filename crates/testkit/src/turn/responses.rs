//! Responses. Source: <https://platform.openai.com/docs/api-reference/responses-streaming>

use super::{Part, Turn, event, halves};
use serde_json::{Value, json};

pub(super) fn frames(turn: &Turn) -> Vec<String> {
    let mut events = vec![];
    for kind in ["response.created", "response.in_progress"] {
        events.push(json!({"type": kind, "response": response(turn, "in_progress", vec![])}));
    }
    for (at, part) in turn.parts.iter().enumerate() {
        let whole = item(turn, at, part);
        let mut begun = whole.clone();
        for (member, empty) in [
            ("content", json!([])),
            ("summary", json!([])),
            ("arguments", "".into()),
            ("status", "in_progress".into()),
        ] {
            if let Some(member) = begun.get_mut(member) {
                *member = empty;
            }
        }
        events
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
        let id = &whole["id"];
        let of = |kind: &str, members: Value| {
            let mut event =
                json!({"type": format!("response.{kind}"), "item_id": id, "output_index": at});
            for (name, value) in members.as_object().unwrap() {
                event[name] = value.clone();
            }
            event
        };
        match part {
            Part::Text(pieces) => {
                let part = |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
                let text = pieces.concat();
                events.push(of(
                    "content_part.added",
                    json!({"content_index": 0, "part": part("")}),
                ));
                events.extend(pieces.iter().map(|text| {
                    of("output_text.delta", json!({"content_index": 0, "delta": text, "logprobs": [], "obfuscation": "Ok3"}))
                }));
                events.push(of(
                    "output_text.done",
                    json!({"content_index": 0, "text": text, "logprobs": []}),
                ));
                events.push(of(
                    "content_part.done",
                    json!({"content_index": 0, "part": part(&text)}),
                ));
            }
            Part::Thinking(pieces) => {
                let part = |text: &str| json!({"type": "summary_text", "text": text});
                let text = pieces.concat();
                events.push(of(
                    "reasoning_summary_part.added",
                    json!({"summary_index": 0, "part": part("")}),
                ));
                events.extend(pieces.iter().map(|text| {
                    of(
                        "reasoning_summary_text.delta",
                        json!({"summary_index": 0, "delta": text, "obfuscation": "Ok3"}),
                    )
                }));
                events.push(of(
                    "reasoning_summary_text.done",
                    json!({"summary_index": 0, "text": text}),
                ));
                events.push(of(
                    "reasoning_summary_part.done",
                    json!({"summary_index": 0, "part": part(&text)}),
                ));
            }
            Part::Call { arguments, .. } => {
                events.extend(halves(arguments).map(|piece| {
                    of(
                        "function_call_arguments.delta",
                        json!({"delta": piece, "obfuscation": "Ok3"}),
                    )
                }));
                events.push(of(
                    "function_call_arguments.done",
                    json!({"arguments": arguments}),
                ));
            }
        }
        events
            .push(json!({"type": "response.output_item.done", "output_index": at, "item": whole}));
    }
    let whole = whole(turn);
    let kind = format!("response.{}", whole["status"].as_str().unwrap());
    events.push(json!({"type": kind, "response": whole}));
    let numbered = events.into_iter().enumerate().map(|(number, mut value)| {
        value["sequence_number"] = number.into();
        event(&value)
    });
    numbered.collect()
}

pub(super) fn whole(turn: &Turn) -> Value {
    let items = turn.parts.iter().enumerate();
    let items = items.map(|(at, part)| item(turn, at, part)).collect();
    let (status, why) = match turn.reason() {
        "length" => ("incomplete", Some("max_output_tokens")),
        "content_filter" => ("incomplete", Some("content_filter")),
        _ => ("completed", None),
    };
    let mut whole = response(turn, status, items);
    whole["incomplete_details"] = why.map_or(Value::Null, |why| json!({"reason": why}));
    if let Some(tokens) = turn.tokens {
        whole["usage"] = json!({"input_tokens": tokens.input, "input_tokens_details": {"cached_tokens": tokens.cached},
            "output_tokens": tokens.output, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens.input + tokens.output});
    }
    whole
}

/// Returns an output item. Its id is the kind, the response's id and the position in the output.
fn item(turn: &Turn, at: usize, part: &Part) -> Value {
    let id = |kind: &str| format!("{kind}_{}{at}", turn.id);
    match part {
        Part::Text(pieces) => json!({"id": id("msg"), "type": "message", "status": "completed",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": pieces.concat()}], "role": "assistant"}),
        Part::Thinking(pieces) => {
            json!({"id": id("rs"), "type": "reasoning", "encrypted_content": format!("gAAAAA{}{at}", turn.id),
            "summary": [{"type": "summary_text", "text": pieces.concat()}]})
        }
        Part::Call {
            id: call_id,
            name,
            arguments,
        } => json!({"id": id("fc"), "type": "function_call", "status": "completed",
            "arguments": arguments, "call_id": call_id, "name": name}),
    }
}

fn response(turn: &Turn, status: &str, output: Vec<Value>) -> Value {
    json!({"id": format!("resp_{}", turn.id), "object": "response", "created_at": 1, "status": status, "background": false, "error": null,
        "incomplete_details": null, "instructions": null, "max_output_tokens": null, "max_tool_calls": null, "model": turn.model_name(),
        "output": output, "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": "medium", "summary": "auto"}, "safety_identifier": null, "service_tier": "auto", "store": true,
        "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto", "tools": [],
        "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": null, "user": null, "metadata": {}})
}
