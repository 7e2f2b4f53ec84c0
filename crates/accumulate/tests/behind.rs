//! Text behind balanced arguments: what begins a call, what is dropped, and that no cut shows.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::{Collect, Kind, Scanner, quoted};
use std::rc::Rc;
use toolpipe_accumulate::{Accumulate, AccumulateOptions};

const START: &str = r#"{"type":"stream_start","v":1,"id":"r1"}"#;
const STOP: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

/// How the deltas after the first name their call.
const LABELS: [&str; 4] = [
    "",
    r#""index":0,"#,
    r#""tool_id":"a","#,
    r#""index":0,"tool_id":"a","#,
];

/// The calls, the message and the codes of the warnings that fragments give.
fn outcome(fragments: &[&str], label: &str) -> Vec<String> {
    let mut lines = vec![START.to_owned()];
    for (n, fragment) in fragments.iter().enumerate() {
        let label = if n == 0 {
            r#""index":0,"tool_id":"a","tool_name":"f","#
        } else {
            label
        };
        lines.push(format!(
            r#"{{"type":"tool_call_delta",{label}"arguments":{}}}"#,
            quoted(fragment)
        ));
    }
    lines.push(STOP.to_owned());
    let mut out = Vec::new();
    let mut scanner = Scanner::default();
    for line in Collect::run(
        &mut Accumulate::new(Rc::new(AccumulateOptions::default())),
        lines,
    ) {
        let event = scanner.read(&line).unwrap();
        let code = event.get_str("code").unwrap_or_default().into_owned();
        match event.kind() {
            // Neither a missing index nor an early seal changes the text or the call.
            Kind::Warning if code != "index_inferred" => out.push(code),
            Kind::ToolCall => out.push(line.replace("\"sealed\"", "\"balanced\"")),
            Kind::Message => out.push(line),
            _ => {}
        }
    }
    // Warnings are counted: how many deltas there are must not show, nor when a call was written.
    out.sort();
    out.dedup();
    out
}

/// The calls of an outcome, by their arguments, and the codes of its warnings.
fn told(outcome: &[String]) -> (Vec<String>, Vec<&str>) {
    let mut scanner = Scanner::default();
    let mut calls = Vec::new();
    for line in outcome
        .iter()
        .filter(|l| l.starts_with("{\"type\":\"tool_call\""))
    {
        let event = scanner.read(line).unwrap();
        let error = event
            .get("error")
            .and_then(|e| e.get_str("code").map(|c| c.into_owned()));
        calls.push(error.unwrap_or_else(|| event.get("arguments").unwrap().text().to_owned()));
    }
    (
        calls,
        outcome
            .iter()
            .map(String::as_str)
            .filter(|l| !l.starts_with('{'))
            .collect(),
    )
}

#[test]
fn only_an_object_begins_another_call_and_no_cut_shows() {
    let one = &["{\"a\":1}"][..];
    let extra = &["extra_arguments"][..];
    let text = &["extra_text"][..];
    let none = &[][..];
    for (all, calls, codes) in [
        ("{\"a\":1}}", one, text),
        ("{\"a\":1}]", one, text),
        ("{\"a\":1};", one, text),
        ("{\"a\":1} ;\n", one, text),
        ("{\"a\":1}\n```", one, text),
        ("{\"a\":1}<|im_end|>", one, text),
        ("{\"a\":1}</tool_call>\n<tool_call>{\"a\":2}", one, text),
        ("{\"a\":1}, {\"a\":2}", one, text),
        ("{\"a\":1}\"{\"", one, text),
        ("{\"a\":1}😀{\"a\":2}", one, text),
        ("{\"a\":1}null", one, text),
        ("{\"a\":1}[{\"a\":2}]", one, text),
        ("{\"a\":1} {\"a\":1}}", one, text),
        ("{\"a\":1}\n{\"a\":1}\t\r\n", one, none),
        (
            "{\"a\":\"😀 é\"}{\"a\":\"😀 é\"}",
            &["{\"a\":\"😀 é\"}"],
            none,
        ),
        ("{\"a\": 1}{\"a\": 1}", one, none),
        ("{\"a\":1}{\"a\":2}", &["{\"a\":1}", "{\"a\":2}"], extra),
        (
            "{\"a\":\"😀\"}{\"a\":\"😁\"}",
            &["{\"a\":\"😀\"}", "{\"a\":\"😁\"}"],
            extra,
        ),
        (
            "{\"a\":1} {\"a\":2}\n{\"a\":3}",
            &["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"],
            extra,
        ),
        (
            "{\"a\":1}{\"a\":1}{\"a\":2}{\"a\":2}",
            &["{\"a\":1}", "{\"a\":2}"],
            extra,
        ),
        (
            "{\"a\":1}{\"a\":2}}",
            &["{\"a\":1}", "{\"a\":2}"],
            &["extra_arguments", "extra_text"],
        ),
        (
            "{\"a\":1}{\"a\":2},{\"a\":3}",
            &["{\"a\":1}", "{\"a\":2}"],
            &["extra_arguments", "extra_text"],
        ),
        ("{\"a\":1}{}{\"a\":2}", &["{\"a\":1}", "{\"a\":2}"], extra),
        ("{}{\"a\":1}", one, none),
        ("{} {}{ }{\"a\":1}{\"a\":1}", one, none),
        ("{}}{\"a\":1}", &["{}"], text),
    ] {
        let whole = outcome(&[all], LABELS[1]);
        assert_eq!(
            told(&whole),
            (
                calls.iter().map(|c| (*c).to_owned()).collect(),
                codes.to_vec()
            ),
            "{all}"
        );
        let cuts: Vec<usize> = all.char_indices().map(|(at, _)| at).skip(1).collect();
        let bytes: Vec<&str> = all
            .char_indices()
            .map(|(at, c)| &all[at..at + c.len_utf8()])
            .collect();
        for label in LABELS {
            assert_eq!(
                outcome(&bytes, label),
                whole,
                "{all} in single characters, {label}"
            );
            for (n, one) in cuts.iter().enumerate() {
                assert_eq!(
                    outcome(&[&all[..*one], &all[*one..]], label),
                    whole,
                    "{all} cut at {one}, {label}"
                );
                for two in &cuts[n + 1..] {
                    let cut = [&all[..*one], &all[*one..*two], &all[*two..]];
                    assert_eq!(outcome(&cut, label), whole, "{cut:?}, {label}");
                }
            }
        }
    }
}

#[test]
fn a_pair_of_surrogates_may_be_cut_where_another_call_begins() {
    let delta = |text: &str| {
        format!(r#"{{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"{text}"}}"#)
    };
    let lines = [
        START.to_owned(),
        delta(r#"{\"a\":1}{\"a\":\"\ud83d"#),
        delta(r#"\ude00\"}"#),
        STOP.to_owned(),
    ];
    let out = Collect::run(
        &mut Accumulate::new(Rc::new(AccumulateOptions::default())),
        lines,
    );
    assert!(
        out.iter()
            .any(|l| l.contains("\"arguments\":{\"a\":\"😀\"}")),
        "{out:?}"
    );
}

#[test]
fn a_retract_takes_back_what_followed_the_arguments_too() {
    for label in [r#""index":0"#, r#""tool_id":"a""#] {
        let two = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"a\":1}{\"a\":2}"}"#;
        let retract = format!(r#"{{"type":"retract",{label},"reason":"unparsed"}}"#);
        let again = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"b\":1}"}"#;
        let out = Collect::run(
            &mut Accumulate::new(Rc::new(AccumulateOptions::default())),
            [START, two, &retract, again, STOP],
        );
        let message = out.iter().find(|l| l.contains("\"message\":{")).unwrap();
        assert_eq!(message.matches("\"function\":{").count(), 1, "{message}");
        assert!(message.contains(
            r#""id":"a","type":"function","function":{"name":"f","arguments":"{\"b\":1}""#
        ));
    }
}
