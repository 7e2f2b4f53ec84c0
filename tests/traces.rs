//! The trace of a whole run of `react` under a `TRACEPARENT`: its spans are those that the
//! conventions ask for, and the model's server has received their ids.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::service::agent::{TextCalls, Turn, model, tool};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use testkit::Scratch;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn text<'s>(span: &'s Value, key: &str) -> &'s str {
    span[key].as_str().unwrap_or_default()
}

fn times(span: &Value) -> (u64, u64) {
    let time = |key| text(span, key).parse().unwrap();
    (time("startTimeUnixNano"), time("endTimeUnixNano"))
}

fn attribute(span: &Value, key: &str) -> Option<String> {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == key)?;
    let value = found["value"].as_object().unwrap().values().next().unwrap();
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    )
}

fn piped(mut command: Command) -> testkit::Ran {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    testkit::run(command)
}

#[test]
fn a_run_of_react_has_the_spans_of_the_conventions() {
    let folder = Scratch::new();
    // Each of the two tools waits for the other, so that they overlap.
    let pipe = folder.path("pipe").display().to_string();
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let tools = json!([
        tool("left", "read", &format!("echo x >{pipe}"), &Value::Null),
        tool(
            "right",
            "read",
            &format!("cat <{pipe} >&2; exit 3"),
            &Value::Null
        ),
    ]);
    folder.write("tools.json", tools.to_string());
    let server = model(vec![
        Turn::says("Both.")
            .calls_text("a", "left", "x")
            .calls_text("b", "right", "x"),
        Turn::says("It is sunny."),
    ]);
    let script = format!(
        "react --tools {0}/tools.json --log {0}/log --base-url {1} --model m --plain Hi",
        folder.display(),
        server.url
    );
    let mut react = testkit::bash(&script, testkit::root());
    react
        .env("OPENAI_API_KEY", "sk-x")
        .env("TRACEPARENT", CALLER)
        .env("TRACESTATE", "rojo=1");
    let ran = piped(react);
    assert_eq!(ran.status, 0, "{ran:?}");
    let trace = || {
        let mut view = Command::new(testkit::program("tc-view"));
        view.args(["--format", "otlp"]).arg(folder.path("log"));
        piped(view).stdout
    };
    let line = trace();
    assert_eq!(line, trace(), "two runs of one log");
    assert_eq!(line.lines().count(), 1, "{line}");
    let line: Value = serde_json::from_str(&line).unwrap();
    let spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let mut names: Vec<&str> = spans.iter().map(|span| text(span, "name")).collect();
    names[2..4].sort_unstable();
    assert_eq!(
        names,
        [
            "invoke_agent",
            "chat m",
            "execute_tool left",
            "execute_tool right",
            "chat m"
        ]
    );
    let agent = &spans[0];
    assert_eq!(text(agent, "parentSpanId"), "00f067aa0ba902b7");
    for span in spans {
        assert_eq!(text(span, "traceId"), TRACE);
        let is_model = text(span, "name") == "chat m";
        assert_eq!(span["kind"], if is_model { 3 } else { 1 });
        let has = |key: &str| attribute(span, key).is_some();
        assert!(has("gen_ai.operation.name"), "{span}");
        assert_eq!(is_model, has("gen_ai.response.id"), "{span}");
        assert_eq!(
            text(span, "name").contains("tool"),
            has("gen_ai.tool.call.id"),
            "{span}"
        );
        if span == agent {
            continue;
        }
        assert_eq!(span["parentSpanId"], agent["spanId"]);
        let ((start, end), (first, last)) = (times(span), times(agent));
        assert!(
            first <= start && start <= end && end <= last,
            "{span} {agent}"
        );
    }
    let failed = spans.iter().filter(|span| span.get("status").is_some());
    let failed: Vec<_> = failed
        .map(|span| (text(span, "name"), attribute(span, "error.type")))
        .collect();
    assert_eq!(failed, [("execute_tool right", Some("error".to_owned()))]);
    let (left, right) = (times(&spans[2]), times(&spans[3]));
    assert!(left.0 <= right.1 && right.0 <= left.1, "{left:?} {right:?}");
    // The requests have carried the ids of these spans.
    for (asked, chat) in server.asked().iter().zip([&spans[1], &spans[4]]) {
        let sent = format!("00-{TRACE}-{}-01", text(chat, "spanId"));
        assert_eq!(asked.header("traceparent"), Some(&*sent));
        assert_eq!(asked.header("tracestate"), Some("rojo=1"));
    }
}
