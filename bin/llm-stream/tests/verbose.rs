//! What people may see of a request: `--verbose` and `--dry-run`.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::Read;
use std::process::Stdio;

/// The lines on standard error, without the command's name.
fn reported(ran: &Ran) -> Vec<&str> {
    ran.stderr
        .lines()
        .map(|line| line.strip_prefix("llm-stream: ").unwrap())
        .collect()
}

#[test]
fn each_step_is_a_line() {
    let later = "retry-after-ms: 1\r\n";
    let server = Server::new(vec![
        answer(
            "503 Service Unavailable",
            later,
            "{\"error\":{\"message\":\"busy\"}}",
        ),
        answer(
            "400 Bad Request",
            "",
            "{\"error\":{\"message\":\"stream is not supported\"}}",
        ),
        answer("200 OK", SSE, chat(&["a", "b"])),
    ]);
    let ran = run(asking(&server, &["-v", "Hi"]));
    assert_eq!((ran.status, ran.text().as_str()), (0, "ab"), "{ran:?}");
    let post = format!("POST {}/v1/chat/completions", server.url);
    let lines = reported(&ran);
    let wait = lines[2];
    assert!(
        wait.contains("busy") && wait.contains("asking again in 0 s (retry-after-ms: 1)"),
        "{wait}"
    );
    let want = [
        &post,
        "HTTP 503",
        wait,
        &post,
        "HTTP 400",
        "streaming is refused; asking for the whole answer at once",
        &post,
        "HTTP 200",
        "first event",
        "the stream ended",
    ];
    assert_eq!(lines, want);
    // The events are the same, and without the option nothing is reported.
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["a", "b"]))]);
    let quiet = run(asking(&server, &["Hi"]));
    assert_eq!((quiet.stderr.as_str(), quiet.text().as_str()), ("", "ab"));
}

#[test]
fn times_are_said_unless_they_are_left_out() {
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["a"]))]);
    let ran = run(command(&[
        "--base-url",
        &server.url,
        "-m",
        "m",
        "--verbose",
        "Hi",
    ]));
    for what in [
        "HTTP 200 after ",
        "first event after ",
        "the stream ended after ",
    ] {
        assert!(
            ran.stderr.contains(what) && ran.stderr.contains(" ms\n"),
            "{ran:?}"
        );
    }
    // A connection that is lost names its reason, at every attempt.
    let ran = run(command(&[
        "--base-url",
        "http://127.0.0.1:1",
        "-m",
        "m",
        "-v",
        "--retries",
        "1",
        "Hi",
    ]));
    assert_eq!(
        (ran.status, ran.stderr.matches("POST ").count()),
        (2, 2),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("asking again within 0.5 s"), "{ran:?}");
}

#[test]
fn tapes_bodies_and_words_are_named() {
    let tape = File::new("verbose.tape", "");
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["a"]))]);
    assert_eq!(
        run(asking(
            &server,
            &["--tape", tape.path(), "--tape-mode", "record", "Hi"]
        ))
        .status,
        0
    );
    let ran = run_with(command(&["--tape", tape.path(), "-m", "m", "-v"]), "Hi\n");
    assert_eq!(
        reported(&ran)[..2],
        ["standard input: text, 2 bytes", "the tape answers"],
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("POST"), "nobody is asked: {ran:?}");
    let ran = run(command(&["-r", tape.path(), "-v", "--no-time"]));
    assert_eq!(
        reported(&ran)[0],
        format!("{}, line 1: openai-chat, HTTP 200", tape.path())
    );
    let body = File::new("verbose.sse", chat(&["a"]));
    let ran = run(command(&["-r", body.path(), "-v"]));
    assert_eq!(reported(&ran)[0], format!("{}: openai-chat", body.path()));
}

#[test]
fn no_secret_is_shown() {
    const KEY: &str = "k3y-0123456789-canary";
    let server = Server::new(vec![
        answer(
            "503 Service Unavailable",
            "retry-after-ms: 1\r\n",
            format!("{{\"error\":{{\"message\":\"bad {KEY}\"}}}}"),
        ),
        answer("200 OK", SSE, chat(&["a"])),
    ]);
    let url = server.url.replace("http://", &format!("http://me:{KEY}@"))
        + &format!("/v1?api_key={KEY}&echo={KEY}&v=2");
    let asks = |more: &[&str]| {
        let mut command = command(&[
            "--base-url",
            &url,
            "-m",
            "m",
            "--api-key-env",
            "KEY",
            "--header",
            "X-Other: $KEY",
        ]);
        command.args(more).env("KEY", KEY);
        run(command)
    };
    for ran in [
        asks(&["-v", "Hi"]),
        asks(&["--dry-run", "Hi"]),
        asks(&["--dry-run", "-v", "Hi"]),
    ] {
        assert!(
            ran.status == 0 && ran.stderr.contains("POST http://[redacted]@127.0.0.1:"),
            "{ran:?}"
        );
        assert!(
            !ran.stderr.contains("canary") && ran.stderr.contains("v=2"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_dry_run_prints_the_body_alone_and_its_address_beside_it() {
    for (api, address) in [
        ("openai", "https://api.openai.com/v1/chat/completions"),
        ("claude", "https://api.anthropic.com/v1/messages"),
        (
            "google",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        ("ollama", "http://localhost:11434/api/chat"),
    ] {
        let ran = run(command(&["--dry-run", "-a", api, "-m", "m", "Hi"]));
        assert_eq!(
            (ran.status, reported(&ran)),
            (0, vec![&*format!("POST {address}")])
        );
        assert!(
            ran.stdout.lines().count() == 1 && ran.stdout.starts_with('{'),
            "{ran:?}"
        );
    }
}

/// What a dry run prints on a terminal, and on a pipe.
fn printed(text: &str) -> (String, String) {
    let (mut terminal, other_end) = terminal().unwrap();
    let args = ["--dry-run", "-m", "m", text];
    let mut child = command(&args)
        .stdout(Stdio::from(other_end))
        .spawn()
        .unwrap();
    let mut screen = vec![];
    // A terminal whose last other end was closed gives an error.
    let _ = terminal.read_to_end(&mut screen);
    assert!(child.wait().unwrap().success());
    (
        String::from_utf8(screen).unwrap(),
        run(command(&args)).stdout,
    )
}

#[test]
fn a_dry_run_sends_a_terminal_nothing_that_it_would_act_on() {
    let hidden = "\u{1b}]0;x\u{7}\u{7f}\u{85}\u{9b}2J\u{ad}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0001}\u{e0041}\u{e007f}";
    let (screen, piped) = printed(&format!("é 中 👨\u{200d}👩 {hidden}"));
    let harmful = |c: char| event::is_hidden(c) && c != '\r';
    assert!(
        !screen.contains(harmful)
            && screen.contains("é 中 👨\u{200d}👩 ")
            && screen.contains("\\udb40\\udc41"),
        "{screen:?}"
    );
    assert!(
        screen.contains("\n  \"model\": \"m\""),
        "for people it has lines: {screen}"
    );
    let of = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(of(&screen), of(&piped), "the value is the same");
    assert!(piped.contains('\u{202e}'), "a program gets what is sent");
}

#[test]
fn a_message_shows_the_hidden_characters_of_a_name() {
    let ran = run(command(&["--replay", "no\u{202e}such\u{200f}\u{e0041}"]));
    assert!(
        !ran.refusal()
            .contains(|c: char| event::is_hidden(c) && c != '\n'),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("no\\u{202e}such"), "{ran:?}");
}

#[test]
fn how_auto_decides_is_said() {
    let tools = File::new(
        "verbose-tools.json",
        "[{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}]",
    );
    let list = File::new("verbose-list", "openai-chat/m tag hermes\n");
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["a"]))]);
    let ran = run(asking(
        &server,
        &[
            "-v",
            "-t",
            tools.path(),
            "--tools-mode",
            "auto",
            "--tools-mode-file",
            list.path(),
            "Hi",
        ],
    ));
    assert!(
        reported(&ran)[0].starts_with(
            "tools mode auto: {\"mode\":\"tag\",\"dialect\":\"hermes\",\"source\":\"allow-list\""
        ),
        "{ran:?}"
    );
}
