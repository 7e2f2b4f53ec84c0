//! Servers that never pause, and bodies that never end: limits hold while data floods in. Nothing
//! here is timed; what is judged is that it ends, how, and how many bytes the server got rid of.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::BufReader;
use std::sync::mpsc::{Receiver, channel};

/// What a client may take before a limit of one mebibyte stops it: the buffers of both sides,
/// generously.
const SOON: usize = 64 << 20;

fn flood(bytes: &str) -> (Step, Receiver<usize>) {
    let (taken, is_taken) = channel();
    (Step::Flood(bytes.into(), taken), is_taken)
}

fn first_piece() -> String {
    let body = chat(&["a"]);
    body[..first(&body)].to_owned()
}

/// What a stream may be made of without an event.
const IDLE: [&str; 5] = [
    ": ping\n\n",
    ":\n",
    "\n",
    "data: {\"choices\":[]}\n\n",
    "retry: 1\n\n",
];

#[test]
fn the_time_for_everything_ends_a_stream_that_never_pauses() {
    for idle in IDLE.into_iter().chain([first_piece().as_str()]) {
        let (step, is_taken) = flood(idle);
        let server = Server::new(vec![vec![
            sse_head(),
            Step::Send(first_piece().into()),
            step,
        ]]);
        let ran = run(asking(
            &server,
            &["--max-line", "4G", "--timeout", "300ms", "Hi"],
        ));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &"timeout".into()),
            "{idle:?}"
        );
        assert_eq!(ran.event("stream_end")["finish_reason"], "cut", "{idle:?}");
        is_taken.recv_timeout(GUARD).unwrap();
    }
    // White space before any event, and JSON lines without text.
    for bytes in [" ", "\n", "{\"message\":{\"content\":\"\"}}\n"] {
        let (step, is_taken) = flood(bytes);
        let server = Server::new(vec![vec![
            Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
            step,
        ]]);
        let ran = run(asking(
            &server,
            &[
                "--api",
                "ollama",
                "--max-line",
                "4G",
                "--timeout",
                "300ms",
                "Hi",
            ],
        ));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &"timeout".into()),
            "{bytes:?} {ran:?}"
        );
        is_taken.recv_timeout(GUARD).unwrap();
    }
}

#[test]
fn a_reader_that_leaves_ends_a_stream_that_never_pauses() {
    for idle in IDLE {
        let (step, is_taken) = flood(idle);
        let server = Server::new(vec![vec![
            sse_head(),
            Step::Send(first_piece().into()),
            step,
        ]]);
        let mut child = asking(&server, &["--max-line", "4G", "Hi"])
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        until(&mut stdout, "content_delta");
        drop(stdout);
        let ran = finish(child, None);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{idle:?}");
        is_taken.recv_timeout(GUARD).unwrap();
    }
}

#[test]
fn an_event_a_value_and_a_page_without_end_are_errors() {
    for (api, start, bytes, code) in [
        ("openai-chat", "data: ", "aaaa", "frame_too_long"),
        ("openai-chat", "", "data: a\n", "frame_too_long"),
        ("openai-chat", ": ", "aaaa", "frame_too_long"),
        (
            "openai-chat",
            "data: {\"a\":1}\n\nid: ",
            "aaaa",
            "frame_too_long",
        ),
        ("openai-chat", "", " ", "frame_too_long"),
        ("openai-chat", "", "\n", "frame_too_long"),
        ("openai-chat", "{\"a\":\"", "aaaa", "frame_too_long"),
        ("gemini", "[", "\n", "frame_too_long"),
        ("gemini", "[{\"a\":[", "[1],", "frame_too_long"),
        ("ollama", "{\"a\":1}\n", "aaaa", "frame_too_long"),
        ("ollama", "{\"a\":1}\n", "  ", "frame_too_long"),
        ("openai-chat", "<html>", "<p>no", "not_a_stream"),
    ] {
        let (step, is_taken) = flood(bytes);
        let server = Server::new(vec![vec![sse_head(), Step::Send(start.into()), step]]);
        let ran = run(asking(&server, &["--api", api, "--max-line", "1M", "Hi"]));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &code.into()),
            "{start:?} {bytes:?}"
        );
        assert_eq!(
            ran.event("stream_end")["finish_reason"],
            "error",
            "{start:?} {bytes:?}"
        );
        assert!(
            is_taken.recv_timeout(GUARD).unwrap() < SOON,
            "{start:?} {bytes:?}"
        );
        let says = if code == "frame_too_long" {
            "--max-line"
        } else {
            "HTML"
        };
        assert!(
            ran.event("error")["message"]
                .as_str()
                .unwrap()
                .contains(says),
            "{ran:?}"
        );
    }
}

/// 24 MiB in 158 KB. With work that grows with the square of the bytes the first of these take
/// minutes.
#[test]
fn the_limit_counts_what_was_compressed() {
    const MANY: usize = 24 << 20;
    for (start, byte, end, more, code) in [
        ("", b' ', "", &[][..], "disconnected"),
        ("", b'\n', "", &[], "disconnected"),
        ("", b' ', "", &["--max-line", "1M"], "frame_too_long"),
        (
            "{\"choices\":[",
            b' ',
            "]}",
            &["--max-line", "1M"],
            "frame_too_long",
        ),
        (
            "data: {\"a\":\"",
            b'a',
            "\"}\n\n",
            &["--max-line", "1M"],
            "frame_too_long",
        ),
    ] {
        let zipped = gzip_run(start, byte, MANY, end);
        let head = format!(
            "HTTP/1.1 200 OK\r\n{SSE}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            zipped.len()
        );
        let server = Server::new(vec![vec![Step::Send([head.as_bytes(), &zipped].concat())]]);
        let ran = run(asking(
            &server,
            &["--retries", "0", "Hi"]
                .iter()
                .chain(more)
                .copied()
                .collect::<Vec<_>>(),
        ));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &code.into()),
            "{start:?} {more:?}"
        );
    }
}

#[test]
fn what_follows_the_head_without_end_is_an_error() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (head, bytes) in [
        // The headers, the extensions of a chunk, and the trailers.
        ("HTTP/1.1 200 OK\r\n".to_owned(), "x: 1\r\n"),
        ("HTTP/1.1 200 OK\r\nx: ".to_owned(), "aaaa"),
        (format!("{chunked}1;x="), "aaaa"),
        (format!("{chunked}0\r\n"), "x: 1\r\n"),
    ] {
        let (step, is_taken) = flood(bytes);
        let server = Server::new(vec![vec![Step::Send(head.clone().into()), step]]);
        let ran = run(asking(&server, &["--retries", "0", "Hi"]));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &"disconnected".into()),
            "{head:?} {ran:?}"
        );
        assert!(is_taken.recv_timeout(GUARD).unwrap() < SOON, "{head:?}");
    }
}

#[test]
fn a_replayed_body_has_the_limit_too() {
    for body in [
        "data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\n",
        "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
    ] {
        let file = File::new("long.sse", body);
        let ran = run(command(&[
            "--replay",
            file.path(),
            "--api",
            "openai-chat",
            "--max-line",
            "30",
        ]));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &"frame_too_long".into()),
            "{ran:?}"
        );
    }
}
