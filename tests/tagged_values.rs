//! Values that hold closing markers, from the text of the model to the call that may run: in every
//! dialect that writes values without escapes, in one piece, split at every character, and cut at
//! every character.

use event::{Collect, Scanner};
use serde_json::{Value, json};
use std::rc::Rc;
use tag::{Dialect, PromptCall, Streams};
use testkit::places::{MARKUP, Sample};

const PLACE: &str = "the value";

/// The text of one call whose `text` is this value, as it is.
fn call(dialect: &Dialect, value: &str) -> String {
    let arguments = json!({"text": PLACE, "mode": "new"}).to_string();
    dialect
        .calls(&[PromptCall {
            id: "",
            name: "save",
            arguments: &arguments,
        }])
        .replacen(PLACE, value, 1)
}

/// The markers after that of the last parameter's value.
fn closers(dialect: &Dialect) -> Vec<String> {
    let text = dialect.calls(&[PromptCall {
        id: "",
        name: "save",
        arguments: &json!({ "text": PLACE }).to_string(),
    }]);
    let (_, tail) = text
        .split_once(PLACE)
        .expect("the value stands in the text");
    let start = ["]<]minimax[>[", "<|close|>", "<"]
        .into_iter()
        .find(|start| tail.contains(start))
        .unwrap_or("<");
    tail.split(start)
        .skip(2)
        .map(|rest| format!("{start}{}", rest.trim_end()))
        .collect()
}

/// The arguments of the calls that may run when a text comes in these pieces. `finish` is the
/// reason of the stream's end; without it the stream does not end.
fn runs(streams: &Streams, dialect: &str, pieces: &[&str], finish: Option<&str>) -> Vec<Value> {
    let text = json!({"type": "string"});
    let tools = json!([{"type": "function", "function": {"name": "save", "parameters":
        {"type": "object", "properties": {"text": text, "mode": text}}}}]);
    let mut lines = vec![
        json!({"type": "stream_start", "v": 1, "tools_mode": "tag", "dialect": dialect, "prefill": "",
        "tools": tools}),
    ];
    lines.extend(
        pieces
            .iter()
            .filter(|piece| !piece.is_empty())
            .map(|text| json!({"type": "content_delta", "text": text})),
    );
    lines.extend(finish.map(|reason| json!({"type": "stream_end", "finish_reason": reason})));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let mut scanner = Scanner::default();
    let mut parse = streams.begin(&scanner.read(&lines[0]).expect("an event"));
    let read = Collect::run(&mut parse, &lines);
    let mut accumulate =
        accumulate::Accumulate::new(Rc::new(accumulate::AccumulateOptions::default()));
    let events = Collect::run(&mut accumulate, &read);
    let events = events
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let calls = events.filter(|event| event["type"] == "tool_call" && event["error"].is_null());
    calls.map(|call| call["arguments"].clone()).collect()
}

#[test]
fn a_call_never_runs_with_a_part_of_its_value() {
    let streams = Streams::new(tag::TagOptions::default());
    let mut count = 0;
    let mut wrong = Vec::new();
    for dialect in Dialect::all()
        .iter()
        .filter(|d| call(d, "a\nb").contains("a\nb"))
    {
        count += 1;
        let closers = closers(dialect);
        let value = format!(
            "a {}\n{}\nb\n{}c",
            closers.join(" "),
            closers.join("\n"),
            closers.concat()
        );
        let text = call(dialect, &value);
        let want = json!({"text": value, "mode": "new"});
        for name in [dialect.name, "auto"] {
            let read = |pieces: &[&str], finish| runs(&streams, name, pieces, finish);
            let letters: Vec<&str> = text
                .char_indices()
                .map(|(at, c)| &text[at..at + c.len_utf8()])
                .collect();
            for pieces in [&letters[..], &[&text[..]]] {
                let got = read(pieces, Some("stop"));
                if got != [want.clone()] {
                    wrong.push(format!("{} as {name}: {text}\n{got:?}", dialect.name));
                }
            }
            // The tests of the crate `tag` cut the text for `auto` too.
            if name == "auto" {
                continue;
            }
            for at in Sample::NARROW.between(&text, MARKUP) {
                let got = read(&[&text[..at], &text[at..]], Some("stop"));
                if got != [want.clone()] {
                    wrong.push(format!(
                        "{} as {name}, split at {at}: {text}\n{got:?}",
                        dialect.name
                    ));
                }
                for finish in [Some("length"), None] {
                    let got = read(&[&text[..at]], finish);
                    if !(got.is_empty() || got == [want.clone()]) {
                        wrong.push(format!(
                            "{} as {name}, broken off ({finish:?}): {}\n{got:?}",
                            dialect.name,
                            &text[..at]
                        ));
                    }
                }
            }
        }
    }
    assert!(count >= 20, "only {count} dialects");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}
