//! A call that was begun and has no result: what a person may say of it, and the key by which a
//! tool knows it again.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{self, Dir, message, put, ran, run_in, script, turn};
use serde_json::{Value, json};
use std::process::Stdio;

/// The hash of the call that waits, as `--list-pending` prints it after the id.
fn waiting(dir: &Dir, tools: &[Value]) -> String {
    let pending = run_in(dir, tools, "", &["--resume", "log", "--list-pending"]);
    pending.text.trim_end().to_owned()
}

/// A log that ends after the start of a call.
fn begun(dir: &Dir, id: &str) {
    let used = json!({"type": "tool_use", "tool_id": id, "tool_name": "put", "status": "running"});
    dir.write(
        "log",
        format!(
            "{}\n{used}\n",
            message(&[(id, "put", json!({"text": "a"}))])
        ),
    );
}

#[test]
fn a_person_says_of_a_call_that_was_begun_that_it_ran_that_it_did_not_or_that_it_runs_again() {
    let tools = [put("write")];
    let said = |option: &str, text: &str| {
        let dir = Dir::new();
        begun(&dir, "a");
        let waiting = waiting(&dir, &tools);
        let out = run_in(
            &dir,
            &tools,
            "",
            &["--log", "log", option, &format!("{waiting}{text}")],
        );
        let (status, output) = out.outcome("a");
        let answer = out.of("approval")[0]["decision"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            (out.status, out.of("message").len()),
            (0, 1),
            "{option}: {}",
            out.errors
        );
        let over = run_in(&dir, &tools, "", &["--log", "log"]);
        assert_eq!(
            (over.status, over.text.as_str()),
            (1, ""),
            "{option}: the turn is over"
        );
        (
            status.to_owned(),
            output.to_owned(),
            answer,
            ran(&dir).len(),
        )
    };
    let [yes, no, ran] = [
        said("--approve-call", ""),
        said("--deny-call", ""),
        said("--answer-call", "=it = done: \"x\""),
    ];
    assert_eq!(
        (&*yes.0, &*yes.1, &*yes.2, yes.3),
        ("success", "put a\n", "approved", 1)
    );
    assert_eq!((&*no.0, &*no.2, no.3), ("denied", "denied", 0));
    assert_eq!(
        (&*ran.0, &*ran.1, &*ran.2, ran.3),
        ("success", "it = done: \"x\"", "answered", 0)
    );
    // A result is given only for what was started.
    let dir = Dir::new();
    dir.write("log", message(&[("a", "put", json!({"text": "a"}))]) + "\n");
    let danger = [put("danger")];
    let waiting = waiting(&dir, &danger);
    let out = run_in(
        &dir,
        &danger,
        "",
        &[
            "--resume",
            "log",
            "--answer-call",
            &format!("{waiting}=done"),
        ],
    );
    assert_eq!((out.status, out.outcome("a").0), (3, "pending"));
}

#[test]
fn the_commands_of_a_pending_result_can_be_typed_whatever_the_id_is() {
    for id in [
        "a",
        "it's $(touch pwned) `x`",
        "--x\n\u{1b}[2J\u{202e}",
        "nul\u{0}",
        "a:b=c",
        "\"",
        "é",
    ] {
        for option in ["--answer-call", "--deny-call", "--approve-call"] {
            let dir = Dir::new();
            begun(&dir, id);
            let out = run_in(&dir, &[put("write")], "", &["--log", "log"]);
            let (status, text) = out.outcome(id);
            assert_eq!(
                (out.status, status),
                (3, "pending"),
                "{id:?}: {}",
                out.errors
            );
            assert!(
                !text.contains(|c: char| c.is_control() || c == '\u{202e}'),
                "{text:?}"
            );
            let from = text
                .split("tool-exec --tools")
                .find(|part| part.contains(option))
                .unwrap();
            let command = from.split(" </dev/null").next().unwrap();
            let script = format!(
                "'{}' --tools{command} </dev/null",
                env!("CARGO_BIN_EXE_tool-exec")
            );
            let mut shell = std::process::Command::new("sh");
            shell
                .args(["-c", &script])
                .current_dir(dir.path("."))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let out = harness::run_command_without_input(shell);
            assert_eq!(out.status, 0, "{id:?} {option}: {script}\n{}", out.errors);
            let want = match option {
                "--answer-call" => ("success", "RESULT"),
                "--deny-call" => ("denied", out.outcome(id).1),
                _ => ("success", "put a\n"),
            };
            assert_eq!(out.outcome(id), want);
            assert!(!dir.path("pwned").exists());
        }
    }
}

#[test]
fn the_key_of_a_call_stays_the_same_when_it_runs_again() {
    let key = || {
        script(
            "put",
            "echo $TOOL_CALL_ID; echo $TOOL_CALL_ID >>keys",
            json!({"class": "read"}),
        )
    };
    let dir = Dir::new();
    let once = |input: &str, args: &[&str]| {
        run_in(&dir, &[key()], input, args)
            .outcome("a")
            .1
            .trim()
            .to_owned()
    };
    let started = |id: &str, text: &str| {
        turn(&[("a", "put", json!({"text": text}))]).replace(
            "{\"type\":\"stream_start\"",
            &format!("{{\"type\":\"stream_start\",\"id\":\"{id}\""),
        )
    };
    let first = once(&started("r1", "x"), &["--log", "log", "--no-time"]);
    assert!(
        first.len() == 32 && first.bytes().all(|b| b.is_ascii_hexdigit()),
        "{first}"
    );
    // The log up to the start: the call runs again, and has its key.
    let log = dir.read("log");
    let upto = log.find("{\"type\":\"tool_result\"").unwrap();
    let without =
        log[..upto].to_owned() + log.lines().find(|l| l.contains("assistant")).unwrap() + "\n";
    dir.write("begun", without);
    assert_eq!(once("", &["--resume", "begun"]), first, "as the log has it");
    dir.write(
        "used",
        log.lines().find(|l| l.contains("\"tool_use\"")).unwrap(),
    );
    assert_eq!(
        once(&started("r1", "x"), &["--resume", "used"]),
        first,
        "as a journal and the input have it"
    );
    // Every other call has another key.
    let mut others = vec![
        once(&started("r1", "y"), &[]),
        once(&started("r2", "x"), &["--log", "log"]),
        once(&turn(&[("a", "put", json!({"text": "x"}))]), &[]),
    ];
    others.push(once(
        &started("r1", "x").replace("\"type\":\"", "\"stream\":\"s\",\"type\":\""),
        &[],
    ));
    others.push(first);
    others.sort();
    others.dedup();
    assert_eq!(others.len(), 5);
}

#[test]
fn a_tool_that_keeps_its_key_does_its_work_once() {
    let order = "[ -e order-$TOOL_CALL_ID ] || { echo x >>orders; echo ordered >order-$TOOL_CALL_ID; }; cat order-$TOOL_CALL_ID";
    let tools = [script("put", order, json!({}))];
    let dir = Dir::new();
    let input = turn(&[("a", "put", json!({}))]);
    run_in(&dir, &tools, &input, &["--journal", "log", "--no-time"]);
    // The same up to its start, as a crash leaves it.
    let log = dir.read("log");
    dir.write(
        "log",
        log.lines().next().unwrap().to_owned() + "\n" + &input,
    );
    let out = run_in(
        &dir,
        &tools,
        "",
        &["--log", "log", "--approve-call", &waiting(&dir, &tools)],
    );
    assert_eq!(
        (out.status, out.outcome("a"), dir.read("orders").as_str()),
        (0, ("success", "ordered\n"), "x\n")
    );
}
