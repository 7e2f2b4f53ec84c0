//! A connection that breaks at every byte of three streams.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use api::{Api, End, Stream, StreamOptions};
use event::Collect;
use testkit::places::{BODY, Sample};

/// Text and calls, in three ways of framing; short, since each byte is a run of the command.
const STREAMS: [(Api, &str); 3] = [
    (
        Api::OpenaiChat,
        concat!(
            "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\u{20ac}\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
        ),
    ),
    (
        Api::Anthropic,
        concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
    ),
    (
        Api::Ollama,
        concat!(
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false}\n",
            "{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},\"done\":false}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
    ),
];

/// What must have been written when the first `length` bytes came and then the connection was lost;
/// and whether the end mark was among them, so that nothing was lost. `id` is the name that the
/// request gives a response whose own did not come.
fn expected(api: Api, body: &[u8], length: usize, id: &str) -> (Vec<String>, bool) {
    let model = Some("m".into());
    let tools_mode = Some("none".into());
    let id = Some(id.into());
    let options = StreamOptions {
        model,
        tools_mode,
        id,
        ..StreamOptions::default()
    };
    let mut stream = Stream::new(api, options);
    let mut out = Collect::default();
    stream.push(&body[..length], &mut out);
    stream.finish(End::Reset(String::new()), &mut out);
    (out.lines, !stream.failed())
}

/// Runs the command against a server that sends so much and then breaks off: with an RST, or by a
/// close in the middle of a body whose length was announced.
fn broken(api: Api, body: &[u8], length: usize, reset: bool) -> Ran {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
        body.len() + 1
    );
    let sent = Step::Send([head.as_bytes(), &body[..length]].concat());
    let mut steps = vec![Step::WithoutUsage, sent];
    if reset {
        steps.push(Step::Reset);
    }
    run(asking(
        &Server::new(vec![steps]),
        &["--api", api.name(), "--retries", "0", "Hi"],
    ))
}

fn at_every_byte(part: usize) {
    for (api, text) in STREAMS {
        let body = text.as_bytes();
        let places = Sample::NARROW.places(body, BODY).into_iter();
        for length in places.filter(|length| length % 2 == part) {
            let ran = broken(api, body, length, false);
            let id = ran.event("stream_start")["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let (lines, whole) = expected(api, body, length, &id);
            let got: Vec<&str> = ran.stdout.lines().skip(1).collect();
            let kinds = |lines: &[&str]| {
                lines
                    .iter()
                    .filter(|l| !l.starts_with("{\"type\":\"error\""))
                    .map(|l| (*l).to_owned())
                    .collect::<Vec<_>>()
            };
            let want: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(kinds(&got), kinds(&want), "{api:?} {length}");
            assert_eq!(
                ran.status,
                if whole { 0 } else { 2 },
                "{api:?} {length} {ran:?}"
            );
            if !whole {
                assert_eq!(
                    ran.event("error")["code"],
                    "disconnected",
                    "{api:?} {length}"
                );
                assert_eq!(ran.event("stream_end")["finish_reason"], "cut");
            }
            // An RST also takes away what the command has not read yet, so only a beginning is
            // sure.
            let ran = broken(api, body, length, true);
            if ran.status == 0 {
                assert!(whole);
                continue;
            }
            assert_eq!(
                (ran.status, &ran.event("error")["code"]),
                (2, &"disconnected".into()),
                "{api:?} {length}"
            );
            assert_eq!(ran.event("stream_end")["finish_reason"], "cut");
            let all = expected(api, body, body.len(), &id).0;
            let got = ran
                .stdout
                .lines()
                .skip(1)
                .filter(|l| !l.contains("\"stream_end\"") && !l.contains("\"error\""));
            assert!(
                got.zip(&all).all(|(got, want)| got == want
                    || got.contains("\"session_stats\"")
                    || got.contains("stream_start")),
                "{ran:?}"
            );
        }
    }
}

// Two tests, so that they run side by side.

#[test]
fn a_connection_that_breaks_at_an_even_byte() {
    at_every_byte(0);
}

#[test]
fn a_connection_that_breaks_at_an_odd_byte() {
    at_every_byte(1);
}
