//! What `testkit` scripts as a model's answer is what the decoders read of the real APIs, and what
//! goes back of it is what these take.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use accumulate::Accumulate;
use event::Collect;
use serde_json::{Value, json};
use std::rc::Rc;
use testkit::{Protocol, Turn};
use toolpipe_api::{Api, Stream, StreamOptions};

fn events(api: Api, body: &str) -> Vec<Value> {
    let mut out = Collect::default();
    Stream::new(api, StreamOptions::default()).whole(body.as_bytes(), &mut out);
    let lines = Collect::run(&mut Accumulate::new(Rc::default()), &out.lines);
    let lines = lines.iter();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_turn_is_read_from_every_api_with_its_tokens_and_without_a_warning() {
    let words = || {
        Turn::default()
            .thinks("Hm")
            .thinks("m.")
            .then_says("Hel")
            .then_says("lo")
    };
    let calling = words()
        .calls("call_a1", "f", &json!({"city": "Zürich"}))
        .calls("call_a2", "g", &json!({}));
    for (name, protocol) in Protocol::ALL {
        let api = Api::from_name(name).unwrap();
        for (turn, reason) in [
            (words(), "stop"),
            (calling.clone(), "tool_calls"),
            (words().finish("length"), "length"),
        ] {
            for body in [turn.stream(protocol), turn.whole(protocol)] {
                let events = events(api, &body);
                let find = |kind: &str| {
                    let mut found = events.iter().filter(move |event| event["type"] == kind);
                    (found.next().cloned().unwrap_or_default(), found.count())
                };
                let shown = format!("{name}: {body}\n{events:#?}");
                for kind in ["warning", "error"] {
                    assert_eq!(find(kind).0, Value::Null, "{shown}");
                }
                let (end, _) = find("stream_end");
                assert_eq!(end["finish_reason"], reason, "{shown}");
                let (usage, more) = find("session_stats");
                assert_eq!(
                    (&usage["prompt_tokens"], &usage["completion_tokens"], more),
                    (&json!(9), &json!(3), 0),
                    "{shown}"
                );
                let (message, _) = find("message");
                let message = &message["message"];
                assert_eq!(message["content"], "Hello", "{shown}");
                let (thinking, _) = find("thinking");
                let has_thinking =
                    message.to_string().contains("Hmm.") || thinking["text"] == "Hmm.";
                assert!(has_thinking, "{shown}");
                let calls = message["tool_calls"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                let calls: Vec<&Value> = calls.iter().map(|call| &call["function"]).collect();
                let want = [
                    json!({"name": "f", "arguments": "{\"city\":\"Zürich\"}"}),
                    json!({"name": "g", "arguments": "{}"}),
                ];
                let want: Vec<&Value> = want.iter().filter(|_| reason == "tool_calls").collect();
                assert_eq!(calls, want, "{shown}");
            }
        }
    }
}
