//! Live streams, against a scripted server: what is sent, what is tried again, and how it ends.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::BufReader;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_stream_becomes_events() {
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["Hel", "lo"]))]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(
        ran.types(),
        "message stream_start content_delta content_delta session_stats stream_end"
    );
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("Hello", ""));
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(
        (&asked.body["model"], &asked.body["stream"]),
        (&"m".into(), &true.into())
    );
    assert_eq!(
        asked.header("authorization"),
        None,
        "a server of one's own needs no key"
    );
}

#[test]
fn a_response_without_an_id_is_named_by_its_request() {
    let body = chat(&["x"]).replace("\"id\":\"r1\",", "");
    let body = body.replace("\"created\":1,", "");
    let name = |question: &str| {
        let server = Server::new(vec![answer("200 OK", SSE, &body)]);
        run(asking(&server, &[question])).event("stream_start")["id"].clone()
    };
    let one = name("Hi");
    let again = name("Hi");
    let other = name("Ho");
    assert!(
        one.as_str().is_some_and(|id| id.starts_with("request-")),
        "{one}"
    );
    assert_eq!(
        one, again,
        "the same request has the same name, so that a replay gives the same ids of calls"
    );
    assert_ne!(one, other);
}

#[test]
fn every_api_has_its_path_and_its_header_for_the_key() {
    for (api, variable, path, header, value) in [
        (
            "openai-chat",
            "OPENAI_API_KEY",
            "/v1/chat/completions",
            "authorization",
            "Bearer k-1",
        ),
        (
            "openai-responses",
            "OPENAI_API_KEY",
            "/v1/responses",
            "authorization",
            "Bearer k-1",
        ),
        (
            "anthropic",
            "ANTHROPIC_API_KEY",
            "/v1/messages",
            "x-api-key",
            "k-1",
        ),
        (
            "gemini",
            "GEMINI_API_KEY",
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            "k-1",
        ),
        (
            "ollama",
            "OLLAMA_API_KEY",
            "/api/chat",
            "authorization",
            "Bearer k-1",
        ),
        (
            "mistral",
            "MISTRAL_API_KEY",
            "/v1/chat/completions",
            "authorization",
            "Bearer k-1",
        ),
        (
            "cohere",
            "COHERE_API_KEY",
            "/v2/chat",
            "authorization",
            "Bearer k-1",
        ),
    ] {
        let server = Server::new(vec![answer(
            "400 Bad Request",
            JSON,
            "{\"error\":{\"message\":\"no\"}}",
        )]);
        let mut command = asking(&server, &["--api", api, "Hi"]);
        command.env(variable, "k-1\n");
        let ran = run(command);
        let asked = server.asked();
        assert_eq!(asked[0].line, format!("POST {path} HTTP/1.1"), "{api}");
        assert_eq!(asked[0].header(header), Some(value), "{api}");
        assert_eq!(asked[0].header("content-type"), Some("application/json"));
        assert_eq!((asked.len(), ran.status), (1, 2));
        assert_eq!(ran.event("stream_start")["api"], api);
        if api == "anthropic" {
            assert_eq!(asked[0].header("anthropic-version"), Some("2023-06-01"));
        }
    }
}

#[test]
fn the_base_url_may_be_written_in_any_of_the_usual_ways() {
    for tail in ["", "/", "/v1", "/v1/", "/v1/chat/completions"] {
        let mut server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
        server.url += tail;
        assert_eq!(run(asking(&server, &["Hi"])).status, 0);
        assert_eq!(
            server.asked()[0].line,
            "POST /v1/chat/completions HTTP/1.1",
            "{tail}"
        );
    }
}

#[test]
fn some_statuses_are_tried_again_when_the_server_says() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        for header in [
            "retry-after-ms: 1\r\n",
            "retry-after: 0\r\n",
            "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        ] {
            let server = Server::new(vec![
                answer(
                    &format!("{status} Later"),
                    header,
                    "{\"error\":{\"message\":\"later\"}}",
                ),
                answer(&format!("{status} Later"), header, "busy"),
                answer("200 OK", SSE, chat(&["ok"])),
            ]);
            let ran = run(asking(&server, &["Hi"]));
            assert_eq!(
                (ran.status, ran.text().as_str()),
                (0, "ok"),
                "{status} {ran:?}"
            );
            assert_eq!(server.asked().len(), 3, "{status}");
            assert_eq!(ran.event("stream_start")["attempt"], 3);
            assert_eq!(ran.event("session_stats")["retries"], 2);
            assert_eq!(ran.types().matches("stream_start").count(), 1);
        }
    }
}

#[test]
fn after_the_last_attempt_the_error_is_told() {
    let busy = || {
        answer(
            "429 Too Many Requests",
            "retry-after-ms: 1\r\n",
            "{\"error\":{\"message\":\"slow down\"}}",
        )
    };
    let server = Server::new(vec![busy(), busy(), busy(), busy()]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!((ran.status, server.asked().len()), (2, 3));
    let error = ran.event("error");
    assert_eq!(
        (&error["retryable"], &error["code"]),
        (&true.into(), &"http_429".into())
    );
    assert!(error["message"].as_str().unwrap().contains("slow down"));
    assert_eq!(ran.event("stream_end")["finish_reason"], "error");
    let server = Server::new(vec![busy(), busy()]);
    assert_eq!(run(asking(&server, &["--retries", "0", "Hi"])).status, 2);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn other_statuses_are_not_tried_again() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "422 Unprocessable",
    ] {
        let server = Server::new(vec![
            answer(
                status,
                JSON,
                "{\"error\":{\"message\":\"wrong\",\"code\":\"c\"}}",
            ),
            vec![],
        ]);
        let ran = run(asking(&server, &["Hi"]));
        assert_eq!((ran.status, server.asked().len()), (2, 1), "{status}");
        assert_eq!(ran.event("error")["retryable"], false);
        assert_eq!(ran.types(), "message stream_start error stream_end");
    }
}

#[test]
fn a_connection_lost_before_the_first_event_is_tried_again() {
    let server = Server::new(vec![
        vec![sse_head(), Step::Reset],
        answer("200 OK", SSE, chat(&["ok"])),
    ]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!(
        (ran.status, ran.text().as_str(), server.asked().len()),
        (0, "ok", 2),
        "{ran:?}"
    );
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Server::new(vec![vec![]]);
    let location = format!("location: {}/v1/chat/completions\r\n", other.url);
    let server = Server::new(vec![answer("307 Temporary Redirect", &location, "")]);
    let mut command = asking(&server, &["Hi"]);
    command.env("OPENAI_API_KEY", "k-1");
    let ran = run(command);
    assert_eq!(ran.status, 2);
    let message = ran.event("error")["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&other.url) && message.contains("--base-url"),
        "{message}"
    );
    assert!(other.asked().is_empty());
}

#[test]
fn a_success_that_is_none_is_an_error() {
    for (headers, body, code) in [
        (
            "content-type: text/html\r\n",
            "<!DOCTYPE html><html><title>Sign in</title></html>",
            "not_a_stream",
        ),
        (
            JSON,
            "{\"error\":{\"message\":\"no such model\",\"type\":\"bad_model\"}}",
            "bad_model",
        ),
        (
            SSE,
            "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n",
            "overloaded_error",
        ),
        (SSE, "", "disconnected"),
    ] {
        let server = Server::new(vec![answer("200 OK", headers, body)]);
        let ran = run(asking(&server, &["Hi"]));
        assert_eq!(
            (ran.status, &ran.event("error")["code"]),
            (2, &code.into()),
            "{ran:?}"
        );
        assert!(ran.types().ends_with("stream_end"));
    }
    // The error comes in the middle of a stream that went well so far.
    let good = chat(&["a"]);
    let body = format!(
        "{}data: {{\"error\":{{\"message\":\"lost it\",\"code\":500}}}}\n\n",
        &good[..first(&good)]
    );
    let server = Server::new(vec![answer("200 OK", SSE, &body)]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!(
        (ran.status, ran.text().as_str(), server.asked().len()),
        (2, "a", 1)
    );
    assert_eq!(ran.event("stream_end")["finish_reason"], "error");
}

#[test]
fn a_stream_without_its_end_mark_was_cut() {
    // The role, and two pieces.
    let body = turn(&["a", "b"]).frames(Protocol::Chat)[..3].concat();
    let server = Server::new(vec![answer("200 OK", SSE, body)]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!((ran.status, ran.text().as_str()), (2, "ab"));
    assert_eq!(ran.event("error")["code"], "disconnected");
    assert_eq!(ran.event("stream_end")["finish_reason"], "cut");
}

#[test]
fn a_whole_response_gives_the_same_events() {
    let body = &turn(&["Hello"]).whole(Protocol::Chat);
    // A server that ignores that a stream was asked for.
    let server = Server::new(vec![answer("200 OK", JSON, body)]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!(
        (ran.status, ran.types().as_str()),
        (
            0,
            "message stream_start content_delta session_stats stream_end"
        ),
        "{ran:?}"
    );
    // --no-stream asks for it.
    let server = Server::new(vec![answer("200 OK", JSON, body)]);
    let ran = run(asking(&server, &["--no-stream", "Hi"]));
    assert_eq!((ran.status, ran.text().as_str()), (0, "Hello"));
    assert_ne!(server.asked()[0].body["stream"], true);
    assert!(ran.event("stream_start")["fallback"].is_null());
    // Streaming is refused.
    for (status, refusal) in [
        (
            "400 Bad Request",
            "{\"error\":{\"message\":\"stream is not supported by this model\"}}",
        ),
        ("405 Method Not Allowed", ""),
        ("501 Not Implemented", ""),
    ] {
        let server = Server::new(vec![
            answer(status, JSON, refusal),
            answer("200 OK", JSON, body),
        ]);
        let ran = run(asking(&server, &["Hi"]));
        assert_eq!((ran.status, ran.text().as_str()), (0, "Hello"), "{status}");
        let asked = server.asked();
        assert_eq!(asked[0].body["stream"], true);
        assert_ne!(asked[1].body["stream"], true);
        assert_eq!(ran.event("stream_start")["fallback"], "sync");
        assert_eq!(ran.event("session_stats")["fallbacks"], 1);
        let server = Server::new(vec![answer(status, "retry-after-ms: 1\r\n", refusal)]);
        let ran = run(asking(
            &server,
            &["--fallback", "none", "--retries", "0", "Hi"],
        ));
        assert_eq!((ran.status, server.asked().len()), (2, 1));
    }
}

#[test]
fn chunks_trailers_and_gzip_change_nothing() {
    let body = chat(&["Grüße", "!"]);
    let plain = run(asking(
        &Server::new(vec![answer("200 OK", SSE, &body)]),
        &["Hi"],
    ))
    .stdout;
    let mut chunked =
        format!("HTTP/1.1 200 OK\r\n{SSE}transfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n")
            .into_bytes();
    for piece in body.as_bytes().chunks(7) {
        chunked.extend_from_slice(format!("{:x};ext=1\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\nx-sum: 1\r\n\r\n");
    let zipped = gzip(body.as_bytes());
    let head = format!(
        "HTTP/1.1 200 OK\r\n{SSE}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        zipped.len()
    );
    for bytes in [chunked, [head.as_bytes(), &zipped].concat()] {
        let ran = run(asking(&Server::new(vec![vec![Step::Send(bytes)]]), &["Hi"]));
        assert_eq!((ran.status, &ran.stdout), (0, &plain), "{ran:?}");
    }
}

#[test]
fn silence_ends_a_stream_and_a_comment_breaks_it() {
    let body = chat(&["a", "b"]);
    let first = first(&body);
    let start = body.as_bytes()[..first].to_vec();
    let rest = body.as_bytes()[first..].to_vec();
    let (closed, is_closed) = channel();
    let server = Server::new(vec![vec![
        sse_head(),
        Step::Send(start.clone()),
        Step::UntilClosed(closed),
    ]]);
    let ran = run(asking(&server, &["--idle-timeout", "100ms", "Hi"]));
    assert_eq!((ran.status, ran.text().as_str()), (2, "a"));
    assert_eq!(
        (
            &ran.event("error")["code"],
            &ran.event("error")["retryable"]
        ),
        (&"timeout".into(), &true.into())
    );
    assert_eq!(ran.event("stream_end")["finish_reason"], "cut");
    is_closed.recv_timeout(GUARD).unwrap();
    // Each comment is half of the time that is allowed, all of them twice that time.
    let mut steps = vec![sse_head(), Step::Send(start.clone())];
    for _ in 0..4 {
        steps.extend([
            Step::Silence(Duration::from_millis(400)),
            Step::Send(b": ping\n\n".to_vec()),
        ]);
    }
    steps.push(Step::Send(rest));
    let ran = run(asking(
        &Server::new(vec![steps]),
        &["--idle-timeout", "800ms", "Hi"],
    ));
    assert_eq!((ran.status, ran.text().as_str()), (0, "ab"), "{ran:?}");
    // The total time counts on.
    let pings = std::iter::repeat_with(|| {
        [
            Step::Silence(Duration::from_millis(50)),
            Step::Send(b": ping\n\n".to_vec()),
        ]
    });
    let steps = [sse_head(), Step::Send(start)]
        .into_iter()
        .chain(pings.take(100).flatten())
        .collect();
    let ran = run(asking(
        &Server::new(vec![steps]),
        &["--timeout", "300ms", "Hi"],
    ));
    assert_eq!(
        (ran.status, &ran.event("error")["code"]),
        (2, &"timeout".into())
    );
    // Silence instead of a head, tried again.
    let (closed, _is_closed) = channel();
    let server = Server::new(vec![
        vec![Step::UntilClosed(closed)],
        answer("200 OK", SSE, chat(&["ok"])),
    ]);
    let ran = run(asking(&server, &["--idle-timeout", "100ms", "Hi"]));
    assert_eq!((ran.status, ran.text().as_str()), (0, "ok"));
}

#[test]
fn a_reader_that_leaves_ends_it_while_nothing_comes() {
    let body = chat(&["a"]);
    let (closed, is_closed) = channel();
    let server = Server::new(vec![vec![
        sse_head(),
        Step::Send(body[..first(&body)].into()),
        Step::UntilClosed(closed),
    ]]);
    let mut child = asking(&server, &["Hi"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    until(&mut stdout, "content_delta");
    drop(stdout);
    let ran = finish(child, None);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    is_closed.recv_timeout(GUARD).unwrap();
}

#[test]
fn a_signal_closes_what_is_open() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let body = chat(&["a"]);
        let (closed, is_closed) = channel();
        let server = Server::new(vec![vec![
            sse_head(),
            Step::Send(body[..first(&body)].into()),
            Step::UntilClosed(closed),
        ]]);
        let mut child = asking(&server, &["Hi"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        until(&mut stdout, "content_delta");
        assert!(kill(child.id(), signal));
        let ran = finish(child, Some(stdout));
        assert_eq!((ran.status, ran.stderr.as_str()), (status, ""));
        assert_eq!(ran.event("stream_end")["finish_reason"], "cancelled");
        is_closed.recv_timeout(GUARD).unwrap();
    }
}

#[test]
fn each_event_leaves_before_the_next_bytes_come() {
    let turn = turn(&["a", "b", "c"]);
    let mut steps = vec![sse_head()];
    let mut go = vec![];
    for frame in turn.frames(Protocol::Chat) {
        let (send, wait) = channel();
        go.push(send);
        steps.extend([Step::Send(frame.into()), Step::Wait(wait)]);
    }
    let server = Server::new(vec![steps]);
    let mut child = asking(&server, &["Hi"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    go[0].send(()).unwrap();
    for (text, go) in ["\"a\"", "\"b\"", "\"c\""].iter().zip(&go[1..]) {
        until(&mut stdout, text);
        go.send(()).unwrap();
    }
    drop(go);
    assert_eq!(finish(child, Some(stdout)).status, 0);
}

#[test]
fn a_key_comes_from_the_environment_or_a_file_and_goes_nowhere_unprotected() {
    let key = tempfile("the key", " k-2 \n");
    for (args, name, value) in [
        (vec!["--api-key-env", "MY_KEY"], "MY_KEY", "k-1"),
        (vec!["--api-key-file", key.as_str()], "OTHER", "k-2"),
        (
            vec!["--api-key-command", "printf 'k-3\\nuser: me\\n'"],
            "OTHER",
            "k-3",
        ),
        (
            vec!["--header", "Authorization: Bearer $MY_KEY"],
            "MY_KEY",
            "k-1",
        ),
    ] {
        let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
        let mut command = asking(&server, &args);
        command.arg("Hi").env(name, "k-1");
        assert_eq!(run(command).status, 0);
        assert_eq!(
            server.asked()[0].header("authorization"),
            Some(format!("Bearer {value}").as_str())
        );
    }
    std::fs::remove_file(key).unwrap();
    let with_key = |args: &[&str]| {
        let mut command = command(args);
        command
            .args(["--model", "m", "Hi"])
            .env("OPENAI_API_KEY", "k-1")
            .env("BAD", "k 1\nx: y");
        run(command)
    };
    let reported = with_key(&["--base-url", "http://models.example.com/v1"]);
    assert!(reported.refusal().contains("--allow-insecure") && !reported.stderr.contains("k-1"));
    let reported = with_key(&["--api-key-env", "BAD"]);
    assert!(reported.refusal().contains("BAD") && !reported.stderr.contains("k 1"));
    assert!(
        with_key(&["--api-key-env", "NOT_THERE"])
            .refusal()
            .contains("NOT_THERE")
    );
    assert!(
        with_key(&["--api-key-file", "/not/there"])
            .refusal()
            .contains("/not/there")
    );
    for (script, says) in [
        ("echo k-4; exit 3", "failed, exit status: 3"),
        ("echo; echo k-4", "prints no key"),
        ("echo k 4", "holds spaces"),
    ] {
        let reported = with_key(&["--api-key-command", script]);
        assert!(reported.refusal().contains(says), "{}", reported.stderr);
    }
    assert!(
        with_key(&["--header", "Authorization: Bearer k-1"])
            .refusal()
            .contains("$NAME")
    );
    assert!(
        with_key(&["--base-url", "ftp://127.0.0.1"])
            .refusal()
            .contains("https://HOST/PATH")
    );
    let none = run(command(&["--model", "m", "--api", "anthropic", "Hi"]));
    assert!(none.refusal().contains("ANTHROPIC_API_KEY"), "{none:?}");
}

fn tempfile(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("llm-stream-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
