//! The endpoints: their answers, their errors, and when a status is due.

use crate::service::{PATIENCE, Response, Service, Upstream, chunk, streamed};
use std::time::Duration;

const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const WHOLE: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
const MESSAGES: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const RESPONSES: &str = r#"{"model":"m","stream":true,"input":"hi"}"#;
const TOOLS: &str =
    r#""tools":[{"type":"function","function":{"name":"reserve","parameters":{"type":"object"}}}]"#;
/// How a line of the access log begins.
const ACCESS: &str = r#"{"type":"access""#;
const JSON: &str = "content-type: application/json\r\n";

#[test]
fn every_front_streams_and_answers_at_once() {
    let service = Service::of(&Upstream::always(streamed("warm")), &[]);
    for (path, stream, end) in [
        (CHAT, STREAM, "data: [DONE]\n\n"),
        ("/v1/responses", RESPONSES, "data: [DONE]\n\n"),
        (
            "/v1/messages?beta=true",
            MESSAGES,
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        ("/chat/completions", STREAM, "data: [DONE]\n\n"),
    ] {
        let response = service.post(path, stream);
        assert_eq!(response.status, 200, "{path}: {response:?}");
        assert_eq!(
            response.header("content-type"),
            Some("text/event-stream; charset=utf-8")
        );
        assert_eq!(response.header("cache-control"), Some("no-cache"));
        assert_eq!(response.header("x-accel-buffering"), Some("no"));
        assert_eq!(response.header("x-request-id").map(str::len), Some(32));
        assert_eq!(
            response.header("x-request-id"),
            response.header("request-id")
        );
        assert!(
            response.body.contains("warm") && response.body.ends_with(end),
            "{path}: {}",
            response.body
        );

        let response = service.post(path, &stream.replace(r#""stream":true,"#, ""));
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("application/json")),
            "{path}"
        );
        let body: serde_json::Value = serde_json::from_str(&response.body).expect("one object");
        assert!(body.to_string().contains("warm"), "{path}: {body}");
    }
}

#[test]
fn each_piece_is_sent_while_the_model_writes() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &[]);
    let with_tools = STREAM.replacen('{', &format!("{{{TOOLS},"), 1);
    for (path, body, end) in [
        (CHAT, &*with_tools, "[DONE]"),
        (CHAT, STREAM, "[DONE]"),
        ("/v1/responses", RESPONSES, "response.completed"),
        ("/v1/messages", MESSAGES, "message_stop"),
        ("/v1/events", WHOLE, "stream_end"),
    ] {
        let mut client = service.send("POST", path, JSON, body);
        let mut call = upstream.next();
        assert!(
            call.request.header("authorization") == Some("Bearer sk-upstream-secret")
                && call.request.text.contains(r#""stream":true"#)
        );
        call.begin();
        for word in ["Free", " beds", " and", "."] {
            call.text(word);
            // The next word is not written before this one is here.
            client.until(word);
        }
        call.stop();
        client.until(end);
    }
}

#[test]
fn no_text_is_a_call_where_the_client_wants_none() {
    let text = r#"<tool_call>{"name":"reserve","arguments":{}}</tool_call>"#;
    let service = Service::of(&Upstream::always(streamed(text)), &[]);
    for (choice, is_call) in [("auto", true), ("none", false)] {
        let options = format!(r#"{{{TOOLS},"tool_choice":"{choice}","#);
        let response = service.post(CHAT, &WHOLE.replacen('{', &options, 1));
        let body: serde_json::Value = serde_json::from_str(&response.body).expect("one object");
        let message = &body["choices"][0]["message"];
        let want = (!is_call).then_some(text);
        assert_eq!(
            (
                message["content"].as_str().filter(|text| !text.is_empty()),
                message["tool_calls"].is_array()
            ),
            (want, is_call),
            "{body}"
        );
    }
}

#[test]
fn an_error_of_the_provider_has_its_status_and_its_wait() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--retries", "0"]);
    for (path, body, kind) in [
        (CHAT, STREAM, r#""type":"rate_limit"#),
        (CHAT, WHOLE, r#""type":"rate_limit"#),
        ("/v1/responses", RESPONSES, r#""type":"rate_limit"#),
        ("/v1/messages", MESSAGES, r#""type":"rate_limit_error""#),
        ("/v1/events", WHOLE, "slow down"),
    ] {
        let mut client = service.send("POST", path, JSON, body);
        upstream.next().refuse(
            429,
            "retry-after: 7\r\n",
            r#"{"error":{"message":"slow down","type":"rate_limit"}}"#,
        );
        let response = client.rest();
        assert_eq!(
            (response.status, response.header("retry-after")),
            (429, Some("7")),
            "{path}: {response:?}"
        );
        assert_eq!(response.header("x-should-retry"), Some("true"));
        assert!(
            response.body.contains("slow down") && response.body.contains(kind),
            "{path}: {}",
            response.body
        );
    }
}

#[test]
fn an_error_after_content_ends_the_stream_without_a_finish() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &[]);
    for (path, body, error, never) in [
        (
            CHAT,
            STREAM,
            "data: {\"error\":",
            "\"finish_reason\":\"stop\"",
        ),
        (
            "/v1/responses",
            RESPONSES,
            "event: response.failed\n",
            "response.completed",
        ),
        ("/v1/messages", MESSAGES, "event: error\n", "message_stop"),
    ] {
        let mut client = service.send("POST", path, JSON, body);
        let mut call = upstream.next();
        call.begin();
        call.text("half of ");
        call.cut();
        let response = client.rest();
        assert!(
            response.status == 200 && response.body.contains("half of "),
            "{path}: {response:?}"
        );
        assert!(
            response.body.contains(error) && !response.body.contains(never),
            "{path}: {}",
            response.body
        );
    }
}

#[test]
fn a_silent_stream_gets_its_status_and_signs_of_life_in_the_form_of_its_front() {
    let upstream = Upstream::new();
    let service = Service::of(
        &upstream.url(),
        &["--status-timeout", "20ms", "--keep-alive", "20ms"],
    );
    for (path, body, before, after) in [
        (CHAT, STREAM, "\"role\":\"assistant\"", ": keep-alive\n\n"),
        (
            "/v1/responses",
            RESPONSES,
            "event: response.created\n",
            "event: keepalive\n",
        ),
        (
            "/v1/messages",
            MESSAGES,
            "event: message_start\n",
            "event: ping\n",
        ),
        ("/v1/events", WHOLE, "\n", "\n"),
    ] {
        let mut client = service.send("POST", path, JSON, body);
        let mut call = upstream.next();
        // The head of the provider's answer has not come.
        assert_eq!(client.until(before).status, 200, "{path}");
        client.until(after);
        call.begin();
        call.text("at last");
        client.until("at last");
        client.until(after);
        call.stop();
        let body = client.rest().body;
        assert!(
            ["[DONE]", "message_stop", "stream_end"]
                .iter()
                .any(|end| body.contains(end)),
            "{path}: {body}"
        );
    }
}

#[test]
fn an_error_after_the_status_is_one_of_the_stream() {
    let upstream = Upstream::new();
    let service = Service::of(
        &upstream.url(),
        &[
            "--status-timeout",
            "1ms",
            "--keep-alive",
            "5ms",
            "--retries",
            "0",
        ],
    );
    for (path, body, error) in [
        (CHAT, STREAM, "data: {\"error\":"),
        ("/v1/responses", RESPONSES, "event: response.failed\n"),
        ("/v1/messages", MESSAGES, "event: error\n"),
    ] {
        let mut client = service.send("POST", path, JSON, body);
        let call = upstream.next();
        assert_eq!(client.until("data: ").status, 200);
        call.refuse(500, "", r#"{"error":{"message":"broken"}}"#);
        let text = client.rest().body;
        assert!(
            text.contains(error) && text.contains("broken"),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_client_that_leaves_closes_the_upstream() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &[]);
    for (path, body) in [
        (CHAT, STREAM),
        (CHAT, WHOLE),
        ("/v1/responses", RESPONSES),
        ("/v1/messages", MESSAGES),
    ] {
        // Before the head of the answer, after it, and in the middle of the text.
        for stage in 0..3 {
            let mut client = service.send("POST", path, JSON, body);
            let mut call = upstream.next();
            if stage > 0 {
                call.begin();
            }
            if stage > 1 {
                call.text("some text");
                if body != WHOLE {
                    client.until("some text");
                }
            }
            drop(client);
            let time = call.closed();
            assert!(
                time < Duration::from_millis(1000),
                "{path}, stage {stage}: {time:?}"
            );
        }
    }
}

#[test]
fn models_have_the_shape_that_the_client_speaks() {
    let list = r#"{"object":"list","data":[{"id":"org/one","created":1700000000,"owned_by":"org"},{"id":"two","created":"x"}]}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{list}",
        list.len()
    );
    let service = Service::of(&Upstream::always(head.into_bytes()), &[]);
    let value = |response: Response| {
        serde_json::from_str::<serde_json::Value>(&response.body).expect("JSON")
    };
    let openai = value(service.ask("GET", "/v1/models", "", ""));
    assert_eq!(openai["data"][0]["id"], "org/one");
    assert_eq!(openai["data"][1]["object"], "model");
    let origins = [0, 1].map(|at| {
        (
            openai["data"][at]["created"].as_i64(),
            openai["data"][at]["owned_by"].as_str(),
        )
    });
    assert_eq!(
        origins,
        [
            (Some(1_700_000_000), Some("org")),
            (Some(0), Some("toolpipe"))
        ]
    );
    let anthropic = value(service.ask(
        "GET",
        "/v1/models?limit=1000",
        "anthropic-version: 2023-06-01\r\n",
        "",
    ));
    assert_eq!(
        (&anthropic["data"][1]["type"], &anthropic["last_id"]),
        (&"model".into(), &"two".into())
    );
    assert_eq!(
        value(service.ask("GET", "/v1/models/org/one", "", ""))["id"],
        "org/one"
    );
    assert_eq!(service.ask("GET", "/v1/models/three", "", "").status, 404);

    let named = Service::of("http://127.0.0.1:9", &["--model", "mine"]);
    assert_eq!(
        value(named.ask("GET", "/v1/models", "", ""))["data"][0]["id"],
        "mine"
    );
}

#[test]
fn events_are_lines_or_server_sent_events_with_the_number_of_their_line() {
    let service = Service::of(&Upstream::always(streamed("warm")), &[]);
    let lines = service.post("/v1/events", WHOLE);
    assert_eq!(
        lines.header("content-type"),
        Some("application/x-ndjson; charset=utf-8")
    );
    let lines: Vec<&str> = lines.body.lines().collect();
    assert!(
        lines[0].starts_with(r#"{"type":"stream_start""#)
            && lines[lines.len() - 1].contains("stream_end")
    );
    let events = service.ask(
        "POST",
        "/v1/events",
        &format!("{JSON}accept: text/event-stream\r\n"),
        WHOLE,
    );
    let ids: Vec<&str> = events
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    assert_eq!(
        ids,
        (1..=lines.len()).map(|n| n.to_string()).collect::<Vec<_>>()
    );
    assert!(events.body.ends_with("\n\n") && events.body.contains(r#"data: {"type":"stream_end""#));
}

#[test]
fn every_error_has_the_form_of_its_front() {
    let service = Service::of("http://127.0.0.1:9", &["--retries", "0"]);
    for (method, path, headers, body, status) in [
        ("GET", CHAT, "", "", 405),
        ("DELETE", "/v1/messages", "", "", 405),
        ("POST", "/v1/messages", JSON, "{", 400),
        ("POST", "/v1/messages", JSON, "[]", 400),
        (
            "POST",
            "/v1/responses",
            "content-type: text/plain\r\n",
            RESPONSES,
            415,
        ),
        ("POST", CHAT, "", STREAM, 415),
        ("POST", "/v1/nothing", JSON, STREAM, 404),
        ("GET", "/etc/passwd", "", "", 404),
        (
            "POST",
            CHAT,
            "content-type: application/json\r\ncontent-encoding: gzip\r\n",
            STREAM,
            415,
        ),
        ("POST", CHAT, JSON, STREAM, 502),
    ] {
        let response = service.ask(method, path, headers, body);
        assert_eq!(response.status, status, "{method} {path}: {response:?}");
        let body: serde_json::Value = serde_json::from_str(&response.body).expect("JSON");
        assert!(
            body["error"]["message"].is_string() && body["error"]["type"].is_string(),
            "{path}: {body}"
        );
        assert_eq!(
            body["type"] == "error",
            path == "/v1/messages",
            "{path}: {body}"
        );
        assert!(
            response.header("x-request-id").is_some()
                && response.header("x-should-retry").is_some()
        );
        assert_eq!(response.header("allow").is_some(), status == 405, "{path}");
        assert!(
            !response.body.contains("sk-upstream-secret"),
            "{}",
            response.body
        );
    }
    for (method, path) in [("HEAD", "/"), ("GET", "/"), ("GET", "/health")] {
        assert_eq!(
            service.ask(method, path, "", "").status,
            200,
            "{method} {path}"
        );
    }
}

#[test]
fn tokens_are_estimated_and_say_so() {
    let service = Service::of("http://127.0.0.1:9", &[]);
    let count = |text: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let response = service.post("/v1/messages/count_tokens?beta=true", &body);
        assert_eq!(
            (response.status, response.header("x-toolpipe-estimate")),
            (200, Some("true"))
        );
        let body: serde_json::Value = serde_json::from_str(&response.body).expect("JSON");
        body["input_tokens"].as_u64().expect("a number")
    };
    let few = count("hello");
    let many = count(&"hello ".repeat(1000));
    assert!(
        (1..100).contains(&few) && (500..5000).contains(&many),
        "{few} {many}"
    );
}

#[test]
fn beyond_the_places_requests_wait_and_beyond_the_queue_they_are_refused() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--max-streams", "1", "--queue", "1"]);
    let mut first = service.send("POST", CHAT, JSON, STREAM);
    let mut call = upstream.next();
    call.begin();
    call.text("the first");
    first.until("the first");
    // Which of the two comes first is not known: one waits and the other is refused at once.
    let mut others = [
        service.send("POST", CHAT, JSON, STREAM),
        service.send("POST", CHAT, JSON, STREAM),
    ];
    let mut refused = None;
    while refused.is_none() {
        for (at, other) in others.iter_mut().enumerate() {
            other
                .stream
                .set_read_timeout(Some(Duration::from_millis(10)))
                .expect("a time-out");
            if other.stream.peek(&mut [0]).is_ok() {
                refused = Some(at);
            }
        }
    }
    let refused = refused.unwrap_or_default();
    let response = others[refused].rest();
    assert_eq!(
        (response.status, response.header("retry-after")),
        (429, Some("1")),
        "{response:?}"
    );
    call.stop();
    first.rest();
    let mut call = upstream.next();
    call.begin();
    call.text("the second");
    call.stop();
    let waiting = &mut others[1 - refused];
    waiting
        .stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a time-out");
    assert!(waiting.rest().body.contains("the second"));
}

#[test]
fn a_client_that_leaves_the_queue_frees_its_place() {
    let upstream = Upstream::new();
    let service = Service::of(
        &upstream.url(),
        &[
            "--max-streams",
            "1",
            "--queue",
            "1",
            "--status-timeout",
            "1ms",
            "--keep-alive",
            "5ms",
        ],
    );
    let first = service.send("POST", CHAT, JSON, STREAM);
    let mut call = upstream.next();
    for _ in 0..3 {
        let mut waiting = service.send("POST", CHAT, JSON, STREAM);
        // A keep-alive shows that it waits, and is not refused.
        assert_eq!(waiting.until("data: ").status, 200);
        drop(waiting);
        // The place in the queue is free once the server has seen that; until then others are
        // refused.
        while service.post(CHAT, "{").status != 400 {}
    }
    drop(first);
    call.closed();
}

#[test]
fn the_log_has_a_line_a_request_without_content() {
    let upstream = Upstream::new();
    let mut service = Service::of(&upstream.url(), &["--access-log"]);
    let mut client = service.send("POST", &format!("{CHAT}?secret=abc"), JSON, STREAM);
    let mut call = upstream.next();
    call.begin();
    let first = r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    call.send(chunk(first, "null").as_bytes());
    call.send(chunk("{}", "\"tool_calls\"").as_bytes());
    call.send(testkit::chat_end().as_bytes());
    drop(call);
    let response = client.rest();
    let line = service.line(|line| line.starts_with(ACCESS));
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["id"].as_str(), response.header("x-request-id"));
    assert_eq!(
        (&line["path"], &line["status"], &line["calls"]),
        (&CHAT.into(), &200.into(), &1.into()),
        "{line}"
    );
    assert_eq!(
        line["bytes"].as_u64(),
        Some(response.body.len() as u64),
        "{line}"
    );
    assert!(
        line.get("cut").is_none() && !line.to_string().contains("secret"),
        "{line}"
    );

    let client = service.send("POST", CHAT, JSON, STREAM);
    let mut call = upstream.next();
    drop(client);
    call.closed();
    let line = service.line(|line| line.starts_with(ACCESS));
    assert!(
        line.contains(r#""status":499"#) && line.contains(r#""cut":true"#),
        "{line}"
    );
}

#[test]
fn the_log_names_the_parameters_that_the_provider_lacks() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/streams/anthropic/llamacpp-text.sse"
    );
    let mut service = Service::start(&["--api", "anthropic", "--replay", path, "--access-log"]);
    let many: Vec<String> = (0..99)
        .map(|n| format!("\"long_name_of_a_parameter_{n}\":1"))
        .collect();
    let many = many.join(",");
    let starts_with = "left out, since anthropic has no such parameter: long_name_of_a_parameter_0";
    for more in [format!("\"stream\":true,{many}"), many] {
        let response = service.post(
            "/v1/responses",
            &format!(r#"{{"model":"m","input":"Hi",{more}}}"#),
        );
        assert_eq!(response.status, 200, "{}", response.body);
        let line = service.line(|line| line.starts_with(ACCESS));
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let notes = line["notes"].as_array().expect("notes");
        assert_eq!(
            (notes.len(), &notes[1]),
            (2, &"the upstream names the model smol-qwen25".into()),
            "{line}"
        );
        let note = notes[0].as_str().expect("a string");
        assert!(note.starts_with(starts_with) && note.len() <= 512, "{note}");
    }
}

#[test]
fn what_is_dropped_of_an_answer_is_a_warning_and_a_note_of_the_log() {
    let text = "a<|im_end|>b<|im_end|><|endoftext|>";
    let upstream = Upstream::always(streamed(text));
    let mut service = Service::of(&upstream, &["--access-log"]);
    for body in [STREAM, WHOLE] {
        let response = service.post(CHAT, body);
        assert!(
            response.status == 200 && !response.body.contains("<|"),
            "{}",
            response.body
        );
        let line = service.line(|line| line.starts_with(ACCESS));
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let why = "a token of chat templates";
        let notes = serde_json::json!([
            format!("dropped <|im_end|>, {why} (2 times)"),
            format!("dropped <|endoftext|>, {why}")
        ]);
        assert_eq!(
            (&line["notes"], &line["warnings"]),
            (&notes, &3.into()),
            "{line}"
        );
    }
    // The events have the text, too, so that nothing is lost.
    let events = service.post("/v1/events", WHOLE).body;
    let mut all = String::new();
    for line in events.lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let member = if event["code"] == "tag_dropped" {
            "raw"
        } else {
            "text"
        };
        all.push_str(event[member].as_str().unwrap_or_default());
    }
    assert_eq!(all, text, "{events}");
}

#[test]
fn with_a_log_on_standard_error_each_line_of_it_is_an_event() {
    let folder = std::env::temp_dir().join(format!("tc-serve-log-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("access.log");
    let path = file.to_str().expect("UTF-8");
    std::fs::write(&file, "{\"type\":\"earlier\"}\n").expect("a file");
    let script = "echo 'trouble: \u{1b}[1m' >&2; exit 5";
    for (options, is_events) in [
        (&["--access-log"][..], true),
        (&["--access-log", "-"], true),
        (&["--access-log", path], false),
        (&[], false),
    ] {
        let options = [options, &["--base-url", "http://127.0.0.1:9"]].concat();
        let mut service = Service::start(&options);
        // Nothing listens there, which the start-up finds out while the service is up.
        let warning = service
            .line(|line| line.contains("127.0.0.1:9:") || line.contains("upstream_unreachable"));
        assert_eq!(warning.starts_with('{'), is_events, "{warning}");
        assert!(
            warning.contains("start the server, or correct the port in --base-url"),
            "{warning}"
        );
        service.post(CHAT, WHOLE);
        service.signal(rustix::process::Signal::TERM);
        let (_, text) = service.ended();
        assert!(
            text.lines().all(|line| line.starts_with('{') == is_events),
            "{text}"
        );

        let service =
            Service::start(&[&options[..options.len() - 2], &["--no-key", "--", script]].concat());
        service.post(CHAT, WHOLE);
        service.signal(rustix::process::Signal::TERM);
        let (_, text) = service.ended();
        assert!(
            text.contains("trouble: ") && text.contains("ended with status 5"),
            "{text}"
        );
        for line in text.lines() {
            let event = serde_json::from_str::<serde_json::Value>(line)
                .ok()
                .filter(serde_json::Value::is_object);
            assert_eq!(event.is_some(), is_events, "{line}");
        }
    }
    // Nobody would know the key that was made.
    let mut service = Service::start(&["--access-log", "--", "true"]);
    assert!(service.line(|_| true).contains(r#""key":"tp-"#));
    let log = std::fs::read_to_string(&file).expect("the log");
    let kinds: Vec<&str> = log
        .lines()
        .map(|line| {
            if line.starts_with(ACCESS) {
                "access"
            } else {
                line
            }
        })
        .collect();
    assert_eq!(kinds, [r#"{"type":"earlier"}"#, "access", "access"]);
    std::fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn with_a_log_on_standard_error_a_service_that_cannot_start_reports_an_event() {
    for (option, is_event) in [
        ("--access-log=-", true),
        ("--access-log=/nowhere/file", false),
    ] {
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_tc-serve"))
            .args([
                option,
                "--listen",
                "127.0.0.1:0",
                "--dialect",
                "none",
                "--tools-mode",
                "tag",
            ])
            .output()
            .expect("tc-serve runs");
        let text = String::from_utf8(command.stderr).expect("UTF-8");
        assert_eq!(
            (command.status.code(), text.lines().count()),
            (Some(2), 1),
            "{text}"
        );
        assert_eq!(
            text.starts_with(r#"{"type":"error","source":"tc-serve","#),
            is_event,
            "{text}"
        );
    }
}

#[test]
fn a_provider_that_is_not_there_is_an_error_of_the_models_and_of_the_health() {
    let service = Service::of("http://127.0.0.1:9", &[]);
    for path in ["/v1/models", "/v1/models/m"] {
        let response = service.ask("GET", path, "", "");
        assert_eq!(response.status, 502, "{response:?}");
        assert!(
            response.body.contains("upstream_unreachable"),
            "{}",
            response.body
        );
    }
    let health = |service: &Service, path: &str| {
        let response = service.ask("GET", path, "", "");
        let body: serde_json::Value = serde_json::from_str(&response.body).unwrap_or_default();
        (
            response.status,
            body["status"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(health(&service, "/health").0, 200);
    assert_eq!(
        health(&service, "/health?upstream"),
        (503, "upstream_unreachable".to_owned())
    );
    let one = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    for (status, body, models, check) in [
        ("200 OK", r#"{"data":[]}"#, 200, (200, "ok")),
        ("404 Not Found", "{}", 200, (200, "ok")),
        ("401 Unauthorized", "{}", 401, (503, "upstream_key_refused")),
        (
            "503 Busy",
            r#"{"error":{"message":"loading the model"}}"#,
            503,
            (503, "upstream_failed"),
        ),
    ] {
        let service = Service::of(&Upstream::always(one(status, body)), &[]);
        assert_eq!(
            service.ask("GET", "/v1/models", "", "").status,
            models,
            "{status}"
        );
        assert_eq!(
            health(&service, "/health?upstream=1"),
            (check.0, check.1.to_owned()),
            "{status}"
        );
    }
    let silent = Upstream::new();
    let service = Service::of(&silent.url(), &[]);
    assert_eq!(
        health(&service, "/health?upstream"),
        (503, "upstream_timeout".to_owned())
    );
    let command = Service::start(&["--no-key", "--", "true"]);
    assert_eq!(health(&command, "/health?upstream"), (200, "ok".to_owned()));
}
