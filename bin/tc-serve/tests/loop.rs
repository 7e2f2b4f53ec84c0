//! Tools that the service runs: what each front shows of them in each mode.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::service::agent::{Agent, Asking, FRONTS, TextCalls, Turn, session_of, tool};
use serde_json::{Value, json};
use std::process::Stdio;

const CHAT: Asking = FRONTS[1];
const RESPONSES: Asking = FRONTS[3];
const MESSAGES: Asking = FRONTS[5];
const EVENTS: Asking = FRONTS[6];

/// Each kind of thing of the turns before the last has a word of its own.
const MIDDLE: [&str; 5] = [
    "midtext",
    "midthought",
    "midargument",
    "midresult",
    "midprogress",
];

fn middle() -> (Vec<Value>, Vec<Turn>) {
    let look = tool(
        "look",
        "read",
        "echo midprogress; echo \"midresult $1\"",
        &Value::Null,
    );
    let turns = vec![
        Turn::default()
            .thinks("midthought")
            .then_says("midtext")
            .calls_text("call_a", "look", "midargument"),
        Turn::default()
            .thinks("midthought")
            .then_says("midtext")
            .calls_text("call_b", "look", "midargument")
            .calls_text("call_c", "look", "midargument"),
        Turn::says("It is sunny."),
    ];
    (vec![look], turns)
}

#[test]
fn auto_sends_nothing_of_the_middle_on_any_front() {
    let (tools, turns) = middle();
    for extras in [&["--mode", "auto"][..], &["--mode", "auto", "--extras"]] {
        let agent = Agent::new(&tools, turns.clone(), extras);
        for front in FRONTS {
            let answer = agent.ask(front, "Hi");
            assert_eq!(answer.status, 200, "{front:?} {answer:?}");
            let left: Vec<_> = MIDDLE
                .iter()
                .filter(|word| answer.body.contains(*word))
                .collect();
            assert!(left.is_empty(), "{front:?} {left:?} {}", answer.body);
            assert!(
                answer.body.contains("It is sunny."),
                "{front:?} {}",
                answer.body
            );
            for id in ["call_a", "call_b", "call_c"] {
                assert!(!answer.body.contains(id), "{front:?} {id} {}", answer.body);
            }
        }
    }
}

#[test]
fn standard_shows_each_step_where_the_api_has_a_form_for_it() {
    let (tools, turns) = middle();
    let agent = Agent::new(&tools, turns, &[]);
    for front in FRONTS {
        let body = agent.ask(front, "Hi").body;
        assert!(
            body.contains("It is sunny.") && body.contains("midtext"),
            "{front:?} {body}"
        );
        let shown = MIDDLE.iter().filter(|word| body.contains(*word)).count();
        let expected = match front.path {
            // Text and reasoning: the API has no calls that the server ran.
            "/v1/chat/completions" => 2,
            _ => 5,
        };
        assert_eq!(shown, expected, "{front:?} {body}");
    }
}

#[test]
fn pass_hands_every_call_to_the_client_and_runs_none() {
    let ran = tool("look", "read", "echo ran >>@/ran", &Value::Null);
    let turns = vec![Turn::says("Well.").calls_text("c1", "look", "x")];
    let agent = Agent::new(&[ran], turns, &["--mode", "pass"]);
    for front in FRONTS {
        let body = front.body("Hi", &json!({"tools": front.tools("look")}));
        let answer = agent.service.post(front.path, &body);
        assert!(answer.body.contains("look"), "{front:?} {answer:?}");
        assert!(!answer.body.contains("mcp"), "{front:?} {answer:?}");
    }
    assert_eq!(agent.folder.read("ran"), "");
    // The header sets the mode, too; an unknown mode is an error.
    let (tools, turns) = middle();
    let agent = Agent::new(&tools, turns, &[]);
    let ask = |mode: &str| {
        let headers = format!("{}x-toolpipe-mode: {mode}\r\n", testkit::JSON);
        agent
            .service
            .ask("POST", CHAT.path, &headers, &CHAT.body("Hi", &Value::Null))
    };
    assert!(ask("pass").body.contains("midtext"));
    assert!(!ask("auto").body.contains("midtext"));
    let wrong = ask("quick");
    assert!(
        wrong.status == 400 && wrong.body.contains("standard, auto, pass"),
        "{wrong:?}"
    );
}

#[test]
fn calls_of_the_clients_tools_stay_the_clients_and_their_results_go_on() {
    let look = tool("look", "read", "echo \"looked $1\"", &Value::Null);
    let turns = vec![
        Turn::says("Both.")
            .calls_text("c1", "look", "x")
            .calls_text("c2", "paint", "red"),
        Turn::says("It is red."),
    ];
    for mode in ["standard", "auto"] {
        let agent = Agent::new(
            std::slice::from_ref(&look),
            turns.clone(),
            &["--mode", mode],
        );
        let tools =
            json!([{"type": "function", "name": "paint", "parameters": {"type": "object"}}]);
        let body = json!({"model": "m", "input": "Hi", "tools": tools});
        let answer = agent.service.post("/v1/responses", &body.to_string());
        let first: Value = serde_json::from_str(&answer.body).unwrap();
        let kinds: Vec<&str> = first["output"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["type"].as_str())
            .collect();
        let expected: &[&str] = if mode == "auto" {
            &["message", "function_call"]
        } else {
            &["message", "mcp_call", "function_call"]
        };
        assert_eq!(kinds, expected, "{mode} {first:#}");
        let results =
            json!([{"type": "function_call_output", "call_id": "c2", "output": "painted"}]);
        let next = json!({"model": "m", "previous_response_id": first["id"], "input": results, "tools": tools});
        let answer = agent.service.post("/v1/responses", &next.to_string());
        assert!(answer.body.contains("It is red."), "{mode} {answer:?}");
        let asked = agent.model.asked();
        let last = &asked.last().unwrap().body;
        let results: Vec<_> = last["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool")
            .collect();
        assert_eq!(results.len(), 2, "{mode} {last:#}");
        assert!(
            last.to_string().contains("looked x") && last.to_string().contains("painted"),
            "{last:#}"
        );
    }
}

#[test]
fn a_result_may_be_the_answer_and_the_steps_have_an_end() {
    let answer = tool(
        "answer",
        "read",
        "echo \"the answer is $1\"",
        &json!({"return_directly": true}),
    );
    let turns = vec![Turn::says("Well.").calls_text("c1", "answer", "42")];
    for mode in ["standard", "auto"] {
        let agent = Agent::new(
            std::slice::from_ref(&answer),
            turns.clone(),
            &["--mode", mode],
        );
        for front in FRONTS {
            let got = agent.ask(front, "Hi");
            assert!(
                got.body.contains("the answer is 42"),
                "{mode} {front:?} {got:?}"
            );
        }
        assert_eq!(
            agent
                .model
                .asked()
                .iter()
                .filter(|asked| asked.method() == "POST" && asked.path().ends_with("completions"))
                .count(),
            FRONTS.len()
        );
    }
    let look = tool("look", "read", "echo more", &Value::Null);
    let turns = (0..9)
        .map(|at| Turn::says("More.").calls_text(&format!("c{at}"), "look", "x"))
        .collect();
    let agent = Agent::new(&[look], turns, &["--max-steps", "3"]);
    let answer = agent.ask(RESPONSES, "Hi");
    assert!(answer.body.contains("max_steps"), "{answer:?}");
    let events = agent.events(&session_of(&answer));
    let starts = events
        .iter()
        .filter(|event| event["type"] == "stream_start")
        .count();
    assert_eq!(
        (starts, events.last().unwrap()["status"].as_str()),
        (3, Some("failed"))
    );
}

#[test]
fn tools_that_fail_or_say_nothing_have_results_that_the_model_reads() {
    let fails = tool("fails", "read", "echo broken >&2; exit 3", &Value::Null);
    let silent = tool("silent", "read", ":", &Value::Null);
    let turns = vec![
        Turn::says("Try.")
            .calls_text("c1", "fails", "x")
            .calls_text("c2", "silent", "x")
            .calls_text("c3", "nothing", "x"),
        Turn::says("Never mind."),
    ];
    let agent = Agent::new(&[fails, silent], turns, &[]);
    let answer = agent.ask(RESPONSES, "Hi");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let calls: Vec<_> = body["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "mcp_call")
        .map(|item| {
            (
                item["name"].as_str().unwrap(),
                item["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("fails", "failed"),
            ("silent", "completed"),
            ("nothing", "failed")
        ],
        "{body:#}"
    );
    assert!(answer.body.contains("Never mind."));
    let results: Vec<Value> = agent
        .events(&session_of(&answer))
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    let failed = results
        .iter()
        .find(|result| result["tool_id"] == "c1")
        .unwrap();
    assert!(
        failed["output"].as_str().unwrap().contains("broken"),
        "{results:?}"
    );
    let answer = agent.ask(MESSAGES, "Hi").body;
    assert_eq!(
        (
            answer.matches("\"is_error\":true").count(),
            answer.matches("mcp_tool_result").count()
        ),
        (2, 3),
        "{answer}"
    );
}

#[test]
fn a_large_result_is_whole_on_the_events_and_a_piece_for_the_model() {
    let large = tool("large", "read", "seq 1 40000", &json!({"max_result": "1K"}));
    let turns = vec![
        Turn::says("Look.").calls_text("c1", "large", "x"),
        Turn::says("Long."),
    ];
    let agent = Agent::new(&[large], turns, &[]);
    let answer = agent.ask(EVENTS, "Hi");
    let events = testkit::events(&answer.body);
    let pieces: String = events
        .iter()
        .filter(|event| event["type"] == "tool_progress")
        .filter_map(|event| event["text"].as_str())
        .collect();
    let whole: String = (1..=40000).map(|number| format!("{number}\n")).collect();
    assert!(pieces == whole, "{} of {} bytes", pieces.len(), whole.len());
    let result = events
        .iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert!(result["output"].as_str().unwrap().len() < 2048, "{result}");
}

#[test]
fn an_upstream_that_fails_in_a_later_turn_fails_the_answer() {
    let look = tool("look", "read", "echo looked", &Value::Null);
    // The model has one turn: the provider answers the second request with 500.
    let agent = Agent::new(
        &[look],
        vec![Turn::says("Look.").calls_text("c1", "look", "x")],
        &["--retries", "0"],
    );
    for mode in ["standard", "auto"] {
        for front in FRONTS {
            let headers = format!("{}x-toolpipe-mode: {mode}\r\n", testkit::JSON);
            let answer = agent.service.ask(
                "POST",
                front.path,
                &headers,
                &front.body("Hi", &Value::Null),
            );
            assert!(answer.body.contains("error"), "{mode} {front:?} {answer:?}");
            assert!(
                answer.status >= 500 || front.streams || front.path == "/v1/responses",
                "{mode} {front:?} {answer:?}"
            );
            if answer.status == 200 && front.path == "/v1/responses" {
                assert!(
                    answer.body.contains("\"failed\""),
                    "{mode} {front:?} {answer:?}"
                );
            }
        }
    }
}

#[test]
fn options_of_tool_exec_reach_it() {
    let look = tool(
        "look",
        "read",
        "echo ran >>@/ran; echo looked",
        &Value::Null,
    );
    let turns = vec![
        Turn::says("Look.").calls_text("c1", "look", "x"),
        Turn::says("Done."),
    ];
    let policy = testkit::File::new(
        "policy.toml",
        "[[rule]]\ntool = \"look\"\nthen = \"deny\"\nreason = \"not today\"\n",
    );
    for (options, text) in [
        (&["--deny", "look"][..], "denied"),
        (&["--policy", policy.path()], "not today"),
        (&["--allow", "other"], "denied"),
    ] {
        let agent = Agent::new(std::slice::from_ref(&look), turns.clone(), options);
        let answer = agent.ask(EVENTS, "Hi");
        assert!(answer.body.contains(text), "{options:?} {answer:?}");
        assert_eq!(agent.folder.read("ran"), "", "{options:?}");
    }
}

#[test]
fn a_tools_file_that_cannot_be_used_is_one_line_at_the_start() {
    let folder = testkit::Scratch::new();
    folder.write("wrong.json", "{\"tools\": 7}");
    for (file, more) in [
        ("wrong.json", &["--sessions", "s"][..]),
        ("absent.json", &["--sessions", "s"]),
        ("wrong.json", &[]),
    ] {
        let mut command = std::process::Command::new(testkit::program("tc-serve"));
        command
            .current_dir(&*folder)
            .args([
                "--base-url",
                "http://127.0.0.1:9",
                "--listen",
                "127.0.0.1:0",
                "--tools",
                file,
            ])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ran = testkit::run(command);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
        if more.is_empty() {
            assert!(ran.stderr.contains("--sessions"), "{ran:?}");
        } else {
            assert!(
                ran.stderr.lines().count() == 1 && ran.stderr.contains(file),
                "{ran:?}"
            );
        }
    }
}
