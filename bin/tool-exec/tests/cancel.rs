//! A `retract` line that ends one call, and `input_end`, after which the input holds nothing else.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, END, Live, START, message, run_in, runs, script, wait_until};
use serde_json::{Value, json};

/// The line after which no more calls come.
const INPUT_END: &str = r#"{"type":"input_end"}"#;

/// A tool that writes the numbers of its processes into files, and runs until it is ended.
fn long_of(name: &str) -> Value {
    let mut tool = script(
        "long",
        "sleep 1000 & echo $! >$1.child; echo $$ >$1.tmp; mv $1.tmp $1.pid; wait",
        json!({}),
    );
    tool["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!(name)]);
    tool
}

fn retract(id: &str) -> String {
    json!({"type": "retract", "tool_id": id, "reason": "user"}).to_string()
}

/// Whether a process whose command line ends so runs; a number that a tool writes may be of a
/// namespace of its own.
fn sleeps(dir: &Dir) -> bool {
    let home = std::fs::canonicalize(dir.path(".")).unwrap();
    let all = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let is_sleep = std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| line.starts_with(b"sleep\x001000"));
            is_sleep && std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == home)
        });
    let mut all = all.map(|entry| entry.file_name().into_string().unwrap());
    all.any(|pid| runs(&pid))
}

#[test]
fn a_line_ends_one_call_and_no_other() {
    let dir = Dir::new();
    let gate = script(
        "gate",
        "until [ -e open ]; do sleep 0.05; done; echo through",
        json!({}),
    );
    let mut live = Live::new(&dir, &[long_of("a"), gate], &[]);
    live.send(&message(&[
        ("a", "long", json!({})),
        ("b", "gate", json!({})),
    ]));
    wait_until("the tool runs", || {
        dir.path("a.pid").exists() && sleeps(&dir)
    });
    live.send(&retract("no-such-call"));
    live.send(&retract("a"));
    let result = live.until("tool_result");
    assert_eq!(
        (&result["tool_id"], &result["status"]),
        (&json!("a"), &json!("cancelled"))
    );
    wait_until("its processes are gone", || !sleeps(&dir));
    dir.write("open", "");
    let result = live.until("tool_result");
    assert_eq!(
        (&result["tool_id"], &result["status"]),
        (&json!("b"), &json!("success"))
    );
    assert_eq!(live.end().0, 0);
}

#[test]
fn a_call_that_waits_for_a_place_is_cancelled_too() {
    let dir = Dir::new();
    let after = script("after", "touch ran", json!({}));
    let mut live = Live::new(&dir, &[long_of("a"), after], &["--jobs", "1"]);
    live.send(&message(&[
        ("a", "long", json!({})),
        ("b", "after", json!({})),
    ]));
    wait_until("the tool runs", || dir.path("a.pid").exists());
    live.send(&retract("b"));
    live.send(&retract("a"));
    for _ in 0..2 {
        assert_eq!(live.until("tool_result")["status"], "cancelled");
    }
    assert_eq!(live.end().0, 0);
    assert!(!dir.path("ran").exists());
}

/// An id names a call within its stream.
#[test]
fn an_event_names_the_stream() {
    let dir = Dir::new();
    let mut live = Live::new(&dir, &[long_of("a")], &[]);
    let of =
        |stream: &str, line: &str| line.replacen('{', &format!(r#"{{"stream":"{stream}","#), 1);
    for stream in ["x", "y"] {
        live.send(&of(stream, &message(&[("a", "long", json!({}))])));
        live.until("tool_use");
    }
    for stream in ["y", "x"] {
        live.send(&of(stream, &retract("a")));
        let result = live.until("tool_result");
        assert_eq!(
            (&result["stream"], &result["status"]),
            (&json!(stream), &json!("cancelled"))
        );
    }
    assert_eq!(live.end().0, 0);
}

/// Who keeps the input open to cancel calls does not have to know when they have ended.
#[test]
fn behind_the_end_of_the_input_calls_are_cancelled_and_nothing_else_counts() {
    let dir = Dir::new();
    let after = script("after", "touch ran", json!({}));
    let tools = [long_of("a"), after];
    let log = dir.path("log");
    let options = ["--log", log.to_str().unwrap(), "--jobs", "1"];
    let mut live = Live::new(&dir, &tools, &options);
    let calls = message(&[("a", "long", json!({})), ("b", "after", json!({}))]);
    live.send(&format!("{START}\n{calls}\n{END}\n{INPUT_END}\n"));
    live.send(&message(&[("c", "after", json!({}))]));
    wait_until("the tool runs", || dir.path("a.pid").exists());
    live.send(&retract("b"));
    live.send(&retract("a"));
    // The input is still open.
    assert_eq!(live.child.wait().unwrap().code(), Some(0));
    let (_, lines) = live.end();
    let results = lines.iter().filter(|line| line["type"] == "tool_result");
    let mut results: Vec<_> = results
        .map(|line| {
            (
                line["tool_id"].as_str().unwrap(),
                line["status"].as_str().unwrap(),
            )
        })
        .collect();
    results.sort_unstable();
    assert_eq!(results, [("a", "cancelled"), ("b", "cancelled")]);
    let log = dir.read("log");
    for absent in ["input_end", "retract", "\n\n", r#""c""#] {
        assert!(!log.contains(absent), "{absent}: {log}");
    }
    assert!(!dir.path("ran").exists());
}

/// The calls that a log ends in run when the input has ended, and so behind that line.
#[test]
fn calls_of_a_log_begin_at_the_end_of_the_input_and_can_be_cancelled() {
    let dir = Dir::new();
    let calls = message(&[("a", "long", json!({}))]);
    dir.write("log", format!("{START}\n{calls}\n{END}\n"));
    let log = dir.path("log");
    let mut live = Live::new(&dir, &[long_of("a")], &["--log", log.to_str().unwrap()]);
    live.send(INPUT_END);
    wait_until("the tool runs", || dir.path("a.pid").exists());
    live.send(&retract("a"));
    assert_eq!(live.child.wait().unwrap().code(), Some(0));
    assert_eq!(live.until("tool_result")["status"], "cancelled");
}

/// Without calls it ends at that line.
#[test]
fn an_input_that_ends_without_calls_is_an_answer() {
    let dir = Dir::new();
    let mut live = Live::new(&dir, &[long_of("a")], &[]);
    let answer = r#"{"type":"message","message":{"role":"assistant","content":"Hi"}}"#;
    live.send(&format!("{START}\n{answer}\n{END}\n{INPUT_END}"));
    assert_eq!(live.child.wait().unwrap().code(), Some(1));
    let same = run_in(
        &dir,
        &[long_of("a")],
        &format!("{START}\n{answer}\n{END}\n"),
        &[],
    );
    assert_eq!(same.status, 1);
}
