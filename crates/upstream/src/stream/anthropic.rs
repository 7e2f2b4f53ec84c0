//! Anthropic's Messages API: content blocks that open, grow and close.
//!
//! Source of the format: Anthropic's "Streaming messages" and "Fine-grained tool streaming". Others speak it with differences: llama.cpp
//! leaves out `input`, Bedrock leaves out the start of text blocks, gateways end with `[DONE]` or begin a second message after a
//! fallback. Bedrock's own event names are in `anthropic_converse`.

use crate::decoder::Decoder;
use crate::stream::anthropic_block::{Block, Tool};
use crate::stream::anthropic_converse;
use crate::turn::{Turn, Usage};
use event::payload::{FinishReason, ToolCallDelta};
use event::{Raw, Sink, Text};
use std::collections::BTreeMap;

/// The rules of Anthropic's stream.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    blocks: BTreeMap<i64, Block>,
    /// The block that was opened last, for a frame without `index`.
    latest: i64,
    /// The tool block that has ended without whole arguments; its `done` waits until nothing of it can follow.
    waiting: Option<i64>,
    begun: bool,
    stopped: bool,
}

impl Decoder for Anthropic {
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        let [kind, index, delta] = data.fields(["type", "index", "delta"]);
        let Some(kind) = kind.and_then(Raw::str) else {
            return anthropic_converse::frame(self, name, data, turn, out);
        };
        let index = index.and_then(Raw::i64).unwrap_or(self.latest);
        match kind.as_ref() {
            "content_block_delta" => {
                if let Some(delta) = delta {
                    self.delta(index, delta, turn, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = data.get("content_block") {
                    self.open(index, block, turn, out);
                }
            }
            "content_block_stop" => self.close(index, turn, out),
            "message_start" => {
                if let Some(message) = data.get("message") {
                    self.message(message, turn, out);
                }
            }
            "message_delta" => {
                self.settle(turn, out);
                let delta = delta.unwrap_or(data);
                explanation(delta, turn, out);
                self.stop_reason(delta.get("stop_reason"), turn);
                usage(data.get("usage"), turn);
            }
            "message_stop" => {
                self.close_all(true, turn, out);
                turn.end_mark();
            }
            "message" => self.whole(data, turn, out),
            _ => {}
        }
    }

    fn is_whole(&self, body: Raw<'_>) -> bool {
        body.get_str("type").is_some_and(|t| t == "message") || anthropic_converse::is_whole(body)
    }

    fn whole(&mut self, body: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        if anthropic_converse::is_whole(body) {
            return anthropic_converse::whole(self, body, turn, out);
        }
        self.message(body, turn, out);
        for (index, block) in (0..).zip(body.get("content").into_iter().flat_map(Raw::items)) {
            self.open(index, block, turn, out);
            self.close(index, turn, out);
        }
        self.settle(turn, out);
        explanation(body, turn, out);
        self.stop_reason(body.get("stop_reason"), turn);
        turn.end_mark();
    }

    fn finish(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        self.close_all(self.stopped, turn, out);
    }
}

impl Anthropic {
    /// A message begins. One that had begun and not ended is void: the server has started anew.
    pub(super) fn message(&mut self, message: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        if std::mem::replace(&mut self.begun, true) && !self.stopped {
            for (index, block) in &self.blocks {
                if matches!(block, Block::Tool(_)) {
                    turn.retract(0, Some(*index), None, "message_restarted", out);
                }
            }
            let message = "the provider began its message again: the calls of the first are dropped, its text stays";
            turn.warning(0, "message_restarted", message, None, out);
        } else {
            self.close_all(true, turn, out);
        }
        self.blocks.clear();
        self.waiting = None;
        self.stopped = false;
        turn.choice(0);
        turn.id(message.get("id"));
        turn.model(message.get("model"));
        usage(message.get("usage"), turn);
    }

    /// A block begins, with what it holds already.
    pub(super) fn open(&mut self, index: i64, start: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        self.settle(turn, out);
        self.latest = index;
        let block = match start.get_str("type").as_deref() {
            Some("text") => {
                if let Some(text) = start.get("text") {
                    turn.text(0, text, out);
                }
                Block::Text
            }
            Some("thinking") => {
                if let Some(text) = start.get("thinking") {
                    turn.thinking(0, text, out);
                }
                Block::Thinking { signature: start.get_str("signature").unwrap_or_default().into_owned() }
            }
            Some("redacted_thinking") => {
                let data = start.get_str("data").unwrap_or_default();
                turn.thinking_plain(
                    0,
                    "",
                    Some(&format!(r#"{{"anthropic":{{"redacted":{}}}}}"#, event::quoted(&data))),
                    out,
                );
                Block::Ended
            }
            Some("tool_use") => {
                let delta = ToolCallDelta {
                    index: Some(index),
                    tool_id: start.get("id").and_then(Text::of),
                    tool_name: start.get("name").and_then(Text::of),
                    ..ToolCallDelta::default()
                };
                turn.call(0, &delta, None, out);
                Block::Tool(Tool::new(start.get("input")))
            }
            Some(_) => Block::server(start),
            None => return,
        };
        self.blocks.insert(index, block);
    }

    /// A piece of a block. A block that never began is what its first piece says.
    pub(super) fn delta(&mut self, index: i64, delta: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        let [kind, text, json] = delta.fields(["type", "text", "partial_json"]);
        let kind = kind.and_then(Raw::str).unwrap_or_default();
        if let Some(Block::Server(item)) = self.blocks.get_mut(&index) {
            return item.push(&kind, delta);
        }
        match kind.as_ref() {
            "text_delta" => {
                if let Some(text) = text {
                    turn.text(0, text, out);
                }
            }
            "input_json_delta" => {
                if let Some(piece) = json {
                    self.input(index, piece, turn, out);
                }
            }
            "thinking_delta" => {
                self.blocks.entry(index).or_insert_with(|| Block::Thinking { signature: String::new() });
                if let Some(text) = delta.get("thinking") {
                    turn.thinking(0, text, out);
                }
            }
            "signature_delta" => {
                let block = self.blocks.entry(index).or_insert_with(|| Block::Thinking { signature: String::new() });
                if let (Block::Thinking { signature }, Some(piece)) = (block, delta.get("signature")) {
                    piece.append_str(signature);
                }
            }
            _ => {}
        }
    }

    /// A piece of a call's input.
    pub(super) fn input(&mut self, index: i64, piece: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        if let Block::Tool(tool) = self.blocks.entry(index).or_insert_with(|| Block::Tool(Tool::new(None))) {
            tool.push(piece);
            turn.call(0, &ToolCallDelta { index: Some(index), ..ToolCallDelta::default() }, Some(piece), out);
        }
    }

    /// A block ends.
    pub(super) fn close(&mut self, index: i64, turn: &mut Turn, out: &mut dyn Sink) {
        self.settle(turn, out);
        match self.blocks.get_mut(&index) {
            Some(Block::Thinking { signature }) => {
                let provider = format!(r#"{{"anthropic":{{"signature":{}}}}}"#, event::quoted(signature));
                turn.thinking_plain(0, "", Some(&provider), out);
                self.blocks.insert(index, Block::Ended);
            }
            Some(Block::Tool(tool)) if !tool.done => {
                if tool.is_balanced() {
                    self.done(index, turn, out);
                } else {
                    self.waiting = Some(index);
                }
            }
            Some(Block::Server(item)) => {
                let item = std::mem::take(item);
                let json = item.json();
                if let Ok(data) = Raw::parse(&json) {
                    turn.server_item(0, item.kind(), data, out);
                    if item.goes_back() {
                        turn.thinking_plain(0, "", Some(&format!(r#"{{"anthropic":{{"block":{json}}}}}"#)), out);
                    }
                }
                self.blocks.insert(index, Block::Ended);
            }
            _ => {}
        }
    }

    /// Says that a tool's block is closed, if that still waits: nothing of it can follow any more.
    pub(super) fn settle(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        if let Some(index) = self.waiting.take() {
            self.done(index, turn, out);
        }
    }

    fn done(&mut self, index: i64, turn: &mut Turn, out: &mut dyn Sink) {
        let Some(Block::Tool(tool)) = self.blocks.get_mut(&index) else { return };
        tool.done = true;
        let input = tool.input();
        let delta = ToolCallDelta {
            index: Some(index),
            arguments: input.as_ref().map(Into::into),
            done: true,
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None, out);
    }

    /// Closes what is open at the end. Calls only if the message ended well: a cut one must not look whole.
    pub(super) fn close_all(&mut self, whole: bool, turn: &mut Turn, out: &mut dyn Sink) {
        self.settle(turn, out);
        let open: Vec<i64> = self
            .blocks
            .iter()
            .filter(|(_, block)| match block {
                Block::Tool(tool) => whole && !tool.done,
                Block::Thinking { signature } => whole || !signature.is_empty(),
                Block::Server(_) => whole,
                Block::Text | Block::Ended => false,
            })
            .map(|(index, _)| *index)
            .collect();
        for index in open {
            self.close(index, turn, out);
        }
        self.settle(turn, out);
    }

    /// Why the message ended; `null` while it goes on.
    pub(super) fn stop_reason(&mut self, reason: Option<Raw<'_>>, turn: &mut Turn) {
        let Some(word) = reason.and_then(Raw::str).filter(|w| !w.is_empty()) else { return };
        self.stopped = true;
        let reason = match word.as_ref() {
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" | "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
            // `end_turn`, `stop_sequence`, `pause_turn`, and what is not known yet.
            _ => FinishReason::Stop,
        };
        turn.finish_reason(0, reason, &word);
    }
}

/// What the provider says to the user where its classifiers refused the request
/// (platform.claude.com/docs/en/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals).
fn explanation(ended: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
    let details = ended.get("stop_details").filter(|d| d.get_str("type").is_none_or(|t| t == "refusal"));
    if let Some(text) = details.and_then(|d| d.get("explanation")) {
        turn.refusal(0, text, out);
    }
}

/// Counts of a `usage` object. Input from the cache, or written to it, is not part of `input_tokens`.
fn usage(usage: Option<Raw<'_>>, turn: &mut Turn) {
    let Some(usage) = usage else { return };
    let count = |key: &str| Usage::count(usage, &[key]);
    let cached = count("cache_read_input_tokens");
    turn.usage(&Usage {
        prompt: count("input_tokens")
            .map(|n| n + cached.unwrap_or_default() + count("cache_creation_input_tokens").unwrap_or_default()),
        completion: count("output_tokens"),
        cached: cached.filter(|n| *n > 0),
        ..Usage::default()
    });
}

#[cfg(test)]
mod tests {
    use crate::Api::Anthropic;
    use crate::stream::brief::{brief, brief_whole};

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
        assert_eq!(run(&[CALL, STOP]), ["#1 id:t f", "#1 done", "tokens 5+7", "end tool_calls tool_use"]);
        assert_eq!(run(&[CALL, &piece(""), STOP])[..2], ["#1 id:t f", "#1 done"]);
    }

    #[test]
    fn pieces_after_the_stop_still_belong_to_the_block() {
        let out = run(&[CALL, &piece("{\"a\":"), STOP, &piece("1}"), r#"{"type":"ping"}"#]);
        assert_eq!(out[..4], ["#1 id:t f", "#1 {\"a\":", "#1 1}", "#1 done"]);
    }

    #[test]
    fn input_in_the_start_counts_when_no_piece_follows() {
        let start = CALL.replace(r#""input":{}"#, r#""input":{ "a" : 1 }"#);
        assert_eq!(run(&[&start, STOP])[1], "#1 {\"a\":1} done");
        assert_eq!(run(&[&start, &piece("{\"a\":2}"), STOP])[1..3], ["#1 {\"a\":2}", "#1 done"]);
    }

    #[test]
    fn a_second_message_voids_the_calls_of_the_first() {
        let out = run(&[CALL, &piece("{\"a\":1}"), STOP, START, CALL, STOP]);
        assert_eq!(out[2..6], ["#1 done", "retract #1 message_restarted", "warning message_restarted", "#1 id:t f"]);
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
        assert_eq!(out[..2], ["~\"hm\"", r#"~""{"anthropic":{"signature":"s\"1"}}"#]);
        assert_eq!(
            out[2],
            r#"server server_tool_use {"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}"#
        );
        assert!(out[3].starts_with(r#"~""{"anthropic":{"block":{"type":"server_tool_use""#), "{out:?}");
    }

    #[test]
    fn a_cut_stream_seals_nothing() {
        let out = brief(Anthropic, &[START, CALL, &piece("{\"a\":1")]);
        assert_eq!(out, ["#1 id:t f", "#1 {\"a\":1", "error disconnected", "tokens 5+1", "end cut "]);
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
        let want = ["~\"hm\"", r#"~""{"anthropic":{"signature":"s"}}"#, "\"x\"", "#2 id:t f", "#2 {\"a\":1} done"];
        assert_eq!(brief_whole(Anthropic, body)[..5], want);
        let out = brief(
            Anthropic,
            &[r#"{"messageStart":{"role":"assistant"}}"#, r#"{"throttlingException":{"message":"slow"}}"#],
        );
        assert_eq!(out, ["error throttlingException", "end error "]);
    }
}
