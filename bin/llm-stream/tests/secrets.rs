//! A server that repeats what it must not: the key, a header of the environment, a parameter of the
//! address. None of it is written.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::{BufReader, Read};
use std::process::Command;

/// Of no known shape, and with bytes that escapes change.
const KEY: &str = "canary/7Q=z+Rk";
/// `user:` and the key in base64.
const BASIC: &str = "dXNlcjpjYW5hcnkvN1E9eitSaw==";
const TENANT: &str = "tenant-5521-north";
const PARAMETER: &str = "p4rameter/9X";

/// The command with a secret of each kind.
fn with_secrets(server: &Server, args: &[&str]) -> Command {
    let url = format!(
        "{}/v1?api_key={}&api-version=1",
        server.url,
        PARAMETER.replace('/', "%2F")
    );
    let mut command = command(&[
        "--base-url",
        &url,
        "--model",
        "m",
        "--no-time",
        "--header",
        "X-Tenant: $TENANT",
    ]);
    command
        .args(args)
        .arg("Hi")
        .env("OPENAI_API_KEY", KEY)
        .env("TENANT", TENANT);
    command
}

/// Asserts that the text holds no part of a secret, in any spelling that a person could undo.
fn is_clean(text: &str) -> bool {
    let spellings = [
        KEY,
        "canary",
        "7Q=z",
        "7Q%3",
        "anary",
        BASIC,
        &BASIC[6..24],
        TENANT,
        "5521",
        PARAMETER,
        "p4ram",
        "9X",
    ];
    !spellings.iter().any(|spelling| text.contains(spelling))
}

/// The secret in all spellings in which a server may repeat it.
fn report() -> Vec<String> {
    let percent = KEY
        .replace('/', "%2F")
        .replace('=', "%3d")
        .replace('+', "%2B");
    let html = KEY.replace('/', "&#x2F;").replace('+', "&#43;");
    let json = KEY.replace('/', "\\/").replace('+', "\\u002b");
    let nested = KEY.replace('/', "\\\\/").replace('+', "\\\\u002B");
    let mut report: Vec<String> = [
        KEY,
        &percent,
        &html,
        &json,
        &nested,
        TENANT,
        PARAMETER,
        &PARAMETER.replace('/', "%2f"),
    ]
    .map(|secret| format!("no access for {secret} here"))
    .to_vec();
    report.push(format!("Authorization: Basic {BASIC}"));
    // So that a message of 200 characters would end inside the key.
    report.push(format!("{}{KEY}", "x ".repeat(97)));
    report
}

#[test]
fn an_error_of_any_kind_repeats_no_secret() {
    for report in report() {
        let json = format!(
            "{{\"error\":{{\"message\":\"{report}\",\"type\":\"auth\",\"echo\":{{\"{report}\":[\"{report}\"]}}}}}}"
        );
        let good = chat(&["a"]);
        let good = &good[..first(&good)];
        for (status, headers, body) in [
            ("401 Unauthorized", JSON, json.clone()),
            (
                "400 Bad Request",
                JSON,
                format!("{{\"detail\":[{{\"msg\":\"{report}\"}}]}}"),
            ),
            ("403 Forbidden", "", report.clone()),
            (
                "404 Not Found",
                "content-type: text/html\r\n",
                format!("<html><h1>{report}</h1></html>"),
            ),
            (
                "200 OK",
                "content-type: text/html\r\n",
                format!("<html><title>{report}</title></html>"),
            ),
            ("200 OK", "", report.clone()),
            ("200 OK", JSON, json.clone()),
            ("200 OK", JSON, format!("{{\"{report}\":1}}")),
            ("200 OK", SSE, format!("data: {json}\n\n")),
            ("200 OK", SSE, format!("{good}data: {json}\n\n")),
            (
                "200 OK",
                SSE,
                format!(
                    "event: error\ndata: {{\"type\":\"error\",\"code\":\"{report}\",\"message\":\"{report}\"}}\n\n"
                ),
            ),
            // Not JSON, and a frame in two lines: the error repeats it.
            ("200 OK", SSE, format!("{good}data: {report}\n\n")),
            (
                "200 OK",
                SSE,
                format!("{good}data: {report}\ndata: {report}\n\n"),
            ),
        ] {
            let server = Server::new(vec![answer(status, headers, &body)]);
            let ran = run(with_secrets(&server, &[]));
            assert_eq!((ran.status, ran.stderr.as_str()), (2, ""), "{ran:?}");
            assert!(is_clean(&ran.stdout), "{status} {body}\n{}", ran.stdout);
            assert!(
                ran.stdout.contains("[red"),
                "{status} {body}\n{}",
                ran.stdout
            );
        }
    }
}

#[test]
fn a_key_in_pieces_is_a_key() {
    let body = format!("data: {{\"error\":{{\"message\":\"no access for {KEY}\"}}}}\n\n");
    for at in 1..body.len() {
        let steps = vec![
            Step::Send(
                format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\n{SSE}\r\n{}",
                    &body[..at]
                )
                .into(),
            ),
            Step::Send(body[at..].into()),
        ];
        let ran = run(with_secrets(&Server::new(vec![steps]), &[]));
        assert!(ran.status == 2 && is_clean(&ran.stdout), "{at} {ran:?}");
    }
    // In two lines of one event, which JSON cannot have in a string.
    let body = format!(
        "data: {{\"error\":\"{}\ndata: {}\"}}\n\n",
        &KEY[..9],
        &KEY[9..]
    );
    let ran = run(with_secrets(
        &Server::new(vec![answer("200 OK", SSE, &body)]),
        &[],
    ));
    assert!(ran.status == 2 && is_clean(&ran.stdout), "{ran:?}");
}

#[test]
fn what_names_the_response_repeats_no_secret() {
    let turn = turn(&["hi"]).id(KEY).model(&format!("m {TENANT}"));
    let body = turn.finish(KEY).stream(Protocol::Chat);
    let ran = run(with_secrets(
        &Server::new(vec![answer("200 OK", SSE, &body)]),
        &[],
    ));
    assert_eq!((ran.status, ran.text().as_str()), (0, "hi"), "{ran:?}");
    assert!(is_clean(&ran.stdout), "{}", ran.stdout);
}

#[test]
fn a_redirect_repeats_no_secret() {
    for to in [
        format!("https://other.example/?next={}", KEY.replace('/', "%2F")),
        format!("https://me:{TENANT}@other.example/v1"),
        format!("//{TENANT}@other.example/v1"),
        format!("/login?a=1&token={PARAMETER}"),
        format!("/login#access_token={KEY};x=1"),
        "/login?a=1#id_token=9X5521&x=1".to_owned(),
    ] {
        let server = Server::new(vec![answer(
            "307 Temporary Redirect",
            &format!("location: {to}\r\n"),
            "",
        )]);
        let ran = run(with_secrets(&server, &[]));
        assert_eq!(ran.event("error")["code"], "redirected");
        assert!(
            is_clean(&ran.stdout) && ran.stdout.contains("[redacted]"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn standard_error_repeats_no_secret() {
    let body = format!(
        "{{\"error\":{{\"message\":\"too many requests with {}\"}}}}",
        KEY.replace('/', "\\u002f")
    );
    let server = Server::new(vec![answer(
        "429 Too Many Requests",
        "retry-after: 60\r\n",
        &body,
    )]);
    let mut child = with_secrets(&server, &[]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let warning = until(&mut stdout, "retry_wait");
    assert!(is_clean(&warning), "{warning}");
    assert!(kill(child.id(), "-TERM"));
    let ran = finish(child, Some(stdout));
    assert!(
        ran.status == 143 && is_clean(&ran.stderr) && ran.stderr.contains("[redacted]"),
        "{ran:?}"
    );
    // Nor do the lines about the way to an answer, and the address of a dry run.
    for args in [&["-v", "--retries", "0"][..], &["--dry-run"]] {
        let ran = run(with_secrets(
            &Server::new(vec![answer("401 Unauthorized", JSON, &body)]),
            args,
        ));
        assert!(
            is_clean(&ran.stderr) && ran.stderr.contains("api_key=[redacted]"),
            "{ran:?}"
        );
    }
    // Nor does the line that ends the command: here it names a file.
    let tape = format!("/nowhere/{TENANT}/tape");
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["a"]))]);
    let ran = run(with_secrets(
        &server,
        &["--tape", &tape, "--tape-mode", "record"],
    ));
    assert!(
        ran.status == 2 && is_clean(&ran.stderr) && ran.stderr.contains("/nowhere/[redacted]/tape"),
        "{ran:?}"
    );
    // What was typed is not repeated either: it may be a key.
    let mut command = command(&[
        "--model",
        "m",
        "--header",
        &format!("X-Api-Key: {TENANT}"),
        "Hi",
    ]);
    let ran = run({
        command.env("OPENAI_API_KEY", KEY);
        command
    });
    assert!(
        is_clean(ran.refusal()) && ran.refusal().contains("X-Api-Key: $NAME"),
        "{ran:?}"
    );
}

#[test]
fn a_tape_holds_no_secret_of_the_environment_or_the_address() {
    let tape = File::new("secrets.tape", "");
    let body = chat(&[&format!("you are {TENANT}")]);
    let server = Server::new(vec![answer("200 OK", SSE, &body)]);
    let ran = run(with_secrets(
        &server,
        &["--tape", tape.path(), "--tape-mode", "record"],
    ));
    assert_eq!(ran.status, 0, "{ran:?}");
    // What the model writes is the conversation's own.
    assert_eq!(ran.text(), format!("you are {TENANT}"));
    let mut text = String::new();
    std::fs::File::open(tape.path())
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(is_clean(&text), "{text}");
    for path in [
        "request.headers.x-tenant",
        "request.headers.authorization",
        "request.url?api_key",
        "response.body",
    ] {
        assert!(text.contains(&format!("\"{path}\"")), "{path}: {text}");
    }
}

#[test]
fn every_secret_keeps_off_plain_http_to_another_machine() {
    let run_with = |url: &str, header: Option<&str>, more: &[&str]| {
        let mut command = command(&[
            "--base-url",
            url,
            "--model",
            "m",
            "--retries",
            "0",
            "--no-time",
        ]);
        command
            .args(header.into_iter().flat_map(|header| ["--header", header]))
            .args(more)
            .arg("Hi");
        run({
            command.env("TENANT", TENANT);
            command
        })
    };
    for (url, header) in [
        ("http://models.invalid/v1", Some("X-Tenant: $TENANT")),
        ("http://models.invalid/v1?api_key=abcdef", None),
        ("http://models.invalid/v1?x=1&Access-Token=abcdef", None),
        ("http://models.invalid/v1?key=a", None),
        ("http://models.invalid/v1?sig=a", None),
        ("http://me:abcdef@models.invalid/v1", None),
        ("http://abcdef@models.invalid/v1", None),
        ("http://127.0.0.1.models.invalid/?token=a", None),
        ("http://[::ffff:192.0.2.1]/?token=a", None),
        (
            "http://no-such-name.localhost.models.invalid/?token=a",
            None,
        ),
    ] {
        let ran = run_with(url, header, &[]);
        assert!(
            ran.refusal().contains("--allow-insecure") && !ran.stderr.contains("abcdef"),
            "{url} {ran:?}"
        );
    }
    // It is sent where it is asked for, and where nothing is secret.
    for (url, more) in [
        (
            "http://models.invalid/v1?api_key=abcdef",
            &["--allow-insecure"][..],
        ),
        ("http://models.invalid/v1?api-version=1", &[]),
    ] {
        let ran = run_with(url, None, more);
        assert_eq!(ran.event("error")["code"], "disconnected", "{ran:?}");
        assert!(!ran.stdout.contains("abcdef"), "{ran:?}");
    }
}

#[test]
fn every_spelling_of_this_machine_gets_the_key() {
    let port = |server: &Server| server.url.rsplit_once(':').unwrap().1.to_owned();
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    let mapped = has_ipv6.then_some("[::ffff:127.0.0.1]");
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "127.1",
        "0x7f000001",
        "2130706433",
    ]
    .into_iter()
    .chain(mapped)
    {
        let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
        let mut command = command(&[
            "--base-url",
            &format!("http://{host}:{}", port(&server)),
            "--model",
            "m",
            "Hi",
        ]);
        // A proxy would be another machine.
        command
            .env("OPENAI_API_KEY", KEY)
            .env("http_proxy", "http://127.0.0.1:1");
        let ran = run(command);
        assert_eq!(
            (ran.status, ran.text().as_str()),
            (0, "x"),
            "{host} {ran:?}"
        );
        assert_eq!(
            server.asked()[0].header("authorization"),
            Some(format!("Bearer {KEY}").as_str()),
            "{host}"
        );
    }
}
