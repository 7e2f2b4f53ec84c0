//! Tapes: recorded against a scripted server, played offline, and never with a credential on them.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted;
use crate::scripted::*;
use std::io::BufReader;
use std::process::Command;

/// A tape of a test's own, which goes with the test.
struct Tape(File);

impl Tape {
    fn new() -> Tape {
        Tape(File::absent("turn.tape"))
    }

    fn path(&self) -> &str {
        self.0.path()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap_or_default()
    }

    /// The command with this tape, against `server` if there is one.
    fn with(&self, server: Option<&Server>, mode: &str, args: &[&str]) -> Command {
        let mut command = command(&["--tape", self.path(), "--tape-mode", mode, "--model", "m"]);
        if let Some(server) = server {
            command.args(["--base-url", &server.url]);
        }
        command.args(args);
        command
    }
}

/// The output without `timestamp`, which the replay of a recording lacks.
fn undated(stdout: &str) -> String {
    let (before, after) = stdout.split_once(",\"timestamp\":").expect("a date");
    let digits = after.trim_start_matches(|c: char| c.is_ascii_digit());
    assert!(!digits.contains("timestamp"), "{stdout}");
    format!("{before}{digits}")
}

#[test]
fn what_was_recorded_plays_to_the_byte_times_included() {
    let tape = Tape::new();
    let body = chat(&["Grü", "ße"]);
    let server = Server::new(vec![
        answer(
            "429 Too Many Requests",
            "retry-after-ms: 1\r\n",
            "{\"error\":{\"message\":\"later\"}}",
        ),
        vec![
            sse_head(),
            Step::Send(body.as_bytes()[..first(&body) - 9].to_vec()),
            Step::Silence(std::time::Duration::from_millis(20)),
            Step::Send(body.as_bytes()[first(&body) - 9..].to_vec()),
        ],
    ]);
    let live = run(tape.with(Some(&server), "record", &["Hi"]));
    assert_eq!(
        (live.status, live.text().as_str()),
        (0, "Grüße"),
        "{live:?}"
    );
    for speed in ["max", "real", "4"] {
        let played = run(tape.with(None, "replay", &["--speed", speed, "Hi"]));
        assert_eq!((played.status, &played.stdout), (0, &undated(&live.stdout)));
    }
    // The same from the environment; the model is that of the tape.
    let mut command = command(&["Hi"]);
    command.env("LLM_TAPE", tape.path());
    assert_eq!(run(command).stdout, undated(&live.stdout));
    // --replay shows every exchange, the refused one too.
    let ran = run(scripted::command(&["--replay", tape.path(), "--no-time"]));
    assert_eq!((ran.status, ran.text().as_str()), (2, "Grüße"), "{ran:?}");
    assert_eq!(ran.event("error")["code"], "http_429");
    assert_eq!(ran.types().matches("stream_start").count(), 2);
    assert!(ran.events().iter().all(|e| e["stream"] == tape.path()));
}

#[test]
fn a_loop_of_turns_goes_onto_one_tape_and_a_request_finds_its_answer() {
    let tape = Tape::new();
    for question in ["one", "two"] {
        let server = Server::new(vec![answer("200 OK", SSE, chat(&[question]))]);
        assert_eq!(
            run(tape.with(Some(&server), "record", &[question])).status,
            0
        );
    }
    let text = tape.text();
    assert_eq!(text.matches("{\"tape\":1,").count(), 2);
    assert!(
        text.contains("\n\n{\"tape\""),
        "a person sees where a turn begins: {text}"
    );
    for question in ["two", "one", "two"] {
        assert_eq!(run(tape.with(None, "replay", &[question])).text(), question);
    }
    // Sampling does not count, nor does what surrounds the request.
    assert_eq!(
        run(tape.with(None, "replay", &["--param", "temperature=0", "one"])).text(),
        "one"
    );
    let miss = run(tape.with(None, "replay", &["three"]));
    assert_eq!(miss.status, 2);
    let error = miss.event("error");
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&"tape_miss".into(), &false.into())
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("differs first at messages[0].content: \"three\" here, \"t"),
        "{message}"
    );
    assert!(miss.types().ends_with("error stream_end"));
}

#[test]
fn auto_asks_once_and_keeps_no_failure() {
    let tape = Tape::new();
    let server = Server::new(vec![answer("401 Unauthorized", JSON, "{}")]);
    assert_eq!(run(tape.with(Some(&server), "auto", &["Hi"])).status, 2);
    assert_eq!(tape.text(), "");
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["ok"])), vec![]]);
    let first = run(tape.with(Some(&server), "auto", &["--no-time", "Hi"]));
    let second = run(tape.with(Some(&server), "auto", &["--no-time", "Hi"]));
    assert_eq!(
        (first.status, &first.stdout, server.asked().len()),
        (0, &second.stdout, 1)
    );
    // What is on the tape needs no key, what is not does.
    assert_eq!(
        run(tape.with(None, "auto", &["--no-time", "Hi"])).stdout,
        first.stdout
    );
    assert!(
        run(tape.with(None, "auto", &["another"]))
            .refusal()
            .contains("OPENAI_API_KEY")
    );
}

#[test]
fn a_turn_that_was_stopped_is_not_recorded() {
    let tape = Tape::new();
    let body = chat(&["a"]);
    let (closed, is_closed) = std::sync::mpsc::channel();
    let server = Server::new(vec![vec![
        sse_head(),
        Step::Send(body.as_bytes()[..first(&body)].to_vec()),
        Step::UntilClosed(closed),
    ]]);
    let mut child = tape.with(Some(&server), "record", &["Hi"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    until(&mut stdout, "content_delta");
    drop(stdout);
    assert_eq!(finish(child, None).status, 0);
    is_closed.recv_timeout(GUARD).unwrap();
    assert_eq!(tape.text(), "");
}

#[test]
fn failures_are_played_too() {
    let tape = Tape::new();
    let body = chat(&["a", "b"]);
    let first = first(&body);
    let server = Server::new(vec![vec![Step::Send(
        format!(
            "HTTP/1.1 200 OK\r\n{SSE}content-length: 9999\r\n\r\n{}",
            &body[..first]
        )
        .into(),
    )]]);
    let live = run(tape.with(Some(&server), "record", &["--no-time", "Hi"]));
    let played = run(tape.with(None, "replay", &["--no-time", "Hi"]));
    assert_eq!((live.status, played.status), (2, 2));
    assert!(tape.text().contains(",\"end\",\"reset\"]"));
    assert_eq!(live.types(), played.types());
    assert_eq!(
        (
            played.event("error")["code"].as_str(),
            played.text().as_str()
        ),
        (Some("disconnected"), "a")
    );
}

#[test]
fn no_credential_gets_onto_a_tape() {
    let tape = Tape::new();
    let canary = "sk-proj-C4n4ry0123456789abcdef";
    let mut server = Server::new(vec![answer(
        "200 OK",
        &format!(
            "{SSE}set-cookie: s={canary}\r\nx-request-id: {canary}\r\nopenai-organization: org-canary\r\n"
        ),
        chat(&[&format!("your key is {canary}, is it not?"), "C4n4ry"]),
    )]);
    server.url += &format!("/v1?key={canary}");
    let mut command = tape.with(
        Some(&server),
        "record",
        &[
            "--header",
            "X-Api-Key: $HIDDEN",
            "--system",
            canary,
            &format!("I use {canary}"),
        ],
    );
    command
        .env("OPENAI_API_KEY", canary)
        .env("HIDDEN", "another-C4n4ry-key");
    assert_eq!(run(command).status, 0);
    assert!(
        server.asked()[0].body.to_string().contains(canary),
        "the provider gets what was typed"
    );
    let text = tape.text();
    assert!(
        !text.contains(canary) && !text.contains("another-C4n4ry") && !text.contains("org-canary"),
        "{text}"
    );
    for path in [
        "request.headers.authorization",
        "request.headers.x-api-key",
        "request.url",
        "request.body.messages[0].content",
        "response.headers.set-cookie",
        "response.body",
    ] {
        assert!(text.contains(&format!("\"{path}\"")), "{path}: {text}");
    }
    // The same turn finds its answer although both were changed on the tape.
    let played = run(tape.with(
        None,
        "replay",
        &["--system", canary, &format!("I use {canary}")],
    ));
    assert_eq!(played.status, 0, "{played:?}");
    assert!(played.text().contains("your key is [redacted], is it not?"));
}

#[test]
fn a_turn_that_fell_back_plays_as_it_was() {
    let tape = Tape::new();
    let server = Server::new(vec![
        answer("405 Method Not Allowed", "", ""),
        answer("200 OK", JSON, turn(&["whole"]).whole(Protocol::Chat)),
    ]);
    let live = run(tape.with(Some(&server), "record", &["Hi"]));
    assert_eq!(
        (live.status, &live.event("stream_start")["fallback"]),
        (0, &"sync".into()),
        "{live:?}"
    );
    assert_eq!(
        run(tape.with(None, "replay", &["Hi"])).stdout,
        undated(&live.stdout)
    );
}

#[test]
fn a_bad_tape_is_refused_by_its_line() {
    let tape = Tape::new();
    let header = "{\"tape\":1,\"api\":\"openai-chat\",\"model\":\"m\",\"request\":{}}\n";
    for (line, says) in [
        ("[0,\"text\",\"Bearer abcdefghij0123456789\"]", "credential"),
        ("[-1,\"text\",\"x\"]", "-1 is no time"),
        ("nonsense", "not a JSON value"),
    ] {
        std::fs::write(tape.path(), format!("# mine\n{header}{line}\n")).unwrap();
        for command in [
            tape.with(None, "replay", &["Hi"]),
            command(&["--replay", tape.path()]),
        ] {
            let ran = run(command);
            let refusal = ran.refusal();
            assert!(
                refusal.contains(says)
                    && refusal.contains("line 3")
                    && refusal.contains(tape.path()),
                "{refusal}"
            );
        }
    }
    let none = Tape::new();
    assert!(
        run(none.with(None, "replay", &["Hi"]))
            .refusal()
            .contains("--tape-mode record")
    );
}

#[test]
fn a_mode_without_a_tape_asks_nobody() {
    let refused = |args: &[&str], variables: &[(&str, &str)], says: &str| {
        let server = Server::new(vec![answer("200 OK", SSE, chat(&["live"]))]);
        let mut command = asking(&server, args);
        command.envs(variables.iter().copied());
        let ran = run(command);
        assert!(
            ran.refusal().contains(says),
            "{args:?} {variables:?}: {}",
            ran.stderr
        );
        assert!(server.asked().is_empty(), "{args:?} {variables:?}");
    };
    for mode in ["replay", "record", "auto"] {
        refused(&["--tape-mode", mode, "Hi"], &[], "--tape FILE");
        refused(
            &["--tape-mode", mode, "--dry-run", "Hi"],
            &[],
            "--tape FILE",
        );
        refused(&["--tape-mode", mode, "--probe"], &[], "--tape FILE");
        refused(&["Hi"], &[("LLM_TAPE_MODE", mode)], "--tape FILE");
        refused(
            &["Hi"],
            &[("LLM_TAPE_MODE", mode), ("LLM_TAPE", "")],
            "--tape FILE",
        );
    }
    refused(
        &["Hi"],
        &[("LLM_TAPE_MODE", "offline")],
        "not replay, record or auto",
    );
    refused(&["--tape", "", "Hi"], &[], "--tape");
    // --replay sends nothing, so the variables for requests do not matter.
    let body = File::new("mode.sse", chat(&["a"]));
    let mut command = command(&["--replay", body.path()]);
    assert_eq!(
        run({
            command.env("LLM_TAPE_MODE", "replay");
            command
        })
        .text(),
        "a"
    );
    refused(
        &["--replay", body.path(), "--tape-mode", "record"],
        &[],
        "--tape-mode",
    );
    // An empty variable is one that is not set.
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["live"]))]);
    let mut command = asking(&server, &["Hi"]);
    assert_eq!(
        run({
            command.env("LLM_TAPE_MODE", "");
            command
        })
        .text(),
        "live"
    );
}
