//! Decodes OpenAI's Responses API: output items that are added, grow and are done.
//!
//! Source of the format: OpenAI's "Streaming events"
//! (platform.openai.com/docs/api-reference/responses-streaming). Other servers differ: llama.cpp
//! omits `output_index` and `arguments.done`, gateways change item ids between events or send an
//! empty `output` at the end, and xAI reports its own searches as `custom_tool_call`.
//! docs/deviations.md, "OpenAI Responses, several choices, Cohere", lists each deviation with its
//! source.

use crate::failure::StreamFailure;
use crate::openai_responses::items::{ItemKind, OutputItems};
use crate::template::{DeltaKind, FrameDelta, Varying};
use crate::turn::{Decoder, EventWriter};
use event::Raw;
use event::payload::{FinishReason, SessionStats};

/// The members of a response that are parsed, or that `tc-serve` sets itself in its responses.
const READ: [&str; 14] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "background",
    "model",
    "output",
    "output_text",
    "usage",
    "error",
    "incomplete_details",
    "tools",
    "tool_choice",
];

/// Decodes this API's streams.
#[derive(Debug, Default)]
pub(crate) struct OpenaiResponses {
    items: OutputItems,
    /// The item of the last delta that a frame may repeat.
    repeated: usize,
}

impl Decoder for OpenaiResponses {
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        let kind = data.get_str("type");
        let Some(event) = kind
            .as_deref()
            .or(name)
            .and_then(|k| k.strip_prefix("response."))
        else {
            return if self.is_whole(data) {
                self.whole(data, turn)
            };
        };
        let before = self.items.kept();
        match event {
            "output_text.delta" => {
                let at = self.items.locate(data, ItemKind::Message);
                self.items[at].spoken = true;
                if let Some(text) = data.get("delta") {
                    self.items[at].announce(turn);
                    self.text(at, text, turn);
                }
                if let Some(list) = data
                    .get("logprobs")
                    .filter(|list| list.items().next().is_some())
                {
                    self.items[at].has_logprobs = true;
                    turn.member(0, "text", "logprobs", list.text());
                }
            }
            // For speech, the transcript becomes the text and the audio becomes an item.
            "audio.delta" => turn.server_item(0, "audio", data),
            "audio.transcript.delta" => {
                if let Some(words) = data.get("delta") {
                    turn.effect.unique(); // not the text of an item
                    turn.text(0, words);
                }
            }
            "output_text.annotation.added" => {
                let at = self.items.locate(data, ItemKind::Message);
                if let Some(annotation) = data.get("annotation") {
                    self.items[at].has_annotations = true;
                    turn.member(
                        0,
                        "text",
                        "annotations",
                        &format!("[{}]", annotation.text()),
                    );
                }
            }
            "function_call_arguments.delta" => {
                let at = self.items.locate(data, ItemKind::Function);
                if let (true, Some(piece)) = (self.items[at].is_call(), data.get("delta")) {
                    self.repeated = at;
                    self.items[at].piece(piece, turn);
                }
            }
            "custom_tool_call_input.delta" => {
                let at = self.items.locate(data, ItemKind::Custom);
                if let (true, Some(piece)) = (self.items[at].is_call(), data.get("delta")) {
                    self.repeated = at;
                    self.items[at].piece(piece, turn);
                }
            }
            "function_call_arguments.done" | "custom_tool_call_input.done" => {
                let custom = event.starts_with("custom");
                let at = self.items.locate(
                    data,
                    if custom {
                        ItemKind::Custom
                    } else {
                        ItemKind::Function
                    },
                );
                let all = data.get(if custom { "input" } else { "arguments" });
                // xAI and others repeat the name here. A call that was never added has no other
                // source of it.
                self.items[at].identify(None, data.get("name"), turn);
                self.items.end_arguments(at, all, turn);
            }
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                let at = self.items.locate(data, ItemKind::Reasoning);
                self.items[at].spoken = true;
                if let Some(text) = data.get("delta") {
                    self.items[at].announce(turn);
                    self.thinking(at, text, turn);
                }
            }
            "reasoning_summary_part.added"
                if data
                    .get("summary_index")
                    .and_then(Raw::i64)
                    .is_some_and(|n| n > 0) =>
            {
                turn.thinking_plain(0, "\n\n", None);
            }
            "refusal.delta" | "refusal.done" => {
                let at = self.items.locate(data, ItemKind::Message);
                let part = data.get("content_index").and_then(Raw::i64).unwrap_or(0);
                turn.effect.unique(); // the text of this part is kept
                match data.get("delta") {
                    Some(piece) => {
                        self.items.hear(at, piece);
                        self.items[at].refusal_piece(part, piece, turn);
                    }
                    None => self.items[at].refusal(part, data.get("refusal"), turn),
                }
            }
            "output_item.added" => {
                if let Some(item) = data.get("item") {
                    self.items.added(data, item, turn);
                }
            }
            "output_item.done" => {
                if let Some(item) = data.get("item") {
                    let output = data.get("output_index").and_then(Raw::i64);
                    self.items.item(output, item, turn);
                }
            }
            "created" | "in_progress" | "queued" => {
                self.created(event, data.get("response").unwrap_or(data), turn)
            }
            "completed" | "incomplete" | "failed" | "cancelled" | "done" => {
                self.completed(data.get("response").unwrap_or(data), event, turn);
            }
            _ => {}
        }
        turn.keep(self.items.kept() - before);
    }

    fn repeats(&self) -> bool {
        true
    }

    fn varying(&self) -> Varying {
        Varying {
            unread: &["obfuscation", "sequence_number"],
            ..Varying::default()
        }
    }

    fn delta(&mut self, delta: FrameDelta, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        match delta.kind {
            DeltaKind::Text { with_call } => {
                turn.with_call = with_call;
                self.text(self.repeated, piece, turn);
            }
            DeltaKind::Thinking => self.thinking(self.repeated, piece, turn),
            DeltaKind::Arguments(_) => self.items[self.repeated].piece(piece, turn),
            DeltaKind::Refusal => turn.delta(delta, piece),
        }
    }

    fn is_whole(&self, body: Raw<'_>) -> bool {
        body.get_str("object").is_some_and(|o| o == "response")
            || body.get("output").is_some_and(Raw::is_array)
    }

    fn whole(&mut self, body: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.created("created", body, turn);
        let mut items = body.list("output");
        turn.with_call = items.any(|item| self.items.kind(item).is_call());
        self.completed(body, "", turn);
    }

    fn finish(&mut self, turn: &mut EventWriter<'_>) {
        self.items.release(turn);
    }
}

/// Returns how many of the request's tools the client runs; a response repeats the request's
/// `tools` and `tool_choice`. Tools that the provider runs itself are not counted.
fn offered(response: Raw<'_>) -> Option<u32> {
    let tools = response.get("tools").filter(|tools| tools.is_array())?;
    if response
        .get_str("tool_choice")
        .is_some_and(|choice| choice == "none")
    {
        return Some(0);
    }
    const OF_THE_PROVIDER: [&str; 6] = [
        "web_search",
        "file_search",
        "code_interpreter",
        "image_generation",
        "mcp",
        "x_search",
    ];
    let is_for_client = |tool: &Raw<'_>| {
        let kind = tool.get_str("type").unwrap_or_default();
        !OF_THE_PROVIDER.iter().any(|name| kind.starts_with(name))
    };
    u32::try_from(tools.items().filter(is_for_client).count()).ok()
}

impl OpenaiResponses {
    /// Writes a piece of the text of the item at `at`.
    fn text(&mut self, at: usize, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.repeated = at;
        self.items.hear(at, piece);
        turn.text(0, piece);
    }

    /// Writes a piece of the reasoning of the item at `at`.
    fn thinking(&mut self, at: usize, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.repeated = at;
        self.items.hear(at, piece);
        turn.thinking(0, piece);
    }

    fn created(&mut self, event: &str, response: Raw<'_>, turn: &mut EventWriter<'_>) {
        turn.choice(0);
        turn.id(response.get("id"));
        turn.model(response.get("model"));
        turn.offered(offered(response));
        self.items.begin(event == "created", response.get("tools"));
    }

    /// Handles the end of a response. Its `output` is often empty, but may also contain items that
    /// had no events.
    fn completed(&mut self, response: Raw<'_>, event: &str, turn: &mut EventWriter<'_>) {
        turn.choice(0);
        turn.id(response.get("id"));
        turn.model(response.get("model"));
        for (output, item) in (0..).zip(response.list("output")) {
            self.items.item(Some(output), item, turn);
        }
        turn.details(0, "answer", response, &READ);
        if let Some(counts) = response.get("usage").filter(|counts| counts.is_object()) {
            turn.counts(counts, false);
        }
        let count = |path: &[&str]| crate::turn::count(response, path);
        turn.usage(SessionStats {
            prompt_tokens: count(&["usage", "input_tokens"]),
            completion_tokens: count(&["usage", "output_tokens"]),
            total_tokens: count(&["usage", "total_tokens"]),
            reasoning_tokens: count(&["usage", "output_tokens_details", "reasoning_tokens"]),
            cached_tokens: count(&["usage", "input_tokens_details", "cached_tokens"]),
            cache_write_tokens: count(&["usage", "input_tokens_details", "cache_write_tokens"])
                .filter(|n| *n > 0),
            ..SessionStats::default()
        });
        let status = response.get_str("status");
        match status.as_deref().unwrap_or(event) {
            "failed" => {
                let failure = match response.get("error") {
                    Some(error) => StreamFailure::of(error, None),
                    None => StreamFailure::new(
                        "response_failed",
                        "the provider says that the response failed",
                        true,
                    ),
                };
                turn.error(&failure);
                turn.finish_reason(0, FinishReason::Error, "failed");
            }
            "cancelled" => {
                turn.error(&StreamFailure::new(
                    "response_cancelled",
                    "the provider cancelled the response",
                    true,
                ));
                turn.finish_reason(0, FinishReason::Error, "cancelled");
            }
            "incomplete" => {
                let word = response
                    .at(&["incomplete_details", "reason"])
                    .and_then(Raw::str)
                    .unwrap_or("incomplete".into());
                let reason = if word == "content_filter" {
                    FinishReason::ContentFilter
                } else {
                    FinishReason::Length
                };
                turn.finish_reason(0, reason, &word);
            }
            // A background response has not ended.
            "queued" | "in_progress" if event.is_empty() => {}
            word => {
                self.items.finish_calls(turn);
                turn.finish_reason(0, FinishReason::Stop, word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Api::OpenaiResponses;
    use crate::support::{brief, brief_whole};

    const END: &str =
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#;

    fn added(kind: &str, more: &str) -> String {
        format!(
            r#"{{"type":"response.output_item.added","output_index":0,"item":{{"type":"{kind}","id":"i",{more}}}}}"#
        )
    }

    fn done(more: &str) -> String {
        format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"function_call","id":"i","call_id":"c","name":"f",{more}}}}}"#
        )
    }

    fn piece(text: &str) -> String {
        format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"i","delta":{text:?}}}"#
        )
    }

    fn call(frames: &[&str]) -> Vec<String> {
        let start = added(
            "function_call",
            r#""call_id":"c","name":"f","arguments":"""#,
        );
        brief(
            OpenaiResponses,
            &[&[start.as_str()], frames, &[END]].concat(),
        )
    }

    #[test]
    fn the_text_is_written_once_however_often_it_is_said() {
        let all = r#""arguments":"{\"a\":1}""#;
        let args =
            format!(r#"{{"type":"response.function_call_arguments.done","item_id":"i",{all}}}"#);
        let want = [
            "#0 id:c f",
            "#0 {\"a\":1}",
            "#0 done",
            "end tool_calls completed",
        ];
        assert_eq!(call(&[&args, &done(all)]), want);
        assert_eq!(call(&[&done(all)]), want);
        assert_eq!(call(&[&piece("{\"a\":1}")]), want);
        assert_eq!(
            call(&[&piece("{\"a\""), &args, &done(all)]),
            ["#0 id:c f", "#0 {\"a\"", "#0 :1}", "#0 done", want[3]]
        );
        assert_eq!(brief(OpenaiResponses, &[&done(all), END]), want);
        assert_eq!(
            call(&[&done(r#""arguments":"""#)]),
            [want[0], want[2], want[3]]
        );
    }

    #[test]
    fn a_call_whose_item_was_never_added_is_one_call() {
        let all = r#""arguments":"{\"a\":1}""#;
        let args =
            format!(r#"{{"type":"response.function_call_arguments.done","item_id":"i",{all}}}"#);
        let want = [
            "#0 id:c f",
            "#0 {\"a\":1}",
            "#0 done",
            "end tool_calls completed",
        ];
        let (first, second, item) = (piece("{\"a\":"), piece("1}"), done(all));
        for pieces in [vec![first.as_str(), second.as_str()], vec![]] {
            let frames = [&pieces[..], &[args.as_str(), item.as_str(), END]].concat();
            assert_eq!(brief(OpenaiResponses, &frames), want);
        }
        let input = r#"{"type":"response.custom_tool_call_input.done","item_id":"i","input":"q"}"#;
        let item = done(r#""input":"q""#).replace("function_call", "custom_tool_call");
        assert_eq!(
            brief(OpenaiResponses, &[input, &item, END])[1..3],
            [r#"#0 {"input":"q"#, "#0 \"} done"]
        );
    }

    #[test]
    fn a_call_that_has_only_begun_when_the_response_ends_is_lost() {
        for start in ["", r#","arguments":"""#] {
            let start = added(
                "function_call",
                &format!(r#""call_id":"c","name":"f"{start}"#),
            );
            let want = ["#0 id:c f", "error call_lost", "end error completed"];
            assert_eq!(brief(OpenaiResponses, &[&start, END]), want);
        }
    }

    #[test]
    fn the_end_of_a_call_counts_and_nobody_sees_the_wrong_arguments_whole() {
        let out = call(&[
            &piece("{\"b\":"),
            &piece("1}"),
            &done(r#""arguments":"{\"a\":2}""#),
        ]);
        let want = [
            "#0 id:c f",
            "#0 {\"b\":",
            "warning arguments_replaced",
            "retract #0 arguments_replaced",
            "#0 id:c f",
        ];
        assert_eq!(out[..5], want);
        assert_eq!(
            out[5..],
            ["#0 {\"a\":2}", "#0 done", "end tool_calls completed"]
        );
        // Content that was not yet written does not have to be retracted.
        let out = call(&[
            &piece("{\"a\":"),
            &piece("1}"),
            &done(r#""arguments":"{\"a\":2}""#),
        ]);
        assert_eq!(out[1..4], ["#0 {\"a\":", "#0 2}", "#0 done"]);
        // Different white space does not change the arguments.
        let out = call(&[
            &piece("{ \"a\""),
            &piece(": 1}"),
            &done(r#""arguments":"{\"a\":1}""#),
        ]);
        assert_eq!(out[1..4], ["#0 { \"a\"", "#0 : 1}", "#0 done"]);
    }

    #[test]
    fn a_call_that_was_cut_is_not_done() {
        let incomplete = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}"#;
        let start = added("function_call", r#""call_id":"c","name":"f""#);
        let half = done(r#""status":"incomplete","arguments":"{\"a\":1""#);
        let out = brief(
            OpenaiResponses,
            &[&start, &piece("{\"a\""), &half, incomplete],
        );
        assert_eq!(
            out,
            [
                "#0 id:c f",
                "#0 {\"a\"",
                "#0 :1",
                "end length max_output_tokens"
            ]
        );
    }

    #[test]
    fn free_text_becomes_an_object_unless_the_provider_ran_it() {
        let tools = r#"{"type":"response.created","response":{"id":"r","tools":[{"type":"custom","name":"f"}]}}"#;
        let input =
            r#"{"type":"response.custom_tool_call_input.delta","item_id":"i","delta":"a \"b\""}"#;
        let start = added("custom_tool_call", r#""call_id":"c","name":"f","input":"""#);
        let out = brief(OpenaiResponses, &[tools, &start, input, END]);
        let want = [
            r#"#0 id:c f {"openai-responses":{"custom":true}}"#,
            r#"#0 {"input":"a \"b\""#,
            "#0 \"} done",
        ];
        assert_eq!(out[..3], want);
        let search = done(r#""input":"q""#)
            .replace("function_call", "custom_tool_call")
            .replace("\"f\"", "\"x_search\"");
        let out = brief(OpenaiResponses, &[tools, &search, END]);
        assert!(out[0].starts_with("server custom_tool_call"), "{out:?}");
        assert!(
            out[1].starts_with(r#"~""{"openai-responses":{"server_item":"#),
            "{out:?}"
        );
        assert_eq!(out[2], "end stop completed");
    }

    #[test]
    fn a_tool_of_the_api_that_the_client_runs_is_a_call_unless_a_container_ran_it() {
        let item = |environment: &str| {
            format!(
                r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"shell_call","id":"i","call_id":"c","status":"completed","action":{{"commands":["ls"],"timeout_ms":null}},"environment":{{"type":"{environment}"}}}}}}"#
            )
        };
        let start = added("shell_call", r#""call_id":"c","status":"in_progress""#);
        let want = [
            r#"#0 id:c shell {"openai-responses":{"kind":"shell_call"}}"#,
            r#"#0 {"action":{"commands":["ls"],"timeout_ms":null},"environment":{"type":"local"}} done"#,
            "end tool_calls completed",
        ];
        assert_eq!(
            brief(
                OpenaiResponses,
                &[&start, &item("local"), &item("local"), END]
            ),
            want
        );
        let out = brief(OpenaiResponses, &[&item("container_reference"), END]);
        assert!(out[0].starts_with("server shell_call"), "{out:?}");
        // A truncated call cannot run.
        let out = brief(OpenaiResponses, &[&start, END]);
        assert_eq!(out, ["end stop completed"]);
    }

    #[test]
    fn a_phase_goes_back_with_the_length_of_its_message() {
        let text = r#"{"type":"response.output_text.delta","item_id":"i","delta":"Für"}"#;
        let item = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"i","phase":"commentary","content":[{"type":"output_text","text":"Für"}]}}"#;
        let want = r#"~""{"openai-responses":{"message":{"phase":"commentary","length":3}}}"#;
        let out = brief(
            OpenaiResponses,
            &[&added("message", r#""content":[]"#), text, item, END],
        );
        assert_eq!(out, ["\"Für\"", want, "end stop completed"]);
    }

    #[test]
    fn reasoning_goes_back_only_where_it_can_be_read_again() {
        let item = |more: &str| {
            let end = added("reasoning", more).replace("added", "done");
            let delta =
                r#"{"type":"response.reasoning_summary_text.delta","item_id":"i","delta":"hm"}"#;
            brief(
                OpenaiResponses,
                &[&added("reasoning", r#""summary":[]"#), delta, &end, END],
            )
        };
        let out =
            item(r#""summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e""#);
        assert_eq!(out.len(), 3);
        assert!(
            out[1].starts_with(r#"~""{"openai-responses":{"item":{"type":"reasoning""#),
            "{out:?}"
        );
        assert_eq!(item(r#""summary":[]"#), ["~\"hm\"", "end stop completed"]);
    }

    #[test]
    fn pieces_without_an_id_and_a_place_are_those_of_the_items_at_the_end() {
        let piece = |kind: &str, text: &str| {
            format!(r#"{{"type":"response.{kind}.delta","delta":"{text}"}}"#)
        };
        let text = |text: &str| {
            format!(
                r#"{{"type":"message","id":"{text}","content":[{{"type":"output_text","text":"{text}"}}]}}"#
            )
        };
        let end = |items: &[&str]| {
            let items = items.join(",");
            format!(
                r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{items}]}}}}"#
            )
        };
        let run = |pieces: &[String], items: &[&str]| {
            let frames: Vec<&str> = pieces.iter().map(String::as_str).collect();
            brief(
                OpenaiResponses,
                &[&frames, &[end(items).as_str()][..]].concat(),
            )
        };
        let said = [
            piece("output_text", "on"),
            piece("output_text", r"e\ud83d"),
            piece("output_text", r"\ude00"),
        ];
        assert_eq!(
            run(&said, &[&text(r"one\ud83d\ude00")]),
            ["\"on\"", "\"e\"", "\"😀\"", "end stop completed"]
        );
        // The pieces of two messages, and a message without pieces.
        assert_eq!(
            run(&said, &[&text("on"), &text(r"e\ud83d\ude00"), &text("two")]),
            ["\"on\"", "\"e\"", "\"😀\"", "\"two\"", "end stop completed"]
        );
        // The item's own end comes first, and does not match a later item.
        let done = format!(
            r#"{{"type":"response.output_item.done","item":{}}}"#,
            text("on")
        );
        let other = [
            piece("output_text", "on"),
            done,
            piece("output_text", "off"),
        ];
        assert_eq!(
            run(&other, &[&text("on"), &text("off")]),
            ["\"on\"", "\"off\"", "end stop completed"]
        );
        let refusal = r#"{"type":"message","content":[{"type":"refusal","refusal":"no"}]}"#;
        assert_eq!(
            run(&[piece("refusal", "no")], &[refusal]),
            ["refusal \"no\"", "end stop completed"]
        );
        let thought = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}"#;
        assert_eq!(
            run(&[piece("reasoning_summary_text", "hm")], &[thought]),
            ["~\"hm\"", "end stop completed"]
        );
        let call =
            r#"{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{\"a\":1}"}"#;
        let parts = [
            piece("function_call_arguments", r#"{\"a\""#),
            piece("function_call_arguments", ":1}"),
        ];
        assert_eq!(
            run(&parts, &[call]),
            [
                "#0 id:c f",
                "#0 {\"a\":1}",
                "#0 done",
                "end tool_calls completed"
            ]
        );
    }

    #[test]
    fn what_only_the_end_says_and_what_failed() {
        let out = brief_whole(
            OpenaiResponses,
            r#"{"object":"response","id":"r","status":"completed","output":[
            {"type":"message","id":"m","content":[{"type":"output_text","text":"x"},{"type":"refusal","refusal":"no"}]},
            {"type":"web_search_call","id":"w"}],"usage":{"input_tokens":1,"output_tokens":2}}"#,
        );
        let item = r#"server web_search_call {"type":"web_search_call","id":"w"}"#;
        assert_eq!(
            out,
            [
                "\"x\"",
                "refusal \"no\"",
                item,
                r#"~""{"openai-responses":{"server_item":{"type":"web_search_call","id":"w"}}}"#,
                "tokens 1+2",
                "end stop completed"
            ]
        );
        let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}"#;
        assert_eq!(
            brief(OpenaiResponses, &[failed]),
            ["error server_error", "end error failed"]
        );
    }
}
