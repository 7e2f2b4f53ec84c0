//! A `request` event on standard input: what a client of `tc-serve` asks for.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::{Value, json};

const REQUEST: &str = r#"{"type":"request","api":"openai-chat","model":"theirs","tools":[{"type":"function","function":{"name":"f","description":"F.","parameters":{"type":"object","properties":{}}}}],"tool_choice":"f","params":{"max_completion_tokens":50,"temperature":0.5,"stop":"END","logit_bias":{"1":2}},"streams":false}"#;

const QUESTION: &str = r#"{"type":"message","message":{"role":"user","content":"one"}}"#;

/// What would be sent for a log of these lines.
fn dry(args: &[&str], lines: &[&str]) -> Ran {
    let mut command = command(&["--dry-run"]);
    command.args(args);
    run_with(command, &(lines.join("\n") + "\n"))
}

fn body(args: &[&str], lines: &[&str]) -> Value {
    let ran = dry(args, lines);
    assert_eq!(ran.status, 0, "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn what_is_left_open_is_taken_from_the_event() {
    let chat = body(&[], &[REQUEST, QUESTION]);
    assert_eq!(
        (&chat["model"], &chat["temperature"], &chat["stop"]),
        (&json!("theirs"), &json!(0.5), &json!("END"))
    );
    assert_eq!(chat["tools"][0]["function"]["name"], "f");
    assert_eq!(
        chat["tool_choice"],
        json!({"type": "function", "function": {"name": "f"}})
    );
    assert_eq!(
        chat["messages"],
        json!([{"role": "user", "content": "one"}])
    );
    // Whether the answer is a stream is this command's own choice.
    assert_eq!(
        (
            &chat["stream"],
            &body(&["--no-stream"], &[REQUEST, QUESTION])["stream"]
        ),
        (&json!(true), &Value::Null)
    );
    let claude = body(&["--api", "anthropic"], &[REQUEST, QUESTION]);
    assert_eq!(
        (&claude["max_tokens"], &claude["stop_sequences"]),
        (&json!(50), &json!(["END"]))
    );
    assert_eq!(claude["tool_choice"], json!({"type": "tool", "name": "f"}));
    let gemini = body(&["--api", "gemini"], &[REQUEST, QUESTION]);
    assert_eq!(
        gemini["generationConfig"],
        json!({"maxOutputTokens": 50, "temperature": 0.5, "stopSequences": ["END"]})
    );
}

#[test]
fn another_server_gets_the_older_name_of_the_most_tokens() {
    let claude = r#"{"type":"request","api":"anthropic","model":"m","params":{"max_tokens":50}}"#;
    let openai = body(&[], &[claude, QUESTION]);
    assert_eq!(
        (&openai["max_completion_tokens"], openai.get("max_tokens")),
        (&json!(50), None)
    );
    let other = body(&["--base-url", "http://127.0.0.1:9"], &[claude, QUESTION]);
    assert_eq!(
        (&other["max_tokens"], other.get("max_completion_tokens")),
        (&json!(50), None)
    );
    let chat = body(&["--base-url", "http://127.0.0.1:9"], &[REQUEST, QUESTION]);
    assert_eq!(chat["max_completion_tokens"], 50);
}

#[test]
fn what_was_typed_wins() {
    let tools = File::new("request-tools.json", r#"[{"name":"g"}]"#);
    let typed = body(
        &[
            "--model",
            "mine",
            "--tools",
            tools.path(),
            "--param",
            "temperature=1",
            "--param",
            "stop=null",
        ],
        &[REQUEST, QUESTION],
    );
    assert_eq!(
        (&typed["model"], &typed["temperature"], &typed["stop"]),
        (&json!("mine"), &json!(1), &Value::Null)
    );
    assert_eq!(
        (
            typed["tools"].as_array().unwrap().len(),
            &typed["tools"][0]["function"]["name"]
        ),
        (1, &json!("g"))
    );
    // The choice names a tool that is not offered.
    assert_eq!(
        (typed.get("tool_choice"), &typed["max_completion_tokens"]),
        (None, &json!(50))
    );
    let chosen = body(
        &["--tools", tools.path(), "--tool-choice", "none"],
        &[REQUEST, QUESTION],
    );
    assert_eq!(chosen["tool_choice"], "none");
}

#[test]
fn an_event_that_was_changed_on_its_way_is_read_as_far_as_it_can_be() {
    let jq = r#"{"type":"request","api":"robot","model":"m","tools":[{"name":"g","input_schema":{"type":"object"}},{"name":"two words"}],"tool_choice":{"type":"tool","name":"g"},"params":[]}"#;
    let read = dry(&["--verbose"], &[REQUEST, jq, QUESTION]);
    let sent: Value = serde_json::from_str(&read.stdout).unwrap();
    // The last one counts.
    assert_eq!(
        (&sent["model"], &sent["tool_choice"]["function"]["name"]),
        (&json!("m"), &json!("g"))
    );
    assert_eq!(sent.get("temperature"), None);
    for note in [
        "api: not known",
        "\"two words\" cannot be used",
        "params: not an object",
    ] {
        assert!(read.stderr.contains(note), "{note}: {read:?}");
    }
    let read = dry(&["--verbose", "--api", "anthropic"], &[REQUEST, QUESTION]);
    assert!(
        read.stderr
            .contains("left out, since anthropic has no such parameter: logit_bias"),
        "{read:?}"
    );
}

#[test]
fn a_model_that_nobody_names_is_reported() {
    for lines in [
        &[r#"{"type":"request","params":{}}"#, QUESTION][..],
        &[QUESTION],
    ] {
        for args in [&["--dry-run"][..], &[]] {
            let ran = run_with(command(args), &(lines.join("\n") + "\n"));
            assert_eq!(
                (ran.status, ran.stderr.lines().count(), ran.stdout.as_str()),
                (2, 1, ""),
                "{ran:?}"
            );
            assert!(
                ran.stderr.contains("no model") && ran.stderr.contains("--model"),
                "{ran:?}"
            );
        }
    }
}

#[test]
fn an_event_that_is_too_long_is_not_left_out() {
    let long = REQUEST.replace("F.", &"F".repeat(5000));
    let ran = dry(&["--max-line", "2000", "--model", "m"], &[&long, QUESTION]);
    assert!(
        ran.status == 2 && ran.stderr.contains("raise --max-line"),
        "{ran:?}"
    );
}

#[test]
fn the_stream_has_the_tools_of_the_event() {
    for (lines, mode, tools) in [
        (&[REQUEST, QUESTION][..], "native", 1),
        // So a filter behind it takes no name in the text for a call.
        (
            &[r#"{"type":"request","model":"m"}"#, QUESTION],
            "native",
            0,
        ),
    ] {
        let server = Server::of_provider(vec![answer("200 OK", SSE, chat(&["Hi"]))]);
        let mut command = command(&["--base-url", &server.url]);
        command.env("OPENAI_API_KEY", "k");
        let ran = run_with(command, &(lines.join("\n") + "\n"));
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
        let start = ran.event("stream_start");
        assert_eq!(
            (
                &start["tools_mode"],
                start["tools"].as_array().unwrap().len()
            ),
            (&json!(mode), tools),
            "{start}"
        );
        assert_eq!(server.asked()[0].body.get("tools").is_some(), tools > 0);
    }
    let server = Server::of_provider(vec![answer("200 OK", SSE, chat(&["Hi"]))]);
    let ran = run_with(
        command(&["--base-url", &server.url, "--tools-mode", "tag"]),
        &format!("{REQUEST}\n{QUESTION}\n"),
    );
    let asked = server.asked().remove(0).body;
    assert!(
        asked.get("tools").is_none()
            && asked["messages"][0]["content"]
                .as_str()
                .unwrap()
                .contains("F."),
        "{asked}"
    );
    assert_eq!(ran.event("stream_start")["tools_mode"], "tag");
}

#[test]
fn a_model_that_leads_to_another_path_is_refused() {
    let request = |model: &str| format!(r#"{{"type":"request","model":"{model}"}}"#);
    for model in ["../../admin/keys?x=#", "models/..", "%2e%2e"] {
        let ran = dry(&["--api", "gemini"], &[&request(model), QUESTION]);
        assert!(
            ran.status == 2 && ran.stderr.contains("not the name of a model"),
            "{model}: {ran:?}"
        );
        assert_eq!(
            dry(&["--api", "openai-chat"], &[&request(model), QUESTION]).status,
            0
        );
    }
}
