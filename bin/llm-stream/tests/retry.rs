//! Waits between attempts: announced, and of limited length. No test waits for one.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::BufReader;

fn busy(header: &str) -> Vec<Step> {
    answer(
        "429 Too Many Requests",
        &format!("{header}\r\n"),
        "{\"error\":{\"message\":\"slow down\"}}",
    )
}

#[test]
fn a_long_wait_is_announced_before_it_begins_and_a_signal_ends_it() {
    let server = Server::new(vec![
        busy("retry-after: 60"),
        answer("200 OK", SSE, chat(&["late"])),
    ]);
    let mut child = asking(&server, &["Hi"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let line = until(&mut stdout, "\"warning\"");
    let says = "HTTP 429: slow down; asking again in 60 s (retry-after: 60)";
    assert!(
        line.contains("\"code\":\"retry_wait\"") && line.contains(says),
        "{line}"
    );
    assert!(kill(child.id(), "-TERM"));
    let ran = finish(child, Some(stdout));
    assert_eq!((ran.status, server.asked().len()), (143, 1), "{ran:?}");
    assert_eq!(ran.stderr, format!("llm-stream: {says}\n"));
    assert_eq!(ran.types(), "stream_start stream_end");
}

#[test]
fn a_wait_that_is_too_long_is_an_error_at_once_with_the_providers_figure() {
    for header in [
        "retry-after: 3600",
        "retry-after-ms: 3600000",
        "retry-after: Sat, 06 Nov 2094 08:49:37 GMT",
    ] {
        let server = Server::new(vec![busy(header), vec![]]);
        let ran = run(asking(&server, &["Hi"]));
        assert_eq!((ran.status, server.asked().len()), (2, 1), "{ran:?}");
        let error = ran.event("error");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("slow down") && message.contains(&format!("({header})")),
            "{message}"
        );
        assert_eq!(
            (&error["code"], &error["retryable"]),
            (&"http_429".into(), &true.into())
        );
        assert_eq!(error["status"], 429);
        assert!(
            error["retry_after_ms"].as_u64().unwrap() >= 3_600_000,
            "{error}"
        );
        assert_eq!(
            (ran.types().as_str(), ran.stderr.as_str()),
            ("message stream_start error stream_end", "")
        );
    }
}

#[test]
fn a_wait_beyond_the_time_for_everything_is_an_error_at_once() {
    let server = Server::new(vec![busy("retry-after: 60"), vec![]]);
    let ran = run(asking(&server, &["--timeout", "20s", "Hi"]));
    assert_eq!((ran.status, server.asked().len()), (2, 1), "{ran:?}");
    assert!(
        ran.event("error")["message"]
            .as_str()
            .unwrap()
            .contains("(retry-after: 60)"),
        "{ran:?}"
    );
}

#[test]
fn a_short_wait_is_silent() {
    let server = Server::new(vec![
        busy("retry-after-ms: 1"),
        answer("200 OK", SSE, chat(&["ok"])),
    ]);
    let ran = run(asking(&server, &["Hi"]));
    assert_eq!(
        (ran.status, ran.text().as_str(), ran.stderr.as_str()),
        (0, "ok", "")
    );
    assert!(!ran.stdout.contains("warning"), "{ran:?}");
}

#[test]
fn a_recorded_wait_is_told_as_it_was_and_takes_no_time() {
    let tape = File::new(
        "wait.tape",
        concat!(
            "{\"tape\":1,\"api\":\"openai-chat\",\"model\":\"m\",\"request\":{\"body\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true}}}}\n",
            "[0,\"head\",{\"status\":429,\"headers\":{\"retry-after\":\"60\"}}]\n[0,\"text\",\"busy\"]\n[0,\"end\",\"eof\"]\n",
        ),
    );
    let mut command = command(&["--tape", tape.path(), "--model", "m", "--no-time"]);
    command.arg("Hi");
    let ran = run(command);
    assert_eq!((ran.status, ran.stderr.as_str()), (2, ""), "{ran:?}");
    assert_eq!(ran.event("warning")["code"], "retry_wait");
}
