//! What the client of an API reads when something goes wrong: about its own request, in the shape
//! of its API.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::{JSON, Service, answer, provider};
use serde_json::{Value, json};

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];
/// The status and the error that `path` has for a short request.
fn error(service: &Service, path: &str) -> (String, Value) {
    let member = if path.ends_with("responses") {
        "input"
    } else {
        "messages"
    };
    let body = json!({"model": "m", "max_tokens": 9, member: [{"role": "user", "content": "hi"}]})
        .to_string();
    let (head, body) = service.reply("POST", path, &body);
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}"));
    (
        head.split(' ').nth(1).unwrap().to_owned(),
        body["error"].clone(),
    )
}

#[test]
fn the_providers_words_reach_the_client_without_ours() {
    for (status, body, word, kinds) in [
        (
            "400 Bad Request",
            json!({"error": {"message": "n is too large", "type": "invalid_request_error", "param": "n", "code": null}}),
            "n is too large",
            ["invalid_request_error", "invalid_request_error"],
        ),
        (
            "429 Too Many",
            json!({"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}}),
            "You exceeded your current quota.",
            ["insufficient_quota", "billing_error"],
        ),
        (
            "413 Too Large",
            json!({"error": {"message": "request_too_large: at most 32 MB", "type": "invalid_request_error", "param": null, "code": "request_too_large"}}),
            "request_too_large: at most 32 MB",
            ["invalid_request_error", "request_too_large"],
        ),
        (
            "400 Bad Request",
            json!({"error": {"message": "This model's maximum context length is 9 tokens.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}),
            "maximum context length is 9 tokens.",
            ["invalid_request_error", "invalid_request_error"],
        ),
        (
            "503 Busy",
            json!({}),
            "127.0.0.1",
            ["server_error", "api_error"],
        ),
    ] {
        let sent = body.to_string();
        let provider =
            provider(move |_, _, stream| answer(stream, status, JSON, sent.as_bytes(), None));
        let service = Service::new(&["--base-url", &provider.url, "--retries", "0"]);
        for path in PATHS {
            let (got, error) = error(&service, path);
            assert_eq!(got, status[..3], "{path} {error}");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.contains(word) && !message.starts_with("HTTP"),
                "{path}: {message}"
            );
            assert!(
                !["--", ".md", "log"]
                    .iter()
                    .any(|ours| message.contains(ours)),
                "{path}: {message}"
            );
            assert_eq!(
                error["type"],
                kinds[usize::from(path == "/v1/messages")],
                "{path} {error}"
            );
            if path != "/v1/messages" {
                let code = body["error"]["code"].as_str();
                assert_eq!(error["param"], body["error"]["param"], "{error}");
                match code {
                    Some("request_too_large") | None => {}
                    Some(code) => assert_eq!(error["code"], code, "{error}"),
                }
            }
        }
    }
}

#[test]
fn the_server_that_was_lost_is_named_by_its_host_alone() {
    let provider =
        provider(|_, _, stream| answer(stream, "200 OK", JSON, b"{\"choices\":[", Some(5)));
    let secret = format!("{}/path-with-a-secret", provider.url);
    let host = provider.url.trim_start_matches("http://");
    for (url, host) in [
        (secret.as_str(), host),
        ("http://127.0.0.1:9/path-with-a-secret", "127.0.0.1:9"),
    ] {
        let service = Service::new(&["--base-url", url, "--retries", "0"]);
        for path in PATHS {
            let (status, error) = error(&service, path);
            let message = error["message"].as_str().unwrap();
            assert_eq!(status, "502", "{message}");
            assert!(
                message.contains(host) && !message.contains("secret") && !message.contains("://"),
                "{message}"
            );
        }
    }
}

#[test]
fn an_event_that_is_too_long_names_the_option_of_the_service() {
    let long = format!("data: {{\"id\":\"{}\"}}\n\n", "x".repeat(9000));
    let provider = provider(move |_, _, stream| {
        answer(
            stream,
            "200 OK",
            "content-type: text/event-stream\r\n",
            long.as_bytes(),
            None,
        )
    });
    let service = Service::new(&[
        "--base-url",
        &provider.url,
        "--retries",
        "0",
        "--max-answer",
        "4K",
    ]);
    let (_, error) = error(&service, "/v1/chat/completions");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("--max-answer") && !message.contains("--max-line"),
        "{message}"
    );
}

#[test]
fn a_path_that_does_not_exist_has_the_shape_of_its_api() {
    let service = Service::new(&["--base-url", "http://127.0.0.1:9"]);
    for (path, is_anthropic) in [
        ("/v1/messages/batches", true),
        ("/v1/nothing", false),
        ("/v1/responses/resp_1", false),
    ] {
        let (head, body) = service.reply("POST", path, "{}");
        assert!(head.starts_with("http/1.1 404"), "{path} {head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["type"] == "error", is_anthropic, "{body}");
        assert_eq!(body["error"]["type"], "not_found_error", "{body}");
    }
}
