//! Events into the answers of all fronts: frames are JSON, calls that can run are whole, the stream
//! and the whole answer say the same.
//!
//! Input: see `input.rs`, `stream`.

use super::input::{Source, merge, merged, show, stream};
use super::line::{Line, raw};
use super::{Target, Turn};
use accumulate::AccumulateOptions;
use api::{AnswerForm, AnswerOptions, Api, Encoder, End, Front, Stream, StreamOptions};
use event::{Collect, Kind, Scanner};
use serde_json::Value;
use std::collections::BTreeMap;

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "answer",
    check,
};

/// What a client has in the end: text, calls, and whether it ended well (`None`: it failed).
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Got {
    text: String,
    calls: Vec<(String, String)>,
    end: Option<String>,
}

fn answer(front: Front, form: AnswerForm, lines: &[Line]) -> Option<String> {
    let options = AnswerOptions {
        id: "1".into(),
        model: "m".into(),
        include_usage: true,
        choices: Some(1),
        ..AnswerOptions::default()
    };
    let (mut encoder, mut out, mut scanner) = (
        Encoder::new(front, form, options),
        Vec::new(),
        Scanner::default(),
    );
    lines
        .iter()
        .for_each(|line| encoder.push(&scanner.read(&line.raw).unwrap(), &mut out));
    encoder.finish(&mut out);
    assert!(encoder.is_done());
    if encoder.failure().is_some() && !encoder.has_begun() {
        assert!(out.is_empty());
        return None;
    }
    Some(String::from_utf8(out).expect("UTF-8"))
}

fn json(text: &str) -> Value {
    read_json(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Half of a surrogate pair is JSON, but not for serde_json. Behind an escaped backslash the same
/// letters are text.
fn read_json(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|_| {
        let parts = text.split(r"\\").map(|part| {
            part.replace(r"\ud83d", r"\u003f")
                .replace(r"\ude00", r"\u003f")
        });
        serde_json::from_str(&parts.collect::<Vec<_>>().join(r"\\"))
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The data of the frames of a stream: no other line, and no raw control character.
fn frames(body: &str) -> Vec<Value> {
    assert!(body.ends_with("\n\n"), "{body:?}");
    let mut out = Vec::new();
    for frame in body.split_terminator("\n\n") {
        for line in frame.split('\n') {
            assert!(!line.chars().any(char::is_control), "{line:?}");
            match line.strip_prefix("data: ") {
                Some("[DONE]") => {}
                Some(data) => out.push(json(data)),
                None => assert!(
                    line.starts_with("event: ") || line.starts_with(':'),
                    "{line:?}"
                ),
            }
        }
    }
    out
}

/// Reads a stream as a plain client of the API does.
fn streamed(front: Front, body: &str) -> Got {
    let mut got = Got::default();
    let mut calls: BTreeMap<i64, (String, String)> = BTreeMap::new();
    let mut closed = Vec::new();
    for frame in frames(body) {
        match front {
            Front::Chat => {
                let choice = &frame["choices"][0];
                let delta = &choice["delta"];
                got.text += text(&delta["content"]);
                got.text += text(&delta["refusal"]);
                for call in delta["tool_calls"].as_array().into_iter().flatten() {
                    let at = call["index"].as_i64().expect("an index");
                    let of = calls.entry(at).or_default();
                    of.0 += text(&call["function"]["name"]);
                    of.1 += text(&call["function"]["arguments"]);
                }
                if let Some(end) = choice["finish_reason"].as_str() {
                    got.end = Some(end.to_owned());
                }
                if frame.get("error").is_some() {
                    got.end = None;
                }
            }
            Front::Messages => match text(&frame["type"]) {
                "content_block_start" => {
                    got.text += text(&frame["content_block"]["text"]);
                    if frame["content_block"]["type"] == "tool_use" {
                        let name = text(&frame["content_block"]["name"]).to_owned();
                        calls.insert(frame["index"].as_i64().unwrap(), (name, String::new()));
                    }
                }
                "content_block_delta" => {
                    got.text += text(&frame["delta"]["text"]);
                    if let Some(call) = calls.get_mut(&frame["index"].as_i64().unwrap()) {
                        call.1 += text(&frame["delta"]["partial_json"]);
                    }
                }
                "content_block_stop" => closed.push(frame["index"].as_i64().unwrap()),
                "message_delta" => {
                    got.end = frame["delta"]["stop_reason"].as_str().map(str::to_owned)
                }
                "error" => got.end = None,
                _ => {}
            },
            Front::Responses => match text(&frame["type"]) {
                "response.output_text.delta" | "response.refusal.delta" => {
                    got.text += text(&frame["delta"])
                }
                "response.output_item.added" if frame["item"]["type"] == "function_call" => {
                    let of = calls
                        .entry(frame["output_index"].as_i64().unwrap())
                        .or_default();
                    of.0 += text(&frame["item"]["name"]);
                    of.1 += text(&frame["item"]["arguments"]);
                }
                "response.function_call_arguments.delta" => {
                    calls
                        .get_mut(&frame["output_index"].as_i64().unwrap())
                        .unwrap()
                        .1 += text(&frame["delta"]);
                }
                "response.function_call_arguments.done" => {
                    assert_eq!(
                        calls[&frame["output_index"].as_i64().unwrap()].1,
                        text(&frame["arguments"]),
                        "{body}"
                    );
                }
                "response.completed" | "response.incomplete" | "response.failed" => {
                    let whole = whole(front, &frame["response"]);
                    got.end = whole.end.clone();
                    if got.end.as_deref() == Some("completed") {
                        assert_eq!(
                            whole.calls,
                            calls.values().cloned().collect::<Vec<_>>(),
                            "{body}"
                        );
                        assert_eq!(whole.text, got.text, "{body}");
                    }
                }
                "error" => got.end = None,
                _ => {}
            },
        }
    }
    got.calls = calls.into_values().collect();
    // A block of Messages without input is `{}`.
    if front == Front::Messages {
        got.calls
            .iter_mut()
            .filter(|c| c.1.is_empty())
            .for_each(|c| c.1 = "{}".into());
    }
    got
}

/// Reads a whole answer.
fn whole(front: Front, body: &Value) -> Got {
    let mut got = Got::default();
    match front {
        Front::Chat => {
            let choice = &body["choices"][0];
            got.text = text(&choice["message"]["content"]).to_owned()
                + text(&choice["message"]["refusal"]);
            got.end = choice["finish_reason"].as_str().map(str::to_owned);
            for call in choice["message"]["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
            {
                got.calls.push((
                    text(&call["function"]["name"]).into(),
                    text(&call["function"]["arguments"]).into(),
                ));
            }
        }
        Front::Messages => {
            got.end = body["stop_reason"].as_str().map(str::to_owned);
            for block in body["content"].as_array().into_iter().flatten() {
                got.text += text(&block["text"]);
                if block["type"] == "tool_use" {
                    got.calls
                        .push((text(&block["name"]).into(), block["input"].to_string()));
                }
            }
        }
        Front::Responses => {
            got.end = body["status"]
                .as_str()
                // A whole answer that was cancelled is an object, too.
                .filter(|s| !matches!(*s, "failed" | "cancelled"))
                .map(str::to_owned);
            for item in body["output"].as_array().into_iter().flatten() {
                if item["type"] == "function_call" {
                    got.calls
                        .push((text(&item["name"]).into(), text(&item["arguments"]).into()));
                }
                for part in item["content"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|_| item["type"] == "message")
                {
                    got.text += text(&part["text"]);
                    got.text += text(&part["refusal"]);
                }
            }
        }
    }
    got
}

/// Whether the end says that the model was not cut.
fn is_well(end: &Option<String>) -> bool {
    matches!(
        end.as_deref(),
        Some("stop" | "tool_calls" | "end_turn" | "tool_use" | "completed" | "stop_sequence")
    )
}

/// The characters of a text in any order: Chat keeps refusal and text apart.
fn sorted(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters
}

/// What a stream and a whole answer are compared by: text without halves of surrogate pairs, calls,
/// the end.
fn plain(got: &Got) -> (String, Vec<(String, Value)>, Option<String>) {
    let calls = got
        .calls
        .iter()
        .map(|(name, arguments)| (name.clone(), json_or_text(arguments)))
        .collect();
    (got.text.replace('\u{fffd}', ""), calls, got.end.clone())
}

fn check(bytes: &[u8], turn: Turn) {
    let made = stream(&mut Source(bytes), false);
    show(&made.lines);
    let lines = merge(
        &made.lines,
        AccumulateOptions {
            live: true,
            ..AccumulateOptions::default()
        },
    );
    let is_cut =
        |l: &Line| l.kind == Kind::ToolCall && l.is_refused && l.raw.contains("\"incomplete\"");
    let has_cut = lines.iter().any(is_cut);
    let has_retract = lines.iter().any(|l| l.kind == Kind::Retract);
    let fails = matches!(made.end, None | Some("error" | "cut" | "cancelled"));
    let is_cut = matches!(made.end, Some("length" | "content_filter"));
    let is_text = |l: &&Line| matches!(l.kind, Kind::ContentDelta | Kind::RefusalDelta);
    let sent: String = lines.iter().filter(is_text).map(|l| &l.text[..]).collect();
    let fronts = [
        (Front::Chat, Api::OpenaiChat),
        (Front::Responses, Api::OpenaiResponses),
        (Front::Messages, Api::Anthropic),
    ];
    // One front for each input; Chat, which most clients speak, has two turns more.
    for (at, (front, api)) in (0..).zip(fronts) {
        let is_turn =
            turn.takes(at) || turn.takes(at + 3) || at == 0 && (turn.takes(6) || turn.takes(7));
        if !is_turn {
            continue;
        }
        let stream = answer(front, AnswerForm::Stream, &lines);
        let one = answer(front, AnswerForm::Whole, &lines);
        let got = stream
            .as_deref()
            .map_or_else(Got::default, |body| streamed(front, body));
        let all = one
            .as_deref()
            .map_or_else(Got::default, |body| whole(front, &json(body)));
        for got in [&got, &all] {
            if is_well(&got.end) {
                assert!(
                    !fails && !is_cut && !has_cut,
                    "ends well: {got:?} {}",
                    raw(&lines)
                );
                for (name, arguments) in &got.calls {
                    assert!(
                        !name.is_empty() && json(arguments).is_object(),
                        "{got:?} {}",
                        raw(&lines)
                    );
                }
                assert!(
                    got.calls.is_empty()
                        || !["stop", "end_turn"].contains(&got.end.as_deref().unwrap_or_default()),
                    "{got:?}"
                );
            }
        }
        assert!(
            !fails || got.end.is_none() && all.end.is_none(),
            "a failure ends: {got:?} {all:?} {}",
            raw(&lines)
        );
        // A stream fails at a call that begins after one that is not finished, or whose name grows;
        // a whole answer leaves the one out.
        let cannot = [
            "that it did not finish",
            "than it began with",
            "a part of it was sent",
        ];
        let is_overlapped = stream
            .as_ref()
            .is_some_and(|body| cannot.iter().any(|why| body.contains(why)));
        if !has_retract && !is_overlapped && !(got.end.is_none() && all.end.is_none()) {
            let (mut got, mut all) = (plain(&got), plain(&all));
            // A call that was cut is in the stream as far as it came.
            if !is_well(&got.2) {
                got.1.truncate(all.1.len());
            }
            if front == Front::Chat {
                (got.0, all.0) = (
                    sorted(&got.0).into_iter().collect(),
                    sorted(&all.0).into_iter().collect(),
                );
            }
            assert_eq!(
                got,
                all,
                "stream and whole: {front:?} {}\n{stream:?}\n{one:?}",
                raw(&lines)
            );
        }
        // Text is neither lost nor made up, but for halves of surrogate pairs.
        let has_halves = || {
            sent.contains('\u{fffd}')
                || lines
                    .iter()
                    .any(|l| l.raw.contains("\\ud83d") || l.raw.contains("\\ude00"))
        };
        if all.end.is_some() && !has_halves() {
            let count = |t: &str| t.chars().count();
            // The answer ends with the first call that was cut.
            assert!(
                count(&all.text) == count(&sent) || has_cut && count(&all.text) < count(&sent),
                "{all:?} {sent:?}"
            );
        }
        // Our own decoder reads it as it was.
        if let Some(body) = stream.filter(|_| turn.takes(at)) {
            let mut out = Collect::default();
            let mut decoder = Stream::new(api, StreamOptions::default());
            decoder.push(body.as_bytes(), &mut out);
            decoder.finish(End::Eof, &mut out);
            let again = Line::all(merged(&out.lines, AccumulateOptions::default()));
            let complete = again
                .iter()
                .filter(|l| l.kind == Kind::ToolCall && !l.is_refused)
                .count();
            if is_well(&got.end) && !has_halves() {
                assert_eq!(complete, got.calls.len(), "{body}");
            } else if fails || is_overlapped {
                assert!(again.iter().any(|l| l.kind == Kind::Error), "{body}");
            }
        }
    }
}

fn json_or_text(text: &str) -> Value {
    read_json(text).unwrap_or_else(|_| text.into())
}
