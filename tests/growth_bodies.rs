//! Law 4, linear, of the decoders: the search of `growth.rs` over bodies. Frames of the recorded
//! bodies, frames that differ by a number, and beginnings of lines and events are repeated.

use crate::pipeline::cost::{Cost, Count, judge, none_is_wrong, now};
use api::{Api, End, Stream, StreamOptions};
use std::collections::BTreeSet;
use testkit::bodies;

/// Runs a body through the decoder of `api`.
fn decode(api: Api, body: &[u8]) -> Cost {
    let mut out = Count::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    let start = now();
    for piece in body.chunks(64 * 1024) {
        stream.push(piece, &mut out);
    }
    stream.finish(End::Eof, &mut out);
    Cost {
        micros: now() - start,
        written: out.written,
    }
}

/// The frames that the recorded bodies of an API consist of, one of each form: numbers and the
/// inside of strings make no form.
fn frames(api: Api) -> Vec<String> {
    let mut forms = BTreeSet::new();
    let mut frames = Vec::new();
    for body in bodies()
        .into_iter()
        .filter(|body| Api::from_name(&body.api) == Some(api))
    {
        let text = std::fs::read_to_string(&body.path).unwrap_or_default();
        let end = if body.name.ends_with(".sse") {
            "\n\n"
        } else {
            "\n"
        };
        for frame in text.split_inclusive(end).filter(|frame| frame.len() < 2000) {
            let is_word = |part: &&str| {
                part.len() < 24 && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
            };
            if forms.insert(
                frame
                    .split('"')
                    .filter(is_word)
                    .collect::<Vec<_>>()
                    .join(" "),
            ) {
                frames.push(frame.to_owned());
            }
        }
    }
    frames
}

/// Frames that differ by a number.
const NUMBERED_FRAMES: &[(Api, &str)] = &[
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":#,"delta":{"content":"x","reasoning_content":"y","refusal":"z"}}]}"#,
    ),
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":#,"delta":{},"finish_reason":"stop"}]}"#,
    ),
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"a#","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    ),
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"a#","type":"custom","custom":{"name":"f","input":"x"}}]}}]}"#,
    ),
    (Api::OpenaiChat, r#"data: {"error":{"message":"m#"}}"#),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.output_item.added","output_index":#,"item":{"type":"function_call","id":"i#","call_id":"c#","name":"f","arguments":""}}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.output_item.done","output_index":#,"item":{"type":"function_call","id":"i#","call_id":"c#","name":"f","arguments":"{}"}}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.output_item.done","item":{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"}}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.function_call_arguments.delta","item_id":"i#","delta":"{"}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.function_call_arguments.delta","delta":"{"}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.refusal.delta","item_id":"i","content_index":#,"delta":"x"}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.created","response":{"id":"r#"}}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.completed","response":{"status":"completed","output":[]}}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_start","index":#,"content_block":{"type":"tool_use","id":"t#","name":"f","input":{}}}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_start","index":#,"content_block":{"type":"thinking","thinking":"x"}}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_delta","index":#,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_stop","index":#}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"message_start","message":{"id":"m#","content":[]}}"#,
    ),
    (Api::Anthropic, r#"data: {"type":"message_stop"}"#),
    (
        Api::Gemini,
        r#"data: {"candidates":[{"index":#,"content":{"parts":[{"text":"x"},{"functionCall":{"name":"f","args":{}}}]}}]}"#,
    ),
    (
        Api::Gemini,
        r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a#","stringValue":"x"}]}}]}}]}"#,
    ),
    (
        Api::Gemini,
        r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[#]","stringValue":"x","willContinue":true}],"willContinue":true}}]}}]}"#,
    ),
    (
        Api::Cohere,
        r#"data: {"type":"tool-call-start","index":#,"delta":{"message":{"tool_calls":{"id":"a#","type":"function","function":{"name":"f","arguments":""}}}}}"#,
    ),
    (
        Api::Cohere,
        r#"data: {"type":"content-start","index":#,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
    ),
    (
        Api::Mistral,
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"a#","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    ),
    (
        Api::Ollama,
        r#"{"message":{"content":"","tool_calls":[{"function":{"index":#,"name":"f","arguments":{"a":#}}}]}}"#,
    ),
];

/// Beginnings of lines and events of every framing.
const FRAMING: &[&str] = &[
    "data",
    "data:",
    "data: ",
    "data\n",
    "data:\n",
    "data: {}\n\n",
    "data: {\n",
    "data: [\n",
    "event: x\n",
    "event: error\n\n",
    ":\n",
    ": x\n\n",
    "\n",
    "\r",
    "\r\n",
    "id: 1\n",
    "retry: 1\n\n",
    "\u{feff}",
    "\0",
    " ",
    "\t",
    "{",
    "}",
    "{}",
    "{}\n",
    "[",
    "]",
    "[{}",
    ",{}",
    "\"",
    "\\",
    "<",
    "<html>",
    "data: [DONE]\n\n",
    "data: null\n\n",
    "null\n",
    "0",
    "data: \"",
    "x",
    "é",
];

#[test]
fn bodies_of_every_api() {
    let mut wrong = Vec::new();
    for api in Api::ALL {
        let recorded = frames(api);
        let pieces = recorded
            .iter()
            .map(String::as_str)
            .chain(FRAMING.iter().copied());
        for first in ["", "data: {\"a\":\""] {
            for piece in pieces
                .clone()
                .filter(|piece| first.is_empty() || piece.len() < 20)
            {
                judge(
                    || format!("{}, {first:?} and {piece:?}", api.name()),
                    &mut wrong,
                    |n| decode(api, (first.to_owned() + &piece.repeat(n)).as_bytes()),
                );
            }
        }
        let numbered: Vec<&str> = NUMBERED_FRAMES
            .iter()
            .filter(|(of, _)| *of == api)
            .map(|(_, frame)| *frame)
            .collect();
        for one in &numbered {
            for other in &numbered {
                judge(
                    || format!("{}, {one} and {other}", api.name()),
                    &mut wrong,
                    |n| {
                        let frames = [one, other]
                            .into_iter()
                            .flat_map(|frame| (0..n).map(move |i| (frame, i)));
                        let body: String = frames
                            .map(|(frame, i)| frame.replace('#', &i.to_string()) + "\n\n")
                            .collect();
                        decode(api, body.as_bytes())
                    },
                );
            }
        }
    }
    none_is_wrong(&wrong);
}
