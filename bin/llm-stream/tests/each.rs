//! `--each`: every line of standard input is a question of its own.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use testkit::Conversation;

/// The text of the last message of a request.
fn question(request: &Request) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A model that repeats the question.
fn echo() -> Server {
    Server::answering(|_, request, stream| {
        stream.answer(request, &Turn::says(&format!("<{}>", question(request))));
        false
    })
}

/// The events of a stream.
fn of<'r>(events: &'r [Value], name: &str) -> Vec<&'r Value> {
    events.iter().filter(|e| e["stream"] == name).collect()
}

/// The types of the events of a stream, and the text of its answer.
fn told(events: &[Value], name: &str) -> (String, String) {
    let events = of(events, name);
    let types: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    let deltas = events.iter().filter(|e| e["type"] == "content_delta");
    let text = deltas.map(|e| e["text"].as_str().unwrap()).collect();
    (types.join(" "), text)
}

const ANSWERED: &str = "message stream_start content_delta session_stats stream_end";

#[test]
fn each_line_is_a_question_in_a_stream_of_its_own() {
    let server = echo();
    let command = asking(&server, &["--each", "-j", "3", "{{.a}} of {{.}}?"]);
    let lines = "{\"a\":\"one\"}\n\n{\"a\":[2]}\r\n{\"b\":1}\n{\"a\":\"last\"}";
    let ran = run_with(command, lines);
    let events = ran.events();
    assert_eq!(ran.status, 2, "a line lacks a member: {ran:?}");
    for (name, text) in [
        ("1", r#"<one of {"a":"one"}?>"#),
        ("3", r#"<[2] of {"a":[2]}?>"#),
        ("5", r#"<last of {"a":"last"}?>"#),
    ] {
        let (types, answer) = told(&events, name);
        assert_eq!(
            (types.as_str(), answer.as_str()),
            (ANSWERED, text),
            "{ran:?}"
        );
    }
    assert_eq!(told(&events, "4").0, "stream_start error stream_end");
    assert_eq!(
        of(&events, "4")[1]["message"],
        "the input has no .a, which the question names"
    );
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_line_that_cannot_be_asked_is_an_error_of_its_stream_alone() {
    let server = echo();
    let mut child = asking(&server, &["--each", "--max-line", "999"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let long = "x".repeat(1000);
    stdin
        .write_all(format!("{long}\ngood\n").as_bytes())
        .unwrap();
    stdin.write_all(b"\xff\n").unwrap();
    drop(stdin);
    let ran = finish(child, None);
    let events = ran.events();
    assert_eq!(ran.status, 2, "{ran:?}");
    assert_eq!(
        told(&events, "2"),
        (ANSWERED.to_owned(), "<good>".to_owned())
    );
    for (name, says) in [("1", "line 1 has 1000 bytes"), ("3", "line 3 is not UTF-8")] {
        let message = of(&events, name)[1]["message"].as_str().unwrap();
        assert!(message.starts_with(says), "{message}");
    }
}

#[test]
fn a_line_may_be_a_conversation_and_name_its_stream() {
    let server = Server::counting();
    let line = json!({"stream": "row 7", "messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": "And?"}]});
    let ran = run_with(asking(&server, &["--each"]), &format!("{line}\n"));
    let (types, text) = told(&ran.events(), "row 7");
    assert_eq!(
        (types.as_str(), text.as_str(), ran.status),
        (
            "stream_start content_delta session_stats stream_end",
            "3 messages.",
            0
        ),
        "{ran:?}"
    );
}

#[test]
fn as_many_lines_are_open_as_jobs_says_and_no_more() {
    let barrier = Arc::new(Barrier::new(3));
    let open = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&open);
    let server = Server::answering(move |_, request, stream| {
        {
            let mut open = open.lock().unwrap();
            open.0 += 1;
            open.1 = open.0.max(open.1);
        }
        barrier.wait(); // for three requests that are open together
        open.lock().unwrap().0 -= 1;
        stream.answer(request, &Turn::says("x"));
        false
    });
    let ran = run_with(
        asking(&server, &["--each", "-j", "3"]),
        "1\n2\n3\n4\n5\n6\n",
    );
    assert_eq!((ran.status, server.asked().len()), (0, 6), "{ran:?}");
    assert_eq!(seen.lock().unwrap().1, 3);
}

#[test]
fn a_rate_limit_of_one_line_holds_up_the_others() {
    let server = Server::new(vec![
        answer(
            "429 Too Many Requests",
            "retry-after: 60\r\n",
            "{\"error\":{\"message\":\"slow down\"}}",
        ),
        answer("200 OK", SSE, chat(&["too early"])),
    ]);
    let mut lines = Conversation::start(asking(&server, &["--each", "-j", "2"]));
    lines.say(b"one\n");
    while !lines.hear().contains("\"retry_wait\"") {}
    lines.say(b"two\n");
    while !lines.hear().contains("\"two\"") {}
    assert!(kill(lines.id(), "-TERM"));
    let (rest, status) = lines.end();
    let cancelled = rest.iter().filter(|line| line.contains("\"cancelled\""));
    assert_eq!((cancelled.count(), status), (2, Some(143)), "{rest:?}");
    assert_eq!(server.asked().len(), 1);
}

/// A server that answers others has not refused the line: it may be asked about again more often
/// than a single question is.
#[test]
fn a_limit_that_others_share_is_no_retry_of_the_line() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new((wait, 0));
    let server = Server::answering(move |_, request, stream| {
        if question(request) == "slow" {
            let mut wait = wait.lock().unwrap();
            let _ = wait.0.recv_timeout(GUARD);
            wait.1 += 1;
            if wait.1 <= 4 {
                let head = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after-ms: 1\r\ncontent-length: 2\r\n\r\n{}";
                let _ = stream.write_all(head.as_bytes());
                return false;
            }
        }
        stream.answer(request, &Turn::says("ok"));
        false
    });
    let mut lines = Conversation::start(asking(&server, &["--each", "-j", "64"]));
    lines.say(b"slow\n");
    for round in 0..4 {
        lines.say(b"other\n");
        let end = format!("\"stream\":\"{}\"", round + 2);
        loop {
            let line = lines.hear();
            if line.contains("\"stream_end\"") && line.contains(&end) {
                break;
            }
        }
        go.send(()).unwrap();
    }
    go.send(()).unwrap();
    let (rest, status) = lines.end();
    let ended = rest.iter().any(|line| {
        line.contains("\"stream_end\"")
            && line.contains("\"stream\":\"1\"")
            && line.contains("\"stop\"")
    });
    assert!(ended && status == Some(0), "{status:?} {rest:?}");
    assert_eq!(server.asked().len(), 9);
}
