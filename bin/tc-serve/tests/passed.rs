//! Paths that are passed to the provider as they are.

use crate::service::{Service, Upstream};
use std::time::Duration;

const JSON: &str = "content-type: application/json\r\n";
const SPAN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const FORM: &str = "content-type: multipart/form-data; boundary=b\r\n";

#[test]
fn a_request_and_its_answer_are_passed_as_they_are_with_the_providers_key() {
    let upstream = Upstream::new();
    let mut service = Service::of(
        &upstream.url(),
        &[
            "--access-log",
            "-",
            "--pass",
            "/api/tags",
            "--key-file",
            &key_file("as-is"),
        ],
    );
    let clients = "authorization: Bearer client-key-of-16\r\nx-api-key: client-key-of-16\r\ncookie: c=1\r\nconnection: x-hop, close\r\nx-hop: 1\r\ntracestate: rojo=1\r\n";
    let clients = format!("traceparent: {SPAN}\r\n{clients}");
    for (method, path, kind, body, upstream_path) in [
        (
            "POST",
            "/v1/embeddings",
            JSON,
            r#"{"model": "e",  "input": ["a"]}"#,
            "/v1/embeddings",
        ),
        (
            "POST",
            "/embeddings?x=1&api_key=s",
            JSON,
            "[]",
            "/v1/embeddings?x=1",
        ),
        ("POST", "/v1/completions", JSON, "{}", "/v1/completions"),
        ("POST", "/rerank", JSON, "{}", "/v1/rerank"),
        ("POST", "/tokenize", JSON, "{}", "/tokenize"),
        ("POST", "/v1/detokenize", JSON, "{}", "/detokenize"),
        ("POST", "/infill", JSON, "{}", "/infill"),
        (
            "POST",
            "/v1/audio/transcriptions",
            FORM,
            "--b\r\n\r\nabc\r\n--b--",
            "/v1/audio/transcriptions",
        ),
        (
            "GET",
            "/v1/audio/voices",
            "accept: text/plain\r\n",
            "",
            "/v1/audio/voices",
        ),
        ("GET", "/api/tags", "", "", "/api/tags"),
    ] {
        let mut client = service.send(method, path, &format!("{kind}{clients}"), body);
        let mut call = upstream.next();
        assert_eq!(
            call.request.line,
            format!("{method} {upstream_path} HTTP/1.1"),
            "{path}"
        );
        assert_eq!(call.request.text, body, "{path}");
        let head = call.request.to_string().to_lowercase();
        assert!(
            head.contains("authorization: bearer sk-upstream-secret"),
            "{head}"
        );
        assert_eq!(call.request.header("traceparent"), Some(SPAN), "{head}");
        assert_eq!(call.request.header("tracestate"), Some("rojo=1"), "{head}");
        assert!(
            !["client-key", "cookie", "x-hop"]
                .iter()
                .any(|word| head.contains(word)),
            "{head}"
        );
        assert_eq!(
            head.contains("multipart/form-data; boundary=b"),
            kind == FORM,
            "{head}"
        );
        call.send(
            b"HTTP/1.1 201 Made\r\ncontent-type: a/b\r\nx-ratelimit-remaining: 5\r\nset-cookie: c=2\r\nx-one: 1\r\n",
        );
        call.send(b"connection: close, x-one\r\nkeep-alive: 5\r\naccess-control-allow-origin: *\r\ncontent-length: 4\r\n\r\n\xff\x00\n.");
        drop(call);
        let response = client.rest();
        assert_eq!(
            (response.status, response.header("content-type")),
            (201, Some("a/b")),
            "{response:?}"
        );
        assert_eq!(response.header("x-ratelimit-remaining"), Some("5"));
        for name in [
            "set-cookie",
            "x-one",
            "keep-alive",
            "access-control-allow-origin",
        ] {
            assert_eq!(response.header(name), None, "{name}");
        }
        assert!(
            client.bytes().windows(4).any(|four| four == b"\xff\x00\n."),
            "{path}"
        );
        let line = service.line(|line| line.contains("\"access\""));
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let logged = path.split('?').next().unwrap_or_default();
        assert_eq!(
            (&line["path"], &line["status"], &line["bytes"]),
            (&logged.into(), &201.into(), &4.into()),
            "{line}"
        );
    }
}

#[test]
fn what_is_not_passed_is_refused_here() {
    let service = Service::of(
        "http://127.0.0.1:9",
        &[
            "--max-body",
            "1K",
            "--pass",
            "/api/*",
            "--key-file",
            &key_file("refused"),
        ],
    );
    let key = "authorization: Bearer client-key-of-16\r\n";
    let long = "x".repeat(2000);
    for (method, path, headers, body, status) in [
        ("POST", "/v1/embeddings", JSON, "{}", 401),
        ("GET", "/v1/embeddings", key, "", 405),
        (
            "POST",
            "/v1/embeddings",
            &*format!("{key}{FORM}"),
            "--b--",
            415,
        ),
        (
            "POST",
            "/v1/audio/speech",
            &format!("{key}content-type: text/plain\r\n"),
            "x",
            415,
        ),
        (
            "POST",
            "/v1/embeddings",
            &format!("{key}{JSON}"),
            &long,
            413,
        ),
        ("POST", "/v1/embeddings", &format!("{key}{JSON}"), "{}", 502),
        (
            "POST",
            "/v1/audio/../models",
            &format!("{key}{JSON}"),
            "{}",
            404,
        ),
        (
            "POST",
            "/v1/audio/%2e%2e/models",
            &format!("{key}{JSON}"),
            "{}",
            404,
        ),
        (
            "POST",
            "/v1/audio/..%2Fmodels",
            &format!("{key}{JSON}"),
            "{}",
            404,
        ),
        ("GET", "/api/../props", key, "", 404),
        ("GET", "/api//props", key, "", 404),
        (
            "POST",
            "/v1/images/generations",
            &format!("{key}{JSON}"),
            "{}",
            404,
        ),
    ] {
        let response = service.ask(method, path, headers, body);
        assert_eq!(response.status, status, "{method} {path}: {response:?}");
    }
    // Nothing answers there but a command, or recorded answers.
    let command = Service::start(&["--no-key", "--", "true"]);
    assert_eq!(command.post("/v1/embeddings", "{}").status, 404);
}

#[test]
fn an_answer_streams_and_a_client_that_leaves_closes_it() {
    let upstream = Upstream::new();
    let service = Service::of(&upstream.url(), &["--max-streams", "1"]);
    for stage in 0..3 {
        let mut client = service.send("POST", "/v1/completions", JSON, r#"{"stream":true}"#);
        let mut call = upstream.next();
        if stage > 0 {
            call.begin();
            client.until("\r\n\r\n");
        }
        if stage > 1 {
            for word in ["data: one\n\n", "data: two\n\n"] {
                call.send(word.as_bytes());
                // The next word is not written before this one is here.
                client.until(word);
            }
        }
        drop(client);
        assert!(call.closed() < Duration::from_secs(1), "stage {stage}");
    }
}

#[test]
fn a_refusal_of_the_provider_is_passed_without_its_key_and_a_loss_breaks_the_answer() {
    let upstream = Upstream::new();
    let mut service = Service::of(&upstream.url(), &["--access-log"]);
    let mut client = service.send("POST", "/v1/embeddings", JSON, "{}");
    let body = r#"{"error":{"message":"sk-upstream-secret is over its limit"}}"#;
    upstream.next().refuse(429, "retry-after: 7\r\n", body);
    let response = client.rest();
    assert_eq!(
        (response.status, response.header("retry-after")),
        (429, Some("7")),
        "{response:?}"
    );
    assert!(
        response.body.contains("is over its limit") && !response.body.contains("sk-upstream"),
        "{response:?}"
    );

    let mut client = service.send("POST", "/v1/embeddings", JSON, "{}");
    upstream
        .next()
        .refuse(307, "location: http://elsewhere/\r\n", "");
    let response = client.rest();
    assert_eq!(
        (response.status, response.header("location")),
        (502, None),
        "{response:?}"
    );

    let mut client = service.send("POST", "/v1/embeddings", JSON, "{}");
    let mut call = upstream.next();
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf of it");
    client.until("half of it");
    call.cut();
    client.closed();
    assert!(!client.text().ends_with("0\r\n\r\n"), "{}", client.text());
    let line = service.line(|line| line.contains("\"upstream_unreachable\""));
    assert!(
        line.contains("\"path\":\"/v1/embeddings\"") && !line.contains("\"cut\""),
        "{line}"
    );
}

/// A file with the key `client-key-of-16`.
fn key_file(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("tc-serve-{name}-{}.keys", std::process::id()));
    std::fs::write(&path, "client-key-of-16\n").expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}
