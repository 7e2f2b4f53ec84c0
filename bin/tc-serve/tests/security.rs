//! Attacks: by pages that somebody visits, by clients without a key, and by clients that take or
//! send too slowly or too much.

use crate::service::{Client, Service, Upstream, chunk, request, streamed};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use testkit::Scratch;

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const STREAM: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
/// A question that each protocol of user interfaces takes.
const UI_STREAM: &str = r#"{"model":"m","id":"a","threadId":"a","runId":"r","tools":[],"context":[],"forwardedProps":{"model":"m"},"messages":[{"id":"u","role":"user","content":"hi","parts":[{"type":"text","text":"hi"}]}]}"#;
const JSON: &str = "content-type: application/json\r\n";

#[test]
fn pages_of_other_sites_reach_nothing() {
    // Nothing listens there: a request that passes the gate gets 502.
    let service = Service::of(
        "http://127.0.0.1:9",
        &[
            "--retries",
            "0",
            "--allow-origin",
            "https://chat.example.com",
        ],
    );
    let json = |more: &str| format!("{JSON}{more}");
    for (headers, status) in [
        (json(""), 502),
        (json("host: evil.example\r\n"), 403),
        (json("host: evil.example:8790\r\n"), 403),
        (json("origin: http://evil.example\r\n"), 403),
        (json("origin: null\r\n"), 403),
        (
            json("host: localhost:1\r\norigin: http://localhost:2\r\n"),
            403,
        ),
        (
            json("host: localhost:1\r\norigin: http://localhost:1\r\n"),
            502,
        ),
        (
            json("origin: https://chat.example.com\r\nsec-fetch-site: cross-site\r\n"),
            502,
        ),
        (json("sec-fetch-site: cross-site\r\n"), 403),
        ("content-type: text/plain\r\n".to_owned(), 415),
        (
            "content-type: application/x-www-form-urlencoded\r\n".to_owned(),
            415,
        ),
        (
            "content-type: multipart/form-data; boundary=x\r\n".to_owned(),
            415,
        ),
    ] {
        let response = service.ask("POST", CHAT, &headers, STREAM);
        assert_eq!(response.status, status, "{headers}");
        let is_allowed = headers.contains("chat.example.com");
        assert_eq!(
            response.header("access-control-allow-origin").is_some(),
            is_allowed,
            "{headers}"
        );
    }
    for (method, path, own) in [
        ("POST", "/api/chat", 400),
        ("POST", "/api/ag-ui", 400),
        ("POST", "/api/chat/a/stop", 404),
        ("GET", "/api/chat/a/stream", 204),
        ("GET", "/metrics", 200),
        ("GET", "/ready", 200),
        (
            "GET",
            "/v1/sessions/3fa90000000000000000000000000001?format=html",
            404,
        ),
    ] {
        for (headers, status) in [
            ("", own),
            ("host: evil.example\r\n", 403),
            ("origin: http://evil.example\r\n", 403),
            ("sec-fetch-site: cross-site\r\n", 403),
        ] {
            let response = service.ask(method, path, &json(headers), "{}");
            assert_eq!(response.status, status, "{method} {path} {headers}");
        }
    }
    let preflight = |origin: &str| {
        let headers = format!(
            "origin: {origin}\r\naccess-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n"
        );
        service.ask("OPTIONS", CHAT, &headers, "")
    };
    let allowed = preflight("https://chat.example.com");
    assert_eq!(
        (
            allowed.status,
            allowed.header("access-control-allow-headers")
        ),
        (204, Some("content-type"))
    );
    let refused = preflight("https://evil.example");
    assert!(
        refused.status == 403 && !refused.head.contains("access-control"),
        "{refused:?}"
    );
}

#[test]
fn sighup_reads_the_files_of_keys_again() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("sighup-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let clients = folder.join("clients");
    let provider = folder.join("provider");
    let write = |file: &std::path::Path, key: &str| {
        std::fs::write(file, format!("{key}\n")).expect("a file")
    };
    write(&clients, "the-old-key-of-clients");
    write(&provider, "the-old-key-of-ours");
    let upstream = Upstream::new();
    let [clients_file, provider_file] =
        [&clients, &provider].map(|file| file.to_str().expect("UTF-8").to_owned());
    let options = [
        "--key-file",
        &clients_file,
        "--api-key-file",
        &provider_file,
    ];
    let mut service = Service::of(&upstream.url(), &options);
    let send = |service: &Service, key: &str| {
        service.send(
            "POST",
            CHAT,
            &format!("{JSON}authorization: Bearer {key}\r\n"),
            STREAM,
        )
    };
    // The key that the provider gets of a request of this client's.
    let provider_key = |service: &Service, key: &str| {
        let mut client = send(service, key);
        let mut call = upstream.next();
        call.send(&streamed("hi"));
        drop(call.stream);
        assert_eq!(client.rest().status, 200);
        let key = call.request.header("authorization").expect("a key");
        key.strip_prefix("Bearer ").expect("a key").to_owned()
    };
    assert_eq!(
        provider_key(&service, "the-old-key-of-clients"),
        "the-old-key-of-ours"
    );
    write(&clients, "the-new-key-of-clients");
    write(&provider, "the-new-key-of-ours");
    service.signal(Signal::HUP);
    service.line(|line| line.contains("SIGHUP: the key files were reread"));
    assert_eq!(send(&service, "the-old-key-of-clients").rest().status, 401);
    assert_eq!(
        provider_key(&service, "the-new-key-of-clients"),
        "the-new-key-of-ours"
    );
    // A file that cannot be used changes nothing.
    write(&clients, "short");
    std::fs::remove_file(&provider).expect("it is there");
    service.signal(Signal::HUP);
    service.line(|line| line.contains("clients") && line.contains("stay as they were"));
    service.line(|line| line.contains("provider") && line.contains("stay as they were"));
    assert_eq!(
        provider_key(&service, "the-new-key-of-clients"),
        "the-new-key-of-ours"
    );
    let _ = std::fs::remove_dir_all(&folder);
}

/// Two keys of clients in a file that a test may change.
const KEYS: [&str; 2] = ["the-key-of-the-first-one", "the-key-of-the-other-one"];

/// Writes other keys into the file, and waits until the service has them.
fn replace_keys(service: &mut Service, file: &std::path::Path, keys: &[&str]) {
    std::fs::write(file, keys.join("\n")).expect("a file");
    service.signal(Signal::HUP);
    service.line(|line| line.contains("SIGHUP: the key files were reread"));
}

fn bearer(key: &str) -> String {
    format!("{JSON}authorization: Bearer {key}\r\n")
}

/// A file with all keys, and the options of a service that has it and keeps sessions.
fn keys_and_sessions(scratch: &Scratch) -> (PathBuf, [String; 4]) {
    let file = scratch.write("keys", KEYS.join("\n"));
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let sessions = scratch.path("sessions");
    let options = [
        "--key-file".to_owned(),
        text(&file),
        "--sessions".to_owned(),
        text(&sessions),
    ];
    (file, options)
}

/// The file of keys changes while the service waits for the body of a request.
#[test]
fn a_client_is_its_key_whatever_becomes_of_the_list_while_its_body_is_read() {
    let scratch = Scratch::new();
    let (file, options) = keys_and_sessions(&scratch);
    let options = options.each_ref().map(String::as_str);
    let mut service = Service::of(&Upstream::always(streamed("warm")), &options);
    let input = r#"{"model":"m","input":"a secret"}"#;
    let theirs = service.ask("POST", RESPONSES, &bearer(KEYS[1]), input);
    let theirs: Value = serde_json::from_str(&theirs.body).expect("an answer");
    let theirs = theirs["id"].as_str().expect("an id");
    let body = format!(r#"{{"model":"m","input":"go on","previous_response_id":"{theirs}"}}"#);
    let begun = |service: &Service, key: &str| {
        let headers = format!("{}expect: 100-continue\r\n", bearer(key));
        let text = request("POST", RESPONSES, &headers, &body);
        let mut client = service.connect();
        client.write(text.trim_end_matches(body.as_str()).as_bytes());
        client.until("100 Continue\r\n\r\n");
        client
    };
    let status = |client: &mut Client| {
        client.rest();
        let text = client.text();
        let (_, answer) = text.split_once("\r\n\r\n").expect("two heads");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let ended = |mut client: Client| {
        client.write(body.as_bytes());
        status(&mut client)
    };
    // In the other order, the first key has the place that the other one had.
    let [first, other] = KEYS.map(|key| begun(&service, key));
    replace_keys(&mut service, &file, &[KEYS[1], KEYS[0]]);
    assert_eq!(ended(first), "404");
    assert_eq!(ended(other), "200");
    // In a shorter list, the other key has the place that the first one had.
    let [mut first, other] = KEYS.map(|key| begun(&service, key));
    replace_keys(&mut service, &file, &[KEYS[1]]);
    assert_eq!(status(&mut first), "401");
    assert_eq!(ended(other), "200");
}

#[test]
fn a_key_that_is_taken_out_ends_its_open_streams() {
    let scratch = Scratch::new();
    let (file, options) = keys_and_sessions(&scratch);
    let options = options.each_ref().map(String::as_str);
    let upstream = Upstream::new();
    let mut service = Service::of(&upstream.url(), &options);
    let begun = |service: &Service, key: &str, path: &str, body: &str| {
        let mut client = service.send("POST", path, &bearer(key), body);
        let mut call = upstream.next();
        call.begin();
        call.text("begun");
        client.until("begun");
        (client, call)
    };
    let responses = r#"{"model":"m","input":"hi","stream":true}"#;
    let background = r#"{"model":"m","input":"hi","stream":true,"background":true}"#;
    let ended = [
        (CHAT, STREAM),
        (RESPONSES, responses),
        (RESPONSES, background),
    ]
    .map(|(path, body)| begun(&service, KEYS[0], path, body));
    let mut follower = service.send("GET", "/v1/sessions/events", &bearer(KEYS[0]), "");
    follower.until("\r\n\r\n");
    let (mut stays, call) = begun(&service, KEYS[1], CHAT, STREAM);
    replace_keys(&mut service, &file, &[KEYS[1]]);
    for (mut client, mut call) in ended {
        let text = client.rest().body;
        assert!(text.contains("the key was removed"), "{text}");
        // Nobody pays for the rest of an answer that nobody may read.
        call.closed();
    }
    follower.closed();
    call.stop();
    let text = stays.rest().body;
    assert!(text.contains("[DONE]"), "{text}");
}

#[test]
fn a_key_is_asked_for_and_is_nowhere_in_an_answer() {
    let file = std::env::temp_dir().join(format!("tc-serve-keys-{}", std::process::id()));
    std::fs::write(
        &file,
        "# clients\nkey-of-the-first-one\nkey-of-another-one\n",
    )
    .expect("a file");
    let path = file.to_str().expect("a path");
    let service = Service::of(&Upstream::always(streamed("warm")), &["--key-file", path]);
    for (header, status) in [
        ("", 401),
        ("authorization: Bearer wrong-key-of-nobody\r\n", 401),
        ("authorization: Basic key-of-the-first-one\r\n", 401),
        ("x-api-key: key-of-the-first-on\r\n", 401),
        ("authorization: bearer key-of-the-first-one\r\n", 200),
        ("x-api-key: key-of-another-one\r\n", 200),
    ] {
        let response = service.ask("POST", CHAT, &format!("{JSON}{header}"), STREAM);
        assert_eq!(response.status, status, "{header}");
        assert!(
            !response.body.contains("key-of") && !response.body.contains(path),
            "{}",
            response.body
        );
    }
    for (method, path, status) in [
        ("GET", "/v1/models", 401),
        ("GET", "/metrics", 401),
        (
            "GET",
            "/v1/sessions/3fa90000000000000000000000000001?format=html",
            401,
        ),
        ("POST", "/api/chat", 401),
        ("GET", "/api/chat/a/stream", 401),
        ("POST", "/api/chat/a/stop", 401),
        ("POST", "/api/ag-ui", 401),
        ("GET", "/health", 200),
        ("GET", "/ready", 200),
        ("GET", "/", 200),
    ] {
        let response = service.ask(method, path, JSON, "");
        assert_eq!(response.status, status, "{method} {path}");
    }
    std::fs::remove_file(file).expect("the file is there");
}

#[test]
fn other_addresses_than_this_machines_need_a_key_file() {
    for options in [
        &["--listen", "0.0.0.0:0"][..],
        &["--listen", "0.0.0.0:0", "--no-key"],
        &["--listen", "[::]:0"],
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tc-serve"))
            .args(["--base-url", "http://127.0.0.1:9"])
            .args(options)
            .env("OPENAI_API_KEY", "x")
            .output()
            .expect("tc-serve runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && text.contains("--key-file"),
            "{options:?}: {text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn a_command_gets_a_key_of_its_own() {
    let mut service = Service::start(&["--", "cat"]);
    let line = service.line(|line| line.contains("the key of this run is"));
    let key = line.trim().rsplit(' ').next().expect("a key").to_owned();
    assert_eq!(key.len(), "tp-".len() + 32, "{key}");
    assert_eq!(service.ask("GET", "/v1/models", "", "").status, 401);
    assert_eq!(
        service
            .ask("GET", "/v1/models", &format!("x-api-key: {key}\r\n"), "")
            .status,
        200
    );
}

#[cfg(unix)]
#[test]
fn the_printed_line_of_codex_gives_it_the_key() {
    for (options, has_key) in [
        (&["--", "cat"][..], true),
        (&["--no-key", "--", "cat"], false),
    ] {
        let mut service = Service::start(options);
        let line = service.line(|line| line.trim_start().starts_with("Codex "));
        let command = line.trim().trim_start_matches("Codex").trim();
        // A function in the place of Codex, which shows what it would get from a shell.
        let script = format!("codex() {{ printf '%s\\n' \"$TC_SERVE_KEY\" \"$2\"; }}\n{command}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .env_remove("TC_SERVE_KEY")
            .output();
        let output = String::from_utf8(output.expect("sh runs").stdout).expect("UTF-8");
        let (key, provider) = output.split_once('\n').expect("two lines");
        // https://developers.openai.com/codex/config-reference: `env_key` names the variable that
        // holds the key.
        assert_eq!(
            provider.contains(",env_key=\"TC_SERVE_KEY\"}"),
            has_key,
            "{provider}"
        );
        assert_eq!(!key.is_empty(), has_key, "{line}");
        assert_eq!(
            service
                .ask(
                    "GET",
                    "/v1/models",
                    &format!("authorization: Bearer {key}\r\n"),
                    ""
                )
                .status,
            200
        );
    }
}

#[test]
fn only_one_thing_answers() {
    let tape = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/tapes/huts.tape"
    );
    for (options, says) in [
        (&["--replay", tape, "--", "cat"][..], "COMMAND and --replay"),
        (
            &["--base-url", "http://127.0.0.1:9", "--", "cat"],
            "COMMAND and --base-url",
        ),
        (
            &["--base-url", "http://127.0.0.1:9", "--replay", tape],
            "--replay and --base-url",
        ),
        (&["--", ""], "COMMAND behind -- is empty"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tc-serve"))
            .args(options)
            .output();
        let output = output.expect("tc-serve runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && text.contains(says),
            "{options:?}: {text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn a_body_of_too_many_values_is_refused_and_a_long_one_is_read() {
    let service = Service::of(&Upstream::always(streamed("warm")), &[]);
    let many = format!(r#"{{"messages":[{}]}}"#, vec!["{}"; 130_000].join(","));
    assert_eq!(service.post(CHAT, &many).status, 413);
    let long = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"{}"}}]}}"#,
        "{[,".repeat(200_000)
    );
    let response = service.post(CHAT, &long);
    assert!(
        response.status == 200 && response.body.contains("warm"),
        "{response:?}"
    );
}

/// A stream of OpenAI's API that goes on with `piece` for `megabytes`, and has no end.
fn endless(first: &str, piece: &str, megabytes: usize) -> Vec<u8> {
    let mut answer =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
    answer.extend(chunk(first, "null").into_bytes());
    let piece = chunk(piece, "null");
    answer.extend(piece.repeat((megabytes << 20) / piece.len()).into_bytes());
    answer
}

#[test]
fn an_answer_without_end_takes_no_memory_without_end() {
    let words = "many words ".repeat(1000);
    let text = endless("{}", &format!(r#"{{"content":"{words}"}}"#), 8);
    let reasoning = endless("{}", &format!(r#"{{"reasoning_content":"{words}"}}"#), 8);
    let call = |arguments: &str| {
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#
        )
    };
    let more = format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{words}"}}}}]}}"#);
    let call = endless(&call(r#"{\"a\":\""#), &more, 8);
    let in_text = endless(
        r#"{"content":"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\""}"#,
        &format!(r#"{{"content":"{words}"}}"#),
        8,
    );
    let one_event = {
        let mut answer = endless("{}", "{}", 0);
        answer.extend(
            b"data: {\"x\":\""
                .iter()
                .chain(words.repeat(1000).as_bytes()),
        );
        answer
    };
    let tools =
        r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#;
    let chat =
        |stream: bool| STREAM.replace("\"stream\":true", &format!("{tools},\"stream\":{stream}"));
    let responses = r#"{"model":"m","stream":true,"input":"hi"}"#;
    for (what, answer, path, body, status) in [
        ("text", &text, CHAT, chat(false), 502),
        ("reasoning", &reasoning, CHAT, chat(false), 502),
        ("a call", &call, CHAT, chat(false), 502),
        ("a call in a stream", &call, CHAT, chat(true), 200),
        (
            "a call in the text of a stream, of which nothing was sent",
            &in_text,
            CHAT,
            chat(true),
            502,
        ),
        (
            "a stream that repeats its text",
            &text,
            "/v1/responses",
            responses.to_owned(),
            200,
        ),
        (
            "a stream of events, whose message has all text",
            &text,
            "/v1/events",
            chat(true),
            200,
        ),
    ] {
        let service = Service::of(
            &Upstream::always(answer.clone()),
            &["--retries", "0", "--max-answer", "1M"],
        );
        let response = service.post(path, &body);
        assert!(
            response.body.contains("see --max-answer"),
            "{what}: {} {}",
            response.status,
            tail(&response.body)
        );
        assert_eq!(response.status, status, "{what}");
        assert!(
            !response.body.contains("\"finish_reason\":\"stop\""),
            "{what}: {}",
            tail(&response.body)
        );
    }
    // A stream of which nothing is kept has no limit.
    let service = Service::of(
        &Upstream::always(text),
        &["--retries", "0", "--max-answer", "1M"],
    );
    let response = service.post(CHAT, STREAM);
    assert!(
        response.body.len() > 7 << 20 && response.body.contains("disconnected"),
        "{}",
        tail(&response.body)
    );
    // One event without end.
    let service = Service::of(
        &Upstream::always(one_event),
        &["--retries", "0", "--max-answer", "1M"],
    );
    let response = service.post(CHAT, &chat(false));
    assert!(
        response.status == 502 && response.body.contains("frame_too_long"),
        "{}",
        tail(&response.body)
    );
}

/// The end of a text.
fn tail(text: &str) -> String {
    String::from_utf8_lossy(&text.as_bytes()[text.len().saturating_sub(300)..]).into_owned()
}

#[test]
fn requests_share_a_budget_of_bytes() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--max-memory", "4M"]);
    let body = STREAM.replace("hi", &"x".repeat(1_500_000));
    let mut first = service.send("POST", CHAT, JSON, &body);
    let mut call = upstream.next();
    call.begin();
    call.text("half of ");
    first.until("half of ");
    let refused = service.post(CHAT, &body);
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1")),
        "{}",
        refused.body
    );
    assert!(
        refused.body.contains("memory_full") && refused.body.contains("--max-memory"),
        "{}",
        refused.body
    );
    let many = STREAM.replace("\"hi\"", &format!("[{}]", vec!["{}"; 20_000].join(",")));
    assert_eq!(
        service.post(CHAT, &many).status,
        413,
        "small values take more than their text, here more than all of the memory"
    );
    // A small one finds room beside it, and a large one when it has ended.
    let small = service.send("POST", CHAT, JSON, STREAM);
    upstream.next().stop();
    drop(small);
    call.stop();
    assert!(first.rest().body.ends_with("data: [DONE]\n\n"));
    let again = service.send("POST", CHAT, JSON, &body);
    upstream.next().stop();
    drop(again);
}

#[test]
fn answers_share_a_budget_of_bytes() {
    let upstream = Upstream::new();
    let options = ["--retries", "0", "--max-memory", "4M"];
    let service = Service::of(&upstream.url(), &options);
    let large = STREAM.replace("hi", &"x".repeat(1_500_000));
    let mut first = service.send("POST", CHAT, JSON, &large);
    let mut waiting = upstream.next();
    waiting.begin();
    waiting.text("half of ");
    first.until("half of ");
    // The whole answer stays in memory until it ends.
    let whole = STREAM.replace("true", "false");
    let mut other = service.send("POST", CHAT, JSON, &whole);
    let mut call = upstream.next();
    call.begin();
    call.text(&"many words ".repeat(150_000));
    let refused = other.rest();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1")),
        "{}",
        tail(&refused.body)
    );
    assert!(refused.body.contains("memory_full"), "{}", refused.body);
    drop((first, waiting, call));
}

/// A client that tries again as long as it gets 503 would do so for ever.
#[test]
fn an_answer_that_is_larger_than_the_memory_fails_for_good() {
    let words = "many words ".repeat(1000);
    let text = endless("{}", &format!(r#"{{"content":"{words}"}}"#), 8);
    let options = ["--retries", "0", "--max-memory", "1M"];
    let service = Service::of(&Upstream::always(text), &options);
    let response = service.post(CHAT, &STREAM.replace("true", "false"));
    assert_eq!(
        (response.status, response.header("retry-after")),
        (413, None),
        "{}",
        response.body
    );
    for part in ["memory_exceeded", "--max-memory allows 1048576"] {
        assert!(response.body.contains(part), "{}", response.body);
    }
}

/// The most memory that the service ever had, in bytes.
fn peak(service: &Service) -> usize {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", service.id())).expect("a status");
    let line = status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<usize>()
            .ok()
    });
    line.expect("a size") * 1024
}

#[test]
fn a_body_takes_few_times_its_size_however_it_comes() {
    let body = STREAM.replace("hi", &"x".repeat(16 << 20));
    let service = Service::of(&Upstream::always(streamed("warm")), &[]);
    let before = peak(&service);
    assert_eq!(service.post(CHAT, &body).status, 200);
    let times = (peak(&service) - before) / body.len();
    assert!(times < 6, "{times} times");
    let service = Service::of(&Upstream::always(streamed("warm")), &[]);
    let before = peak(&service);
    let body = &body[body.len() - (1 << 20)..];
    let body = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{body}");
    let chunks: String = body
        .chars()
        .map(|byte| format!("1\r\n{byte}\r\n"))
        .collect();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n{JSON}connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut client = service.connect();
    client.write(format!("{head}{chunks}0\r\n\r\n").as_bytes());
    assert!(client.rest().status > 0);
    let times = (peak(&service) - before) / body.len();
    assert!(times < 10, "{times} times");
}

#[test]
fn slow_and_long_requests_end() {
    let limits = [
        "--header-timeout",
        "400ms",
        "--body-timeout",
        "400ms",
        "--connection-timeout",
        "400ms",
        "--max-body",
        "1K",
    ];
    let service = Service::of("http://127.0.0.1:9", &limits);
    // Nothing, a part of a head, and the time after a response.
    service.connect().closed();
    let mut client = service.connect();
    client.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localh");
    client.closed();
    let mut client = service.send("GET", "/health", "connection: keep-alive\r\n", "");
    assert_eq!(client.rest().status, 200);
    // A head that comes a byte at a time never pauses for long. Writing fails once the server has
    // closed.
    let mut client = service.connect();
    let _ = client.stream.write_all(b"GET / HTTP/1.1\r\nx: ");
    while client.stream.write_all(b"a").is_ok() {}
    // A head that is too long.
    let head = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "a".repeat(40 << 10)
    );
    let mut client = service.connect();
    client.write(head.as_bytes());
    assert!(matches!(client.rest().status, 431 | 0));
    // A body that stops, and bodies that are too long: as announced, and in chunks.
    for path in [CHAT, "/api/chat", "/api/ag-ui"] {
        let part = request("POST", path, JSON, STREAM);
        let mut client = service.connect();
        client.write(&part.as_bytes()[..part.len() - 5]);
        assert_eq!(client.rest().status, 408, "{path}");
        assert_eq!(service.post(path, &"x".repeat(2000)).status, 413, "{path}");
        let mut client = service.connect();
        let chunks = format!(
            "transfer-encoding: chunked\r\n\r\n7d0\r\n{}\r\n0\r\n\r\n",
            "x".repeat(2000)
        );
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{JSON}");
        client.write(format!("{head}{chunks}").as_bytes());
        assert_eq!(client.rest().status, 413, "{path}");
    }
    // The service still answers.
    assert_eq!(service.ask("GET", "/health", "", "").status, 200);
}

#[test]
fn a_reader_that_takes_nothing_is_closed_and_slows_nobody() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--reader-timeout", "100ms"]);
    for path in [CHAT, "/v1/events", "/api/chat", "/api/ag-ui"] {
        let body = match path.starts_with("/api/") {
            true => UI_STREAM,
            false => STREAM,
        };
        let _stalled = service.send("POST", path, JSON, body);
        let mut call = upstream.next();
        call.begin();
        let text = "many words ".repeat(10_000);
        // The buffers of the system fill, then the upstream has to wait, then the client is closed,
        // and with it this connection.
        let piece = chunk(&format!(r#"{{"content":"{text}"}}"#), "null");
        let mut sent = 0_usize;
        while call.stream.write_all(piece.as_bytes()).is_ok() {
            sent += piece.len();
            assert!(sent < 1 << 30, "{path}: nobody slows the upstream");
            if sent.is_multiple_of(piece.len() * 16) {
                assert_eq!(service.ask("GET", "/health", "", "").status, 200);
            }
        }
    }
}

#[test]
fn connections_beyond_the_limit_are_refused_and_the_others_live() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--max-connections", "3"]);
    let open = [(); 3].map(|()| {
        let client = service.send("POST", CHAT, JSON, STREAM);
        (client, upstream.next())
    });
    let mut refused = service.connect();
    let response = refused.rest();
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("1"))
    );
    for (mut client, mut call) in open {
        call.begin();
        call.text("here");
        call.stop();
        assert!(client.rest().body.contains("[DONE]"));
    }
    assert_eq!(service.ask("GET", "/health", "", "").status, 200);
}

#[test]
fn an_idle_connection_gives_way_to_another_one() {
    let scratch = Scratch::new();
    let file = scratch.write("keys", KEYS[0]);
    let options = [
        "--max-connections",
        "4",
        "--key-file",
        file.to_str().expect("UTF-8"),
    ];
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &options);
    // A client with a key, between two requests.
    let mut known = service.connect();
    let keep = format!("{}connection: keep-alive\r\n", bearer(KEYS[0]));
    known.write(request("GET", "/health", &keep, "").as_bytes());
    known.until("ok\n");
    // One whose answer is made.
    let mut asking = service.send("POST", CHAT, &bearer(KEYS[0]), STREAM);
    let mut call = upstream.next();
    // The others send nothing.
    let mut idle: Vec<Client> = (0..20).map(|_| service.connect()).collect();
    assert_eq!(service.ask("GET", "/health", "", "").status, 200);
    for client in &mut idle[..17] {
        client.closed();
        assert!(client.bytes().is_empty(), "{}", client.text());
    }
    known.write(request("GET", "/health", &bearer(KEYS[0]), "").as_bytes());
    known.closed();
    assert_eq!(known.text().matches("ok\n").count(), 2, "{}", known.text());
    call.begin();
    call.stop();
    assert!(asking.rest().body.contains("[DONE]"));
}

#[test]
fn ten_thousand_connections_cost_little() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    // As many as the system allows this process.
    let most = limit
        .maximum
        .map_or(10_000, |most| {
            usize::try_from(most).unwrap_or(10_000).saturating_sub(200)
        })
        .min(10_000);
    let service = Service::of(
        "http://127.0.0.1:9",
        &["--max-connections", "20000", "--header-timeout", "5m"],
    );
    let open: Vec<Client> = (0..most).map(|_| service.connect()).collect();
    assert_eq!(service.ask("GET", "/health", "", "").status, 200);
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", service.id())).expect("a status");
    let rss = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<usize>()
            .ok()
    });
    let per_connection = rss.expect("a size") * 1024 / open.len();
    assert!(
        per_connection < 32 << 10,
        "{per_connection} bytes a connection of {}",
        open.len()
    );
}

#[test]
fn a_signal_ends_streams_with_an_error_and_closes_the_upstream() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let upstream = Upstream::new();
        let service = Service::of(&upstream.url(), &["--grace", "50ms"]);
        let mut client = service.send("POST", CHAT, JSON, STREAM);
        let mut call = upstream.next();
        call.begin();
        call.text("half of ");
        client.until("half of ");
        service.signal(signal);
        let response = client.rest();
        assert!(
            response.body.contains("data: {\"error\":"),
            "{}",
            response.body
        );
        assert!(
            !response.body.contains(r#""finish_reason":"stop""#),
            "{}",
            response.body
        );
        call.closed();
        let (status, _) = service.ended();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn a_socket_in_the_file_system_is_its_owners_alone() {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("tc-serve-{}.sock", std::process::id()));
    let name = path.to_str().expect("a path");
    let service = Service::of("http://127.0.0.1:9", &["--unix", name]);
    assert_eq!(
        std::fs::metadata(&path)
            .expect("a socket")
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("a connection");
    stream
        .write_all(request("GET", "/health", "", "").as_bytes())
        .expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("a response");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    service.signal(Signal::TERM);
    assert_eq!(service.ended().0.code(), Some(143));
    assert!(!path.exists(), "the socket is removed at the end");
}
