//! The log that `tc-serve --tools` keeps of a run is the one of `react` with the same tools and
//! the same model's server, whatever front asks, in each mode.
//!
//! What differs, and why:
//! * the times (`t`, `timestamp`, durations);
//! * `session`, `response`, `request` and `response_end`, which only a service has;
//! * `tools` and `prefill` of `stream_start`: each has its own tools file, and the service knows the
//!   end of the prompt where the provider has native calls (`bin/tc-serve/src/pipe.rs`);
//! * the pieces in which a call is written (`tool_call_delta`) and the word `commit` of a call: `react`
//!   runs a call once its brackets are balanced, and takes it back if more follows; nobody can take
//!   back what a client of a front has seen, so the service waits until the provider has closed the
//!   call (`sealed`, `bin/tc-serve/src/http/service.rs`);
//! * the id of a call whose provider gives an id of an earlier turn again: the service makes a new one,
//!   since clients throw on a second call of one id (not in this test);
//! * the order in which calls of one turn start and end;
//! * the pieces in which the output of a call is written (`tool_progress`): `tool-exec` records a result
//!   in the log at once, so that pieces that wait for the reader of its standard output come behind it;
//! * a call that is closed by the end of the stream comes behind the counts of the stream.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::service;
use crate::service::agent::{Agent, FRONTS, TextCalls, Turn, model, tool};
use serde_json::{Value, json};

fn tools() -> Value {
    json!([
        tool(
            "look",
            "read",
            "echo one; echo two; echo \"$1\"",
            &Value::Null
        ),
        tool("put", "write", "echo \"put $1\"", &Value::Null),
        tool("fails", "read", "echo broken >&2; exit 3", &Value::Null),
        tool("silent", "read", ":", &Value::Null)
    ])
}

fn turns() -> Vec<Turn> {
    vec![
        Turn::default()
            .thinks("Hm, the lake.")
            .then_says("Let me see.")
            .calls_text("c1", "look", "here"),
        Turn::says("And then.")
            .calls_text("c2", "put", "it")
            .calls_text("c3", "fails", "x")
            .calls_text("c4", "silent", "x"),
        // One of the tools is not there.
        Turn::default()
            .calls_text("c6", "look", "again")
            .calls_text("c5", "nothing", "x"),
        Turn::says("It is sunny."),
    ]
}

/// The events without what differs: those of each turn in order, and behind them those of its calls
/// by their ids, since calls of one turn start and end in any order.
fn bare(events: Vec<Value>) -> Vec<Value> {
    let own = [
        "session",
        "response",
        "request",
        "response_end",
        "tool_call_delta",
        "details",
    ];
    let runs = ["tool_use", "tool_progress", "tool_result", "session_stats"];
    let mut turns = vec![(Vec::new(), Vec::<Value>::new())];
    for event in events {
        let kind = event["type"].as_str().unwrap().to_owned();
        if own.contains(&&*kind) {
            continue;
        }
        if kind == "stream_start" {
            turns.push(Default::default());
        }
        let event = without_times(event);
        let (rest, calls) = turns.last_mut().unwrap();
        if !runs.contains(&&*kind) {
            rest.push(event);
            continue;
        }
        // Output comes in pieces of any length, before and behind the result.
        let before = calls
            .iter_mut()
            .filter(|_| kind == "tool_progress")
            .find(|before| {
                before["type"] == "tool_progress" && before["tool_id"] == event["tool_id"]
            });
        match before {
            Some(before) => {
                let [first, next] = [&*before, &event].map(|event| event["text"].as_str().unwrap());
                let joined = format!("{first}{next}");
                before["text"] = joined.into();
            }
            None => calls.push(event),
        }
    }
    let ordered = turns.into_iter().flat_map(|(rest, mut calls)| {
        let place = |event: &Value| runs.iter().position(|kind| event["type"] == *kind);
        calls.sort_by_key(|event| (event["tool_id"].to_string(), place(event)));
        rest.into_iter().chain(calls)
    });
    ordered.collect()
}

fn without_times(mut event: Value) -> Value {
    let members = event.as_object_mut().unwrap();
    members.retain(|name, _| {
        !["t", "timestamp", "tools", "prefill", "commit"].contains(&name.as_str())
            && !name.ends_with("_ms")
    });
    event
}

/// The log of react.
fn of_react() -> Vec<Value> {
    let folder = testkit::Scratch::new();
    folder.write("tools.json", tools().to_string());
    let server = model(turns());
    let script = format!(
        "react --tools {0}/tools.json --log {0}/log --base-url {1} --model m --progress --plain Hi",
        folder.display(),
        server.url
    );
    let mut command = testkit::bash(&script, testkit::root());
    command
        .env("OPENAI_API_KEY", "sk-x")
        .stdin(std::process::Stdio::null());
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let ran = testkit::run(command);
    assert_eq!(ran.status, 0, "{ran:?}");
    bare(testkit::events(&folder.read("log")))
}

#[test]
fn each_front_in_each_mode_keeps_the_log_of_react() {
    let expected = of_react();
    for mode in ["standard", "auto"] {
        let agent = Agent::of(&tools(), model(turns()), &["--mode", mode]);
        for front in FRONTS {
            let headers = format!("{}x-session-id: {front:?}\r\n", testkit::JSON);
            let answer = agent.service.ask(
                "POST",
                front.path,
                &headers,
                &front.body("Hi", &Value::Null),
            );
            assert!(
                answer.body.contains("It is sunny."),
                "{mode} {front:?} {answer:?}"
            );
            let session = service::agent::session_of(&answer);
            let got = bare(agent.events(&session));
            for (at, (want, got)) in expected.iter().zip(&got).enumerate() {
                assert_eq!(want, got, "{mode} {front:?}: event {at}");
            }
            assert_eq!(expected.len(), got.len(), "{mode} {front:?}: {got:#?}");
        }
    }
}

/// In mode `pass` the client runs the calls: its log is that of `llm-stream`, and the first turn has
/// the same events as that of react up to its calls.
#[test]
fn passed_turns_have_the_events_of_reacts_first_turn() {
    let expected = of_react();
    let end = expected
        .iter()
        .position(|event| event["type"] == "tool_call")
        .unwrap();
    let agent = Agent::of(&tools(), model(turns()), &["--mode", "pass"]);
    for front in FRONTS {
        let headers = format!("{}x-session-id: {front:?}\r\n", testkit::JSON);
        let body = front.body("Hi", &json!({"tools": front.tools("look")}));
        let answer = agent.service.ask("POST", front.path, &headers, &body);
        let got = bare(agent.events(&service::agent::session_of(&answer)));
        let at = got
            .iter()
            .position(|event| event["type"] == "tool_call")
            .unwrap();
        assert_eq!(got[..=at], expected[..=end], "{front:?}");
    }
}
