//! `/metrics` and `/ready`. Each answer counts once, on every front, streamed or not, in a session or
//! without one.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::service::agent::{Agent, Asking, FRONTS, TextCalls, Turn, model, session_of, tool};
use crate::service::{Client, JSON, SSE, Service, Upstream, answer, provider, streamed};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::{Scratch, run_with, wait_until};

const CHAT: Asking = FRONTS[0];
const STREAM: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// The body of `/metrics`.
fn page(service: &Service) -> String {
    let response = service.ask("GET", "/metrics", "", "");
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(
        response.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    response.body
}

/// The samples of a page.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
    samples
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// One sample, by the end of its name behind `toolpipe_`.
fn sample(service: &Service, name: &str) -> f64 {
    let samples = samples(&page(service));
    let found = samples.get(&format!("toolpipe_{name}"));
    *found.unwrap_or_else(|| panic!("no {name} in {samples:#?}"))
}

#[test]
fn an_answer_counts_once_on_each_front_in_each_form_kept_or_not() {
    let call = Turn::says("SECRET-TEXT").calls_text("SECRET-ID", "SECRET-NAME", "SECRET-ARGUMENT");
    let asked = model(vec![call.clone()]);
    let folder = Scratch::new();
    let sessions = folder.path("s").display().to_string();
    for options in [&[][..], &["--sessions", &sessions]] {
        let service = Service::of(&asked.url, options);
        for front in FRONTS {
            let more = json!({"tools": front.tools("SECRET-NAME")});
            let response = service.post(front.path, &front.body("SECRET-QUESTION", &more));
            assert_eq!(response.status, 200, "{response:?}");
            if let Some(id) = response.body.split("resp_").nth(1)
                && !options.is_empty()
            {
                // Reading a stored answer does not count again.
                let id = id.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap();
                let path = format!("/v1/responses/resp_{id}?stream=true");
                let again = service.ask("GET", &path, "", "");
                assert!(again.body.contains("SECRET-TEXT"), "{again:?}");
            }
        }
        let count = |name: &str| sample(&service, name);
        wait_until("all have ended", || {
            count("calls_total{outcome=\"whole\"}") >= 7.0
        });
        for (name, want) in [
            ("calls_total{outcome=\"whole\"}", 7.0),
            ("streams_total{reason=\"tool_calls\"}", 7.0),
            ("streams_total{reason=\"stop\"}", 0.0),
            ("detection_seconds_count", 7.0),
            ("first_event_seconds_count", 7.0),
            ("turn_duration_seconds_count", 7.0),
            ("followers", 0.0),
            ("ready", 1.0),
        ] {
            assert_eq!(count(name), want, "{name} {options:?}");
        }
        for front in ["openai-chat", "openai-responses", "anthropic", "events"] {
            wait_until("none is open", || {
                count(&format!("streams_open{{front=\"{front}\"}}")) == 0.0
            });
        }
        assert!(!page(&service).contains("SECRET"));
    }
}

#[test]
fn tools_of_the_service_count_once_by_name_and_status() {
    let look = tool("look", "read", "echo \"looked $1\"", &Value::Null);
    let turns = vec![
        Turn::says("")
            .calls_text("c1", "look", "a")
            .calls_text("c2", "look", "b")
            .calls_text("c3", "made_up_name", "c"),
        Turn::says("done"),
    ];
    let agent = Agent::new(&[look], turns, &[]);
    for front in FRONTS {
        let response = agent.ask(front, "Hi");
        assert!(response.body.contains("done"), "{response:?}");
    }
    let count = |name: &str| sample(&agent.service, name);
    wait_until("all have ended", || {
        count("streams_total{reason=\"stop\"}") == 7.0
    });
    for (name, want) in [
        ("calls_total{outcome=\"whole\"}", 21.0),
        ("streams_total{reason=\"tool_calls\"}", 7.0),
        ("streams_total{reason=\"stop\"}", 7.0),
        ("tool_results_total{status=\"success\"}", 14.0),
        ("tool_results_total{status=\"unknown_tool\"}", 7.0),
        (
            "tool_duration_seconds_count{tool=\"look\",status=\"success\"}",
            14.0,
        ),
    ] {
        assert_eq!(count(name), want, "{name}");
    }
    assert!(!page(&agent.service).contains("made_up"));
}

#[test]
fn bytes_of_a_session_are_those_of_its_file_whoever_wrote_them() {
    let danger = tool("remove", "danger", "echo \"removed $1\"", &Value::Null);
    let turns = vec![
        Turn::says("").calls_text("c1", "remove", "x"),
        Turn::says("It is gone."),
    ];
    let agent = Agent::new(&[danger], turns, &[]);
    let count = |name: &str| sample(&agent.service, name);
    let (_, session) = agent.begin("Hi");
    let hash = agent.waits(&session, "c1");
    wait_until("a call waits", || count("approvals_waiting") == 1.0);
    assert_eq!(count("streams_open{front=\"openai-responses\"}"), 1.0);
    agent.approves(&session, "c1", &hash);
    assert_eq!(agent.ended(&session), "completed");
    wait_until("none is open", || {
        count("streams_open{front=\"openai-responses\"}") == 0.0
    });
    for (name, want) in [
        ("approvals_waiting", 0.0),
        ("approvals_total{decision=\"approved\"}", 1.0),
        ("tool_results_total{status=\"pending\"}", 1.0),
        ("tool_results_total{status=\"success\"}", 1.0),
        (
            "tool_duration_seconds_count{tool=\"remove\",status=\"success\"}",
            1.0,
        ),
        (
            "log_bytes_total",
            std::fs::metadata(agent.file(&session)).unwrap().len() as f64,
        ),
    ] {
        assert_eq!(count(name), want, "{name}");
    }
}

#[test]
fn a_decision_while_no_response_waits_counts_too() {
    let danger = tool("remove", "danger", "echo \"removed $1\"", &Value::Null);
    let turns = vec![Turn::says("").calls_text("c1", "remove", "x")];
    let agent = Agent::new(&[danger], turns, &[]);
    let headers = format!("{JSON}x-toolpipe-pending: end\r\n");
    let front = FRONTS[2];
    let body = front.body("Hi", &Value::Null);
    let response = agent.service.ask("POST", front.path, &headers, &body);
    let session = session_of(&response);
    agent.ended(&session);
    let hash = agent.waits(&session, "c1");
    let count = |name: &str| sample(&agent.service, name);
    wait_until("it has ended", || {
        count("streams_open{front=\"openai-responses\"}") == 0.0
    });
    assert_eq!(count("approvals_waiting"), 0.0);
    agent.approves(&session, "c1", &hash);
    let of_tool = "tool_duration_seconds_count{tool=\"remove\",status=\"success\"}";
    wait_until("the call has run", || {
        page(&agent.service).contains(of_tool)
    });
    assert_eq!(count(of_tool), 1.0);
    let bytes = std::fs::metadata(agent.file(&session)).unwrap().len();
    assert_eq!(count("log_bytes_total"), bytes as f64);
}

#[test]
fn open_answers_and_followers_are_counted_while_they_last() {
    let folder = Scratch::new();
    let sessions = folder.path("s").display().to_string();
    for options in [&[][..], &["--sessions", &sessions]] {
        let upstream = Upstream::new();
        let service = Service::of(&upstream.url(), options);
        let open = |front: &str| sample(&service, &format!("streams_open{{front=\"{front}\"}}"));
        let mut client = service.send("POST", CHAT.path, JSON, STREAM);
        let mut call = upstream.next();
        call.begin();
        call.text("half of ");
        client.until("half of ");
        assert_eq!(open("openai-chat"), 1.0);
        assert_eq!(open("events"), 0.0);
        call.stop();
        client.rest();
        wait_until("it has ended", || open("openai-chat") == 0.0);
        if !options.is_empty() {
            let mut follower = service.send("GET", "/v1/sessions/events", "", "");
            follower.until("\r\n\r\n");
            assert_eq!(sample(&service, "followers"), 1.0);
            drop(follower);
            wait_until("it has left", || sample(&service, "followers") == 0.0);
        }
        // A client that disconnects.
        let mut client = service.send("POST", CHAT.path, JSON, STREAM);
        let mut call = upstream.next();
        call.begin();
        call.text("half of ");
        client.until("half of ");
        drop(client);
        call.closed();
        wait_until("it has left", || open("openai-chat") == 0.0);
    }
}

#[test]
fn ready_fails_from_the_signal_on_and_open_answers_end() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--grace", "1h"]);
    let ready = |service: &Service| service.ask("GET", "/ready", "", "").status;
    assert_eq!(ready(&service), 200);
    let mut idle = service.connect();
    let mut client = service.send("POST", CHAT.path, JSON, STREAM);
    let mut call = upstream.next();
    call.begin();
    call.text("half of ");
    client.until("half of ");
    service.signal(Signal::TERM);
    wait_until("the signal is seen", || ready(&service) == 503);
    assert_eq!(service.ask("GET", "/health", "", "").status, 200);
    assert_eq!(sample(&service, "ready"), 0.0);
    let refused = service.post(CHAT.path, STREAM);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("shutting_down"), "{refused:?}");
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(refused.header("retry-after").is_some());
    // A connection that sends nothing, and one that stops in its head, do not hold up the end.
    let mut silent = service.connect();
    let mut slow = service.connect();
    slow.write(b"GET /ready HTTP/1.1\r\nhost: localh");
    call.text("the answer");
    call.stop();
    let rest = client.rest();
    assert!(rest.body.contains("the answer") && rest.body.contains("[DONE]"));
    let (status, _) = service.ended();
    assert_eq!(status.code(), Some(143));
    [&mut idle, &mut silent, &mut slow]
        .into_iter()
        .for_each(Client::closed);
}

#[test]
fn metrics_need_a_key_where_answers_do_and_ready_needs_none() {
    let folder = Scratch::new();
    folder.write("keys", "the-key-of-a-test\n");
    let keys = folder.path("keys").display().to_string();
    let service = Service::of("http://127.0.0.1:9", &["--key-file", &keys]);
    let status = |path: &str, headers: &str| service.ask("GET", path, headers, "").status;
    assert_eq!(status("/metrics", ""), 401);
    assert_eq!(status("/metrics", "authorization: Bearer wrong\r\n"), 401);
    let key = "authorization: Bearer the-key-of-a-test\r\n";
    assert_eq!(status("/metrics", key), 200);
    assert_eq!(status("/ready", ""), 200);
    assert_eq!(status("/ready", "host: evil.example\r\n"), 403);
    assert_eq!(service.ask("POST", "/metrics", key, "").status, 405);
}

#[test]
fn promtool_has_nothing_to_say() {
    if !testkit::needs::programs(&["promtool"]) {
        return;
    }
    let look = tool("look", "read", "echo \"looked $1\"", &Value::Null);
    let turns = vec![
        Turn::says("").calls_text("c1", "look", "a"),
        Turn::says("done"),
    ];
    let agent = Agent::new(&[look], turns, &[]);
    for asked in [false, true] {
        if asked {
            let response = agent.ask(FRONTS[2], "Hi");
            assert_eq!(agent.ended(&session_of(&response)), "completed");
        }
        let mut lint = std::process::Command::new("promtool");
        lint.args(["check", "metrics"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let page = page(&agent.service);
        assert!(page.ends_with("\n# EOF\n"));
        let said = run_with(lint, &page);
        assert_eq!(
            (said.status, said.stdout.as_str(), said.stderr.as_str()),
            (0, "", ""),
            "{}",
            testkit::short(&page)
        );
    }
}

#[test]
fn a_command_counts_its_events_by_their_own_times() {
    let script = r#"cat >/dev/null
        printf '%s\n' '{"type":"stream_start","v":1,"t":0}' \
            '{"type":"tool_call_delta","t":450,"index":0,"tool_id":"a","tool_name":"own","arguments":"{"}' \
            '{"type":"tool_call_delta","t":900,"index":0,"arguments":"}","done":true}' \
            '{"type":"stream_end","t":2500,"finish_reason":"tool_calls"}' \
            '{"type":"tool_use","tool_id":"a","tool_name":"own","status":"running"}' \
            '{"type":"tool_result","tool_id":"a","tool_name":"own","status":"success","output":"","duration_ms":70}' \
            '{"type":"stream_start","v":1,"t":0}' '{"type":"content_delta","t":1,"text":"Hello"}' \
            '{"type":"stream_end","t":2,"finish_reason":"stop"}'"#;
    let service = Service::start(&["--no-key", "--", script]);
    let response = service.post(CHAT.path, STREAM);
    assert!(response.body.contains("Hello"), "{response:?}");
    for (name, want) in [
        ("calls_total{outcome=\"whole\"}", 1.0),
        ("detection_seconds_sum", 0.45),
        ("event_gap_seconds_sum", 2.502),
        (
            "tool_duration_seconds_sum{tool=\"own\",status=\"success\"}",
            0.07,
        ),
        ("streams_total{reason=\"stop\"}", 1.0),
    ] {
        assert_eq!(sample(&service, name), want, "{name}");
    }
}

#[test]
fn metrics_can_be_read_under_load_and_count_every_answer() {
    let upstream = Upstream::always(streamed("hi"));
    let service = Service::of(&upstream, &[]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(service.post(CHAT.path, STREAM).status, 200);
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut before = 0.0;
            while !is_over.load(Ordering::Relaxed) {
                let count = sample(&service, "streams_total{reason=\"stop\"}");
                assert!(count >= before, "{count} after {before}");
                before = count;
            }
        });
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(sample(&service, "streams_total{reason=\"stop\"}"), 400.0);
    assert_eq!(sample(&service, "streams_open{front=\"openai-chat\"}"), 0.0);
}

#[test]
fn a_provider_that_fails_is_one_error_of_a_known_code() {
    let refuses = provider(|_, _, stream| {
        let body = br#"{"error":{"message":"no","type":"SECRET_TYPE","code":"SECRET_CODE"}}"#;
        answer(stream, "400 No", JSON, body, None)
    });
    let fails = provider(|_, _, stream| {
        let body = b"data: {\"error\":{\"message\":\"no\",\"code\":\"SECRET_CODE\"}}\n\n";
        answer(stream, "200 OK", SSE, body, None)
    });
    let cuts =
        provider(|_, _, stream| answer(stream, "200 OK", SSE, &streamed("half")[90..], Some(200)));
    for failing in [refuses, fails, cuts] {
        let service = Service::of(&failing.url, &["--retries", "0"]);
        service.post(CHAT.path, STREAM);
        let page = page(&service);
        let samples = samples(&page);
        let errors = samples.iter();
        let errors = errors.filter(|(name, _)| name.starts_with("toolpipe_errors_total"));
        assert_eq!(
            errors.map(|(_, count)| count).sum::<f64>(),
            1.0,
            "{}",
            testkit::short(&page)
        );
        let failed = ["error", "cut"].map(|reason| {
            let name = format!("toolpipe_streams_total{{reason=\"{reason}\"}}");
            samples[&name]
        });
        assert_eq!(failed[0] + failed[1], 1.0, "{}", testkit::short(&page));
        assert!(!page.contains("SECRET"));
    }
}
