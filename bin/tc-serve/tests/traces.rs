//! Traces: the span that a client names, the context that the provider and COMMAND receive, and
//! `--otlp-file`.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::agent::{Agent, TextCalls, Turn, tool};
use crate::service::{JSON, Service, provider, streamed};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use testkit::{Scratch, Server};

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const HI: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn model() -> Server {
    provider(|_, _, stream| {
        let _ = stream.write_all(&streamed("Hello"));
        false
    })
}

/// The spans of each line of a file of traces.
fn traces(file: &Path) -> Vec<Vec<Value>> {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let spans = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let spans = &line["resourceSpans"][0]["scopeSpans"][0]["spans"];
        spans.as_array().unwrap().clone()
    };
    text.lines().map(spans).collect()
}

fn named<'s>(spans: &'s [Value], name: &str) -> Vec<&'s Value> {
    let is_it = |span: &&Value| span["name"].as_str().unwrap().starts_with(name);
    spans.iter().filter(is_it).collect()
}

fn attribute<'s>(span: &'s Value, key: &str) -> &'s Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == key);
    let value = found.unwrap_or_else(|| panic!("no {key}: {span}"))["value"].as_object();
    value.unwrap().values().next().unwrap()
}

fn ended(service: Service) -> String {
    service.signal(Signal::TERM);
    service.ended().1
}

#[test]
fn the_provider_gets_the_span_that_the_trace_has() {
    let (model, folder) = (model(), Scratch::new());
    let file = folder.path("trace.jsonl");
    let service = Service::of(&model.url, &["--otlp-file", file.to_str().unwrap()]);
    let headers = format!("traceparent: {CLIENT}\r\ntracestate: rojo=1,congo=2\r\n{JSON}");
    let answer = service.ask("POST", "/v1/chat/completions", &headers, HI);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(ended(service).matches("trace").count(), 0);
    let asked = model.asked();
    let sent = asked[0].header("traceparent").unwrap();
    assert_eq!(asked[0].header("tracestate"), Some("rojo=1,congo=2"));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let traces = traces(&file);
    assert_eq!(traces.len(), 1);
    let [agent, chat] = &traces[0][..] else {
        panic!("{traces:?}");
    };
    assert_eq!(agent["name"], "invoke_agent");
    assert_eq!(agent["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(chat["parentSpanId"], agent["spanId"]);
    for span in [agent, chat] {
        assert_eq!(span["traceId"], TRACE);
        assert!(span.get("status").is_none(), "{span}");
    }
    let id = chat["spanId"].as_str().unwrap();
    assert_eq!(sent, format!("00-{TRACE}-{id}-01"));
    assert_eq!(attribute(agent, "toolpipe.front"), "openai-chat");
    assert!(attribute(chat, "gen_ai.response.time_to_first_chunk").is_number());
}

#[test]
fn a_span_that_is_not_valid_is_ignored_and_none_is_made_unless_traces_are_written() {
    let (model, folder) = (model(), Scratch::new());
    let file = folder.path("trace.jsonl");
    let invalid = "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01";
    let headers = [
        JSON.to_owned(),
        format!("traceparent: {invalid}\r\ntracestate: rojo=1\r\n{JSON}"),
        format!("traceparent: {CLIENT}\r\ntraceparent: {CLIENT}\r\n{JSON}"),
    ];
    for options in [&[][..], &["--otlp-file", file.to_str().unwrap()]] {
        let service = Service::of(&model.url, options);
        for headers in &headers {
            let answer = service.ask("POST", "/v1/messages", headers, HI);
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        ended(service);
        let asked = model.asked();
        assert_eq!(asked.len(), 3);
        assert!(
            asked
                .iter()
                .all(|asked| asked.header("tracestate").is_none())
        );
        let sent = asked.iter().map(|asked| asked.header("traceparent"));
        if options.is_empty() {
            assert!(sent.flatten().next().is_none());
            continue;
        }
        let sent: Vec<String> = sent.map(|sent| sent.unwrap().to_owned()).collect();
        let traces = traces(&file);
        let own = traces.iter().map(|spans| {
            let chat = named(spans, "chat")[0];
            assert!(spans[0].get("parentSpanId").is_none());
            assert_ne!(chat["traceId"], TRACE);
            let [trace, id] = ["traceId", "spanId"].map(|key| chat[key].as_str().unwrap());
            format!("00-{trace}-{id}-01")
        });
        assert_eq!(own.collect::<Vec<_>>(), sent);
    }
}

#[test]
fn a_session_has_the_trace_that_the_file_got() {
    // Each of the two tools waits for the other, so that they overlap.
    let tools = [
        tool("left", "read", "echo x >@/pipe; echo left", &Value::Null),
        tool("right", "read", "cat <@/pipe >&2; exit 3", &Value::Null),
    ];
    let turns = vec![
        Turn::says("Both.")
            .calls_text("a", "left", "x")
            .calls_text("b", "right", "x"),
        Turn::says("Done."),
    ];
    let traces_folder = Scratch::new();
    let file = traces_folder.path("trace.jsonl");
    let agent = Agent::new(
        &tools,
        turns,
        &["--otlp-file", file.to_str().unwrap(), "--mode", "auto"],
    );
    let made = Command::new("mkfifo")
        .arg(agent.folder.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let headers = format!("traceparent: {CLIENT}\r\n{JSON}");
    let body = json!({"model": "m", "input": "Both, please."}).to_string();
    let Agent {
        folder,
        model,
        service,
        ..
    } = agent;
    let answer = service.ask("POST", "/v1/responses", &headers, &body);
    assert!(answer.body.contains("Done."), "{}", answer.body);
    ended(service);
    let sessions = testkit::folders(&folder.path("sessions"));
    let (_, sessions) = sessions.iter().find(|(name, _)| name.len() == 2).unwrap();
    let session = std::fs::read_dir(sessions)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let shown = |options: &[&str]| {
        let mut view = Command::new(testkit::program("tc-view"));
        view.args(["--format", "otlp"]).args(options);
        String::from_utf8(view.arg(session.path()).output().unwrap().stdout).unwrap()
    };
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(shown(&[]), written);
    assert!(!written.contains("please") && shown(&["--contents"]).contains("Both, please."));
    let traces = traces(&file);
    let spans = &traces[0];
    assert_eq!((traces.len(), spans.len()), (1, 5), "{spans:?}");
    assert_eq!(spans[0]["parentSpanId"], "00f067aa0ba902b7");
    let sent: Vec<String> = model
        .asked()
        .iter()
        .map(|asked| asked.header("traceparent").unwrap().to_owned())
        .collect();
    let chats = named(spans, "chat");
    let ids = chats
        .iter()
        .map(|chat| format!("00-{TRACE}-{}-01", chat["spanId"].as_str().unwrap()));
    assert_eq!(ids.collect::<Vec<_>>(), sent);
    let tools = named(spans, "execute_tool");
    let times = |span: &Value| {
        ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|key| span[key].as_str().unwrap().parse::<u64>().unwrap())
    };
    let [a, b] = [times(tools[0]), times(tools[1])];
    assert!(a[0] <= b[1] && b[0] <= a[1], "{a:?} {b:?}");
    let failed: Vec<&Value> = spans
        .iter()
        .filter(|span| span.get("status").is_some())
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["name"], "execute_tool right");
    assert_eq!(attribute(failed[0], "error.type"), "error");
    let log = std::fs::read_to_string(session.path()).unwrap();
    let uses = log.lines().filter(|line| line.contains("\"tool_use\""));
    let known = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let span = line["traceparent"].as_str().unwrap()[36..52].to_owned();
        tools.iter().any(|tool| tool["spanId"] == span)
    };
    assert_eq!(uses.filter(|line| known(line)).count(), 2);
}

#[test]
fn a_command_gets_the_span_in_its_environment() {
    let folder = Scratch::new();
    let file = folder.path("variables");
    let script = format!(
        "cat >/dev/null; echo \"$TRACEPARENT $TRACESTATE\" >>{}; echo '{{\"type\":\"content_delta\",\"text\":\"x\"}}'; \
         echo '{{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}}'",
        file.display()
    );
    let service = Service::new(&["--no-key", "--", &script]);
    for headers in [
        JSON.to_owned(),
        format!("traceparent: {CLIENT}\r\ntracestate: rojo=1\r\n{JSON}"),
    ] {
        let answer = service.ask("POST", "/v1/chat/completions", &headers, HI);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let variables = std::fs::read_to_string(&file).unwrap();
    let [without, with] = variables.lines().collect::<Vec<_>>()[..] else {
        panic!("{variables}");
    };
    assert_eq!(without, " ");
    assert!(
        with.starts_with(&format!("00-{TRACE}-")) && with.ends_with("-01 rojo=1"),
        "{with}"
    );
    assert!(!with.contains("00f067aa0ba902b7"), "{with}");
}

#[test]
fn a_full_disk_is_one_warning_and_no_answer_notices() {
    let model = model();
    let service = Service::of(&model.url, &["--otlp-file", "/dev/full"]);
    for _ in 0..3 {
        let answer = service.post("/v1/chat/completions", HI);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let errors = ended(service);
    assert_eq!(errors.matches("traces are dropped").count(), 1, "{errors}");
}

#[test]
fn no_line_is_written_in_part() {
    let (model, folder) = (model(), Scratch::new());
    let file = folder.path("trace.jsonl");
    let path = file.display().to_string();
    let service = Service::limited(&["--base-url", &model.url, "--otlp-file", &path]);
    let ask = || service.post("/v1/chat/completions", HI).status;
    assert_eq!(ask(), 200);
    testkit::wait_until("a line", || std::fs::metadata(&file).unwrap().len() > 0);
    let length = std::fs::metadata(&file).unwrap().len();
    service.limit(Some(length + 100));
    assert_eq!(ask(), 200);
    let errors = ended(service);
    assert_eq!(errors.matches("traces are dropped").count(), 1, "{errors}");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), length);
    assert_eq!(traces(&file).len(), 1);
}

#[test]
fn a_client_that_leaves_ends_its_trace_as_cancelled() {
    let (reading, read) = std::sync::mpsc::channel();
    let model = provider(move |_, _, stream| {
        let _ = stream.write_all(&streamed("Hello")[..200]);
        let _ = reading.send(());
        let mut rest = Vec::new();
        // Until the service closes the connection.
        let _ = std::io::Read::read_to_end(stream, &mut rest);
        false
    });
    let folder = Scratch::new();
    let file = folder.path("trace.jsonl");
    let service = Service::of(&model.url, &["--otlp-file", file.to_str().unwrap()]);
    let client = service.send("POST", "/v1/chat/completions", JSON, HI);
    read.recv().unwrap();
    drop(client);
    testkit::wait_until("a line", || std::fs::metadata(&file).unwrap().len() > 0);
    let traces = traces(&file);
    assert_eq!(attribute(&traces[0][0], "error.type"), "cancelled");
    assert_eq!(traces[0][0]["status"]["code"], 2);
}

#[test]
fn an_answer_that_a_killed_service_left_has_its_trace_when_it_is_ended() {
    let model = provider(|_, _, stream| {
        let body = streamed("Hello");
        // Sends the text, but never ends the answer.
        let _ = stream.write_all(&body[..body.len() - 60]);
        let mut rest = Vec::new();
        // Until the service is gone.
        let _ = std::io::Read::read_to_end(stream, &mut rest);
        false
    });
    let folder = Scratch::new();
    let [file, sessions] = ["trace.jsonl", "sessions"].map(|name| folder.path(name));
    let options = [
        "--otlp-file",
        file.to_str().unwrap(),
        "--sessions",
        sessions.to_str().unwrap(),
    ];
    let service = Service::of(&model.url, &options);
    let headers = format!("traceparent: {CLIENT}\r\n{JSON}");
    let body = json!({"model": "m", "input": "Hi", "stream": true}).to_string();
    let mut client = service.send("POST", "/v1/responses", &headers, &body);
    let begun = client.until("output_text.delta").body;
    let id = begun
        .split("\"id\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    service.signal(Signal::KILL);
    service.ended();
    assert_eq!(traces(&file).len(), 0);
    let service = Service::of(&model.url, &options);
    let answer = service.ask("GET", &format!("/v1/responses/{id}"), JSON, "");
    assert!(answer.body.contains("\"failed\""), "{}", answer.body);
    ended(service);
    let traces = traces(&file);
    let [agent, chat] = &traces[0][..] else {
        panic!("{traces:?}");
    };
    assert_eq!(agent["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(attribute(agent, "error.type"), "interrupted");
    assert_eq!(attribute(chat, "error.type"), "interrupted");
}
