//! Servers that cannot be reached, or that answer with something else: the error names the address
//! and what to do.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The message of the error event against this address, which is the whole of a failed turn.
fn message(url: &str, args: &[&str]) -> String {
    let mut command = command(&[
        "--base-url",
        url,
        "--model",
        "m",
        "--no-time",
        "--retries",
        "0",
    ]);
    command.args(args).arg("Hi");
    let ran = run(command);
    assert_eq!(
        (ran.status, ran.types().as_str()),
        (2, "message stream_start error stream_end"),
        "{ran:?}"
    );
    let error = ran.event("error");
    assert_eq!(error["retryable"], true);
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn an_error_of_the_connection_names_the_address_and_a_remedy() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    // Answers at once: a greeting of TLS has no lines that a request could be read by.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let no_tls = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        let _ = stream.read(&mut [0; 4096]);
    });
    let other = Server::new(vec![vec![Step::Send(
        b"\x15\x03\x01\x00\x02\x02\x16".to_vec(),
    )]]);
    for (url, says, remedy) in [
        (
            format!("http://{closed}"),
            "refused",
            "start the server, or correct the port in --base-url",
        ),
        (
            "http://no-such-host.invalid".to_owned(),
            "the name cannot be resolved",
            "check the name in --base-url",
        ),
        (
            format!("https://{no_tls}"),
            "TLS failed",
            "write http:// in --base-url",
        ),
        (
            other.url.clone(),
            "something else than HTTP",
            "write https:// in --base-url",
        ),
    ] {
        let message = message(&url, &[]);
        assert!(
            message.contains(&format!("{url}/v1/chat/completions")),
            "{message}"
        );
        assert!(
            message.contains(says) && message.contains(remedy),
            "{message}"
        );
    }
}

#[test]
fn an_address_is_named_without_what_may_be_a_key() {
    let message = message("http://me:pass-word-1@127.0.0.1:1/v1?api_key=abcdefgh", &[]);
    assert!(
        message.contains("http://127.0.0.1:1/v1/chat/completions:"),
        "{message}"
    );
    assert!(
        !message.contains("pass-word-1") && !message.contains("abcdefgh"),
        "{message}"
    );
}

#[test]
fn a_flood_of_headers_is_an_error() {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    for n in 0..100_000 {
        head.extend_from_slice(format!("x-{n}: 1\r\n").as_bytes());
    }
    let ran = run(asking(
        &Server::new(vec![vec![Step::Send(head)]]),
        &["--retries", "0", "Hi"],
    ));
    assert_eq!(
        (ran.status, &ran.event("error")["code"]),
        (2, &"disconnected".into()),
        "{ran:?}"
    );
    assert!(
        ran.event("error")["message"]
            .as_str()
            .unwrap()
            .contains("too large"),
        "{ran:?}"
    );
}

#[test]
fn a_conversation_that_is_too_long_is_not_sent_again() {
    let body = "{\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\",\"type\":\"server_error\"}}";
    let server = Server::new(vec![
        answer("500 Internal Server Error", JSON, body),
        vec![],
    ]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!((ran.status, server.asked().len()), (2, 1), "{ran:?}");
    let error = ran.event("error");
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&"context_overflow".into(), &false.into())
    );
}

#[test]
fn a_refusal_of_tools_names_the_mode_that_does_without() {
    let tools = File::new(
        "refused-tools.json",
        "[{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}]",
    );
    let server = Server::of_provider(vec![answer(
        "400 Bad Request",
        JSON,
        "{\"error\":\"phi4 does not support tools\"}",
    )]);
    let ran = run(asking(&server, &["--tools", tools.path(), "Hi"]));
    let message = ran.event("error")["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("phi4 does not support tools") && message.contains("--tools-mode auto"),
        "{message}"
    );
}

#[test]
fn a_connection_that_is_never_made_names_the_address_and_the_option() {
    // A server that accepts nothing, with a full queue: the system leaves what else comes without
    // an answer.
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&socket, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let address = std::net::TcpListener::from(socket.try_clone().unwrap())
        .local_addr()
        .unwrap();
    let mut queue = vec![];
    while let Ok(waiting) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        queue.push(waiting);
    }
    let mut command = command(&[
        "--base-url",
        &format!("http://{address}"),
        "--model",
        "m",
        "--retries",
        "0",
        "--connect-timeout",
    ]);
    command.args(["100ms", "Hi"]);
    let error = run(command).event("error");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("http://{address}/v1/chat/completions")),
        "{message}"
    );
    assert!(
        message.contains("--connect-timeout") && error["code"] == "timeout",
        "{error}"
    );
}

/// As in a bare image, where no package has brought certificates.
#[test]
fn a_system_without_certificates_is_told_what_to_install() {
    let mut command = command(&["--base-url", "https://127.0.0.1:9/v1", "--model", "m", "Hi"]);
    command.env("SSL_CERT_FILE", "/dev/null");
    let ran = run(command);
    assert!(
        ran.refusal().starts_with(
            "llm-stream: install the certificates of authorities (Debian: ca-certificates)"
        ),
        "{ran:?}"
    );
    // Without a model that comes first: no address is known to be the right one.
    let mut command = self::command(&["Hi"]);
    command.env("SSL_CERT_FILE", "/dev/null");
    let ran = run(command);
    assert!(
        ran.refusal().starts_with("llm-stream: no model: "),
        "{ran:?}"
    );
}
