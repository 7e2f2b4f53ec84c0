//! Decodes Anthropic's Messages API: content blocks that open, grow and close.
//!
//! Source of the format: Anthropic's "Streaming messages"
//! (platform.claude.com/docs/en/build-with-claude/streaming) and "Fine-grained tool streaming"
//! (platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming). Other
//! servers differ: llama.cpp omits `input`, Bedrock omits the start of text blocks, and gateways
//! end with `[DONE]` or start a second message after a fallback. docs/deviations.md lists each
//! deviation with its source. Bedrock's own event names are in `anthropic/converse.rs`.

use crate::anthropic::converse;
use crate::anthropic::message::{AnthropicMessage, COUNTS};
use crate::template::{DeltaKind, FrameDelta};
use crate::turn::{Decoder, EventWriter};
use event::Raw;

/// Decodes Anthropic's streams.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    message: AnthropicMessage,
}

impl Decoder for Anthropic {
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        let [kind, index, delta] = data.fields(["type", "index", "delta"]);
        let Some(kind) = kind.and_then(Raw::str) else {
            return converse::frame(&mut self.message, name, data, turn);
        };
        let index = index.and_then(Raw::i64).unwrap_or(self.message.latest);
        match kind.as_ref() {
            "content_block_delta" => {
                if let Some(delta) = delta {
                    self.message.delta(index, delta, turn);
                }
            }
            "content_block_start" => {
                if let Some(block) = data.get("content_block") {
                    self.message.open(index, block, turn);
                }
            }
            "content_block_stop" => self.message.close(index, turn),
            "message_start" => {
                if let Some(message) = data.get("message") {
                    self.message.begin(message, turn);
                }
            }
            "message_delta" => {
                self.message.settle(turn);
                let delta = delta.unwrap_or(data);
                explanation(delta, turn);
                turn.details(0, "choice", delta, &["stop_reason"]);
                turn.details(0, "answer", data, &["type", "delta", "usage"]);
                self.message.stop_reason(delta.get("stop_reason"), turn);
                self.message.usage(data.get("usage"), COUNTS, turn);
            }
            "message_stop" => {
                self.message.close_all(true, turn);
                turn.marked = true;
            }
            "message" => self.whole(data, turn),
            _ => {}
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn delta(&mut self, delta: FrameDelta, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        match delta.kind {
            DeltaKind::Text { .. } => self.message.text(piece, turn),
            DeltaKind::Arguments(Some(index)) => self.message.input(index, piece, turn),
            _ => turn.delta(delta, piece),
        }
    }

    fn is_whole(&self, body: Raw<'_>) -> bool {
        body.get_str("type").is_some_and(|t| t == "message") || converse::is_whole(body)
    }

    fn whole(&mut self, body: Raw<'_>, turn: &mut EventWriter<'_>) {
        if converse::is_whole(body) {
            return converse::whole(&mut self.message, body, turn);
        }
        self.message.begin(body, turn);
        let blocks = || body.list("content");
        turn.with_call =
            blocks().any(|block| block.get_str("type").is_some_and(|kind| kind == "tool_use"));
        for (index, block) in (0..).zip(blocks()) {
            self.message.open(index, block, turn);
            self.message.close(index, turn);
        }
        self.message.settle(turn);
        explanation(body, turn);
        turn.member(
            0,
            "choice",
            "stop_sequence",
            body.get("stop_sequence").map_or("null", Raw::text),
        );
        self.message.stop_reason(body.get("stop_reason"), turn);
        turn.marked = true;
    }

    fn finish(&mut self, turn: &mut EventWriter<'_>) {
        self.message.close_all(self.message.stopped, turn);
    }
}

/// Writes the provider's explanation if its classifiers refused the request
/// (platform.claude.com/docs/en/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals).
fn explanation(ended: Raw<'_>, turn: &mut EventWriter<'_>) {
    let details = ended
        .get("stop_details")
        .filter(|d| d.get_str("type").is_none_or(|t| t == "refusal"));
    if let Some(text) = details.and_then(|d| d.get("explanation")) {
        turn.refusal(0, text);
    }
}

#[cfg(test)]
mod tests {
    use crate::Api::Anthropic;
    use crate::support::{brief, brief_whole};

    const START: &str = r#"{"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}}"#;
    const CALL: &str = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#;
    const STOP: &str = r#"{"type":"content_block_stop","index":1}"#;
    const END: [&str; 2] = [
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#,
        r#"{"type":"message_stop"}"#,
    ];

    fn piece(text: &str) -> String {
        format!(
            r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":{text:?}}}}}"#
        )
    }

    fn run(frames: &[&str]) -> Vec<String> {
        brief(Anthropic, &[&[START], frames, &END].concat())
    }

    #[test]
    fn a_call_without_arguments_is_sealed_by_what_follows_its_block() {
        assert_eq!(
            run(&[CALL, STOP]),
            [
                "#1 id:t f",
                "#1 done",
                "tokens 5+7",
                "end tool_calls tool_use"
            ]
        );
        assert_eq!(
            run(&[CALL, &piece(""), STOP])[..2],
            ["#1 id:t f", "#1 done"]
        );
    }

    #[test]
    fn pieces_after_the_stop_still_belong_to_the_block() {
        let out = run(&[
            CALL,
            &piece("{\"a\":"),
            STOP,
            &piece("1}"),
            r#"{"type":"ping"}"#,
        ]);
        assert_eq!(out[..4], ["#1 id:t f", "#1 {\"a\":", "#1 1}", "#1 done"]);
    }

    #[test]
    fn input_in_the_start_counts_when_no_piece_follows() {
        let start = CALL.replace(r#""input":{}"#, r#""input":{ "a" : 1 }"#);
        assert_eq!(run(&[&start, STOP])[1], "#1 {\"a\":1} done");
        assert_eq!(
            run(&[&start, &piece("{\"a\":2}"), STOP])[1..3],
            ["#1 {\"a\":2}", "#1 done"]
        );
    }

    #[test]
    fn a_second_message_voids_the_calls_of_the_first() {
        let out = run(&[CALL, &piece("{\"a\":1}"), STOP, START, CALL, STOP]);
        assert_eq!(
            out[2..6],
            [
                "#1 done",
                "retract #1 message_restarted",
                "warning message_restarted",
                "#1 id:t f"
            ]
        );
    }

    #[test]
    fn a_signature_beside_the_text_counts_once() {
        let delta = |more: &str| {
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta",{more}}}}}"#
            )
        };
        let out = run(&[
            &delta(r#""thinking":"h","signature":"""#),
            &delta(r#""thinking":"m","signature":"s1""#),
            &delta(r#""thinking":"","signature":"s1""#),
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ]);
        assert_eq!(
            out[..3],
            ["~\"h\"", "~\"m\"", r#"~""{"anthropic":{"signature":"s1"}}"#]
        );
    }

    #[test]
    fn signatures_close_their_blocks_and_the_servers_own_calls_are_items() {
        let out = run(&[
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s\"1"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
            &piece("{\"q\":"),
            &piece("1}"),
            STOP,
        ]);
        assert_eq!(
            out[..2],
            ["~\"hm\"", r#"~""{"anthropic":{"signature":"s\"1"}}"#]
        );
        assert_eq!(
            out[2],
            r#"server server_tool_use {"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}"#
        );
        assert!(
            out[3].starts_with(r#"~""{"anthropic":{"block":{"type":"server_tool_use""#),
            "{out:?}"
        );
    }

    #[test]
    fn a_cut_stream_seals_nothing() {
        let out = brief(Anthropic, &[START, CALL, &piece("{\"a\":1")]);
        assert_eq!(
            out,
            [
                "#1 id:t f",
                "#1 {\"a\":1",
                "error disconnected",
                "tokens 5+1",
                "end cut "
            ]
        );
    }

    #[test]
    fn a_whole_response_gives_the_same_events() {
        let out = brief_whole(
            Anthropic,
            r#"{"type":"message","id":"m","content":[{"type":"redacted_thinking","data":"d"},{"type":"text","text":"x"},
            {"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"refusal","usage":{"input_tokens":1,"output_tokens":1}}"#,
        );
        assert_eq!(
            out,
            [
                r#"~""{"anthropic":{"redacted":"d"}}"#,
                "\"x\"",
                "#2 id:t f",
                "#2 done",
                "tokens 1+1",
                "end content_filter refusal"
            ]
        );
    }

    #[test]
    fn converse_whole_and_its_exceptions() {
        let body = r#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},
            {"text":"x"},{"toolUse":{"toolUseId":"t","name":"f","input":{"a":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":2}}"#;
        let want = [
            "~\"hm\"",
            r#"~""{"anthropic":{"signature":"s"}}"#,
            "\"x\"",
            "#2 id:t f",
            "#2 {\"a\":1} done",
        ];
        assert_eq!(brief_whole(Anthropic, body)[..5], want);
        let out = brief(
            Anthropic,
            &[
                r#"{"messageStart":{"role":"assistant"}}"#,
                r#"{"throttlingException":{"message":"slow"}}"#,
            ],
        );
        assert_eq!(out, ["error throttlingException", "end error "]);
    }
}
