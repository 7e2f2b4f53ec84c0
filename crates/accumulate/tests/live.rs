//! Live deltas: what is sent of a call's arguments is always the beginning of JSON, and of the
//! final arguments.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::payload::{ToolCall, ToolCallDelta};
use event::{Collect, Json, Kind, Scanner, Text, quoted};
use proptest::prelude::*;
use std::collections::HashMap;
use std::rc::Rc;
use toolpipe_accumulate::{Accumulate, AccumulateOptions, EmitOn};

const TOOLS: &str = r#"[{"name":"f","parameters":{"type":"object","properties":{"list":{"type":"array"},"a":{}}}}]"#;

/// What a client gets of one call.
#[derive(Debug, Default)]
struct Call {
    name: String,
    sent: String,
    deltas: usize,
    /// The final arguments, or the code of the error.
    end: Option<Result<String, String>>,
    is_repaired: bool,
}

/// The calls of a stream with these fragments for call 0, by their ids.
fn calls(fragments: &[&str], end: &str, emit_on: EmitOn) -> HashMap<String, Call> {
    let mut lines = vec![format!(
        r#"{{"type":"stream_start","v":1,"id":"r","tools":{TOOLS}}}"#
    )];
    for (n, fragment) in fragments.iter().enumerate() {
        let name = if n == 0 {
            r#""tool_id":"a","tool_name":"f","#
        } else {
            ""
        };
        lines.push(format!(
            r#"{{"type":"tool_call_delta","index":3,{name}"arguments":{}}}"#,
            quoted(fragment)
        ));
    }
    lines.push(format!(
        r#"{{"type":"stream_end","finish_reason":"{end}"}}"#
    ));
    let options = AccumulateOptions {
        live: true,
        emit_on,
        ..AccumulateOptions::default()
    };
    let out = Collect::run(&mut Accumulate::new(Rc::new(options)), lines);
    let mut calls: HashMap<String, Call> = HashMap::new();
    let mut scanner = Scanner::default();
    for line in &out {
        let event = scanner.read(line).unwrap();
        match event.kind() {
            Kind::ToolCallDelta => {
                let delta = ToolCallDelta::read(&event);
                let call = calls
                    .entry(delta.tool_id.unwrap().str().into_owned())
                    .or_default();
                assert!(
                    call.end.is_none(),
                    "a delta behind the end of its call: {out:?}"
                );
                assert_eq!(
                    delta.tool_name.is_some(),
                    call.deltas == 0,
                    "the name comes once: {out:?}"
                );
                call.deltas += 1;
                call.name
                    .push_str(&delta.tool_name.unwrap_or_default().str());
                let more = delta.arguments.unwrap().str().into_owned();
                assert!(!more.is_empty());
                call.sent.push_str(&more);
                let mut json = json::JsonScanner::default();
                assert_eq!(json.push(&call.sent), call.sent.len());
                assert!(json.is_valid(), "{} begins no JSON: {out:?}", call.sent);
                assert!(!json.is_whole(), "{} could run: {out:?}", call.sent);
            }
            Kind::ToolCall => {
                let end = ToolCall::read(&event);
                let call = calls.entry(end.tool_id.str().into_owned()).or_default();
                call.is_repaired = end.repairs.is_some();
                call.end = Some(match end.error {
                    Some(error) => Err(error.code.str().into_owned()),
                    None => Ok(end.arguments.map(Json::text).unwrap().into_owned()),
                });
                assert!(call.deltas == 0 || Text::from(&call.name).str() == end.tool_name.str());
            }
            _ => {}
        }
    }
    calls
}

/// Checks that the final arguments of every call continue what was sent; returns the arguments or
/// error of call `a`, and what was sent of it.
fn checked(fragments: &[&str], end: &str) -> (Result<String, String>, String) {
    checked_unless(fragments, end, |_| false)
}

/// The same; a call for which `may_differ` holds may end with other arguments.
fn checked_unless(
    fragments: &[&str],
    end: &str,
    may_differ: fn(&Call) -> bool,
) -> (Result<String, String>, String) {
    let mut first = None;
    for emit_on in [EmitOn::Balanced, EmitOn::Sealed, EmitOn::Final] {
        for (id, call) in calls(fragments, end, emit_on) {
            let may_differ = may_differ(&call);
            let all = call.end.unwrap();
            if let Ok(all) = all.as_ref()
                && !may_differ
            {
                assert!(
                    all.starts_with(&call.sent),
                    "{fragments:?}: sent {} of {all}",
                    call.sent
                );
            }
            if id == "a" {
                first.get_or_insert((all, call.sent));
            }
        }
    }
    first.unwrap()
}

#[test]
fn hostile_texts_in_every_split() {
    let ok = |text: &str| Ok(text.to_owned());
    let err = |code: &str| Err(code.to_owned());
    for (text, want) in [
        ("{\"a\":1}", ok("{\"a\":1}")),
        (
            "{\"a\": [1, 2.5e3, true, null, \"x\"]}",
            ok("{\"a\":[1,2.5e3,true,null,\"x\"]}"),
        ),
        (
            "{\"a\":\"\\ud83d\\ude00\\n\u{7f}é😀\"}",
            ok("{\"a\":\"\\ud83d\\ude00\\n\\u007fé😀\"}"),
        ),
        ("{}", ok("{}")),
        ("", ok("{}")),
        ("null", ok("{}")),
        ("{}{\"a\":1}", ok("{\"a\":1}")),
        ("{ } {\"a\":1}", ok("{\"a\":1}")),
        ("{\"a\":1}{\"a\":1}", ok("{\"a\":1}")),
        ("{\"a\":1}{\"a\":2}", ok("{\"a\":1}")),
        ("{\"a\":1}}", ok("{\"a\":1}")),
        ("{\"a\":1,}", ok("{\"a\":1}")),
        ("{\"a\":[1,2,]}", ok("{\"a\":[1,2]}")),
        (
            "{\"a\":\"C:\\Users\\d\"}",
            ok("{\"a\":\"C:\\\\Users\\\\d\"}"),
        ),
        ("{\"a\":\"one\ntwo\"}", ok("{\"a\":\"one\\ntwo\"}")),
        ("{'a': 'b'}", ok("{\"a\":\"b\"}")),
        ("{\"a\": True, \"b\": None}", ok("{\"a\":true,\"b\":null}")),
        ("{\"a\":1 \"b\":2}", ok("{\"a\":1,\"b\":2}")),
        ("\"{\\\"a\\\":1}\"", ok("{\"a\":1}")),
        ("```json\n{\"a\":1}\n```", ok("{\"a\":1}")),
        ("{\"list\":\"[1,2]\"}", ok("{\"list\":[1,2]}")),
        (
            "{\"a\":\"[1,2]\",\"list\":[]}",
            ok("{\"a\":\"[1,2]\",\"list\":[]}"),
        ),
        ("{\"a\":NaN}", err("invalid_json")),
        ("{\"a\":1,\"a\":2}", err("invalid_json")),
        ("{\"a\":\"\\ud83d\"}", err("invalid_json")),
        ("[1]", err("invalid_json")),
        ("{\"list\":\"no\"}", err("schema")),
        ("{\"a\":\"x", err("incomplete")),
        ("{\"a\":", err("incomplete")),
    ] {
        let whole = checked(&[text], "stop").0;
        assert_eq!(whole, want, "{text}");
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
        let chars: Vec<&str> = text
            .char_indices()
            .map(|(at, c)| &text[at..at + c.len_utf8()])
            .collect();
        if !chars.is_empty() {
            assert_eq!(
                checked(&chars, "stop").0,
                want,
                "{text} in single characters"
            );
            drop(checked(&chars, "length"));
        }
        for (n, one) in places.iter().enumerate() {
            assert_eq!(
                checked(&[&text[..*one], &text[*one..]], "stop").0,
                want,
                "{text} cut at {one}"
            );
            for two in &places[n + 1..] {
                assert_eq!(
                    checked(&[&text[..*one], &text[*one..*two], &text[*two..]], "stop").0,
                    want,
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn text_that_is_sent_again_and_again() {
    for (fragments, all, sent) in [
        (
            &["{\"a\":", "{\"a\":\"x", "{\"a\":\"xy\"}"][..],
            "{\"a\":\"xy\"}",
            "{\"a\":\"xy",
        ),
        (&["{\"a\":", "{\"a\":1}"], "{\"a\":1}", "{\"a\":"),
        (
            &["{\"a\":", "{\"a\":1}", "}"],
            "{\"a\":{\"a\":1}}",
            "{\"a\":{\"a\":",
        ),
        (
            &["{}", "{\"a\":\"x", "y\"}"],
            "{\"a\":\"xy\"}",
            "{\"a\":\"xy",
        ),
        (
            &["{\"a\":\"x", "\"}", "{\"a\":\"x\"}"],
            "{\"a\":\"x\"}",
            "{\"a\":\"x",
        ),
    ] {
        let (got, begun) = checked(fragments, "stop");
        assert_eq!(
            (got, &begun[..]),
            (Ok(all.to_owned()), sent),
            "{fragments:?}"
        );
    }
}

#[test]
fn text_streams_as_it_comes() {
    let (_, sent) = checked(
        &["{\"path\":\"a.rs\",\"text\":\"fn ma", "in() {", "}"],
        "length",
    );
    assert_eq!(sent, "{\"path\":\"a.rs\",\"text\":\"fn main() {}");
}

#[test]
fn a_call_of_the_text_has_no_live_deltas_and_a_retract_names_the_call() {
    let lines = [
        r#"{"type":"tool_call_delta","index":7,"tool_name":"f","arguments":"{\"a\":","from_text":true}"#,
        r#"{"type":"tool_call_delta","index":7,"arguments":"1}"}"#,
        r#"{"type":"retract","index":7,"reason":"native_call"}"#,
        r#"{"type":"tool_call_delta","index":7,"tool_id":"b","tool_name":"f","arguments":"{\"a\":"}"#,
        r#"{"type":"retract","index":7,"reason":"unparsed"}"#,
        r#"{"type":"tool_call_delta","index":7,"tool_id":"c","tool_name":"f","arguments":"{\"a\":"}"#,
    ];
    let options = AccumulateOptions {
        live: true,
        ..AccumulateOptions::default()
    };
    let out = Collect::run(&mut Accumulate::new(Rc::new(options)), lines);
    let mut scanner = Scanner::default();
    let got: Vec<(String, String, i64)> = out
        .iter()
        .map(|line| {
            let event = scanner.read(line).unwrap();
            let id = event.get_str("tool_id").unwrap_or_default().into_owned();
            (
                event.kind().name().to_owned(),
                id,
                event.get("index").and_then(|n| n.i64()).unwrap_or(-1),
            )
        })
        .collect();
    let text = got[0].1.clone();
    assert_eq!(text.len(), 9);
    assert_eq!(
        got,
        [
            ("tool_call", &text[..], 0),
            ("retract", &text[..], -1),
            ("tool_call_delta", "b", 1),
            ("retract", "b", -1),
            ("tool_call_delta", "c", 2),
            ("tool_call", "c", 2),
        ]
        .map(|(kind, id, index)| (kind.to_owned(), id.to_owned(), index))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn sent_bytes_begin_the_final_arguments(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", "\"", "\"a\"", "\"list\":", "\"b\":", ":", ",", "1", "-0.5", "true", "True", "'x'", " ", "\n", "\\n",
                "\\", "\\ud83d", "\\ude00", "é", "\u{7f}", "word", "{\"a\":1}", "{\"a\":\"x\"}", "{}", "[1,2]", "//",
            ]),
            1..14,
        ),
        joins in prop::collection::vec(any::<bool>(), 14),
        again in any::<bool>(),
    ) {
        let mut fragments: Vec<String> = vec!["{\"a\":".into()];
        for (piece, join) in pieces.iter().zip(joins) {
            match fragments.last_mut() {
                Some(last) if join => last.push_str(piece),
                Some(last) if again => {
                    let grown = format!("{last}{piece}");
                    fragments.push(grown);
                }
                _ => fragments.push((*piece).to_owned()),
            }
        }
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        drop(checked(&fragments, "stop"));
    }

    /// A repair may end a string of the text before what was sent of it, where a quote is missing
    /// or a comment begins in it. That answer fails (`answer::turn`); nothing else changes what was
    /// sent.
    #[test]
    fn only_a_repair_changes_what_was_sent(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "\"", "\"}", "\",", "x", "\"b\":\"", "\",\"c\":", "/*", "*/", "+", "'", "`", "...", "{", "}", "]", "(", ";", "\\",
            ]),
            1..14,
        ),
    ) {
        let fragments: Vec<&str> = std::iter::once("{\"a\":\"x").chain(pieces).collect();
        drop(checked_unless(&fragments, "stop", |call| call.is_repaired));
    }
}
