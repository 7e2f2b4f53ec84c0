//! What a stream keeps of a body is counted, whatever it is kept for, and is free again when the
//! event that it is for was written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use event::Collect;
use toolpipe_api::Api::{self, Anthropic, Gemini, OpenaiChat, OpenaiResponses};
use toolpipe_api::{Stream, StreamOptions};

/// An API, the frames before the pieces, a piece with `…` for its text, the frames after which
/// nothing of the pieces is kept, and what each piece costs at the least beside its text.
type Case = (
    Api,
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
    usize,
);

const CASES: [Case; 6] = [
    (
        Anthropic,
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        ],
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"…"}}"#,
        &[r#"{"type":"content_block_stop","index":0}"#],
        0,
    ),
    (
        Anthropic,
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        ],
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"…"}}"#,
        &[r#"{"type":"content_block_stop","index":0}"#],
        0,
    ),
    (
        OpenaiChat,
        &[],
        r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"…"}]}}]}"#,
        &[r#"{"choices":[{"index":0,"delta":{"content":"x"}}]}"#],
        0,
    ),
    (
        OpenaiResponses,
        &[],
        r#"{"type":"response.function_call_arguments.delta","item_id":"i","delta":"…"}"#,
        &[
            r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"}}"#,
        ],
        0,
    ),
    (
        OpenaiResponses,
        &[],
        r#"{"type":"response.output_text.delta","item_id":"…","delta":"x"}"#,
        &[],
        64,
    ),
    (
        Gemini,
        &[
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}"#,
        ],
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":"…","willContinue":true}]}}]}}]}"#,
        &[r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#],
        0,
    ),
];

#[test]
fn what_is_kept_is_counted_until_it_is_written() {
    const PIECES: usize = 100;
    for (api, before, piece, after, beside) in CASES {
        let mut stream = Stream::new(api, StreamOptions::default());
        let mut out = Collect::default();
        let mut push = |frame: &str| {
            stream.push(format!("data: {frame}\n\n").as_bytes(), &mut out);
            stream.kept()
        };
        let empty = before
            .iter()
            .map(|frame| push(frame))
            .last()
            .unwrap_or_default();
        let text = |n: usize| format!("{n:->1000}");
        let full = (0..PIECES)
            .map(|n| push(&piece.replace('…', &text(n))))
            .last()
            .unwrap();
        assert!(
            full >= empty + PIECES * (1000 + beside),
            "{api:?} {piece}: {full}"
        );
        if let Some(left) = after.iter().map(|frame| push(frame)).last() {
            assert!(left < 1000, "{api:?} {piece}: {left} after its end");
        }
    }
}
