//! `--cancel-on`: a user's word, beside the stream, that ends one call.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, END, Live, START, call, message, run_in, runs, script, wait_until};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;

/// A tool that writes the numbers of its processes into files, and runs until it is ended.
fn long() -> Value {
    script(
        "long",
        "sleep 1000 & echo $! >$1.child; echo $$ >$1.tmp; mv $1.tmp $1.pid; wait",
        json!({}),
    )
}

fn long_of(name: &str) -> Value {
    let mut tool = long();
    tool["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!(name)]);
    tool
}

fn fifo(dir: &Dir) -> String {
    let path = dir.path("cancel");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    path.to_str().unwrap().to_owned()
}

fn write(path: &str, text: &str) {
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
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
fn a_line_in_a_pipe_ends_one_call_and_no_other() {
    let dir = Dir::new();
    let path = fifo(&dir);
    let gate = script(
        "gate",
        "until [ -e open ]; do sleep 0.05; done; echo through",
        json!({}),
    );
    let mut live = Live::new(&dir, &[long_of("a"), gate], &["--cancel-on", &path]);
    live.send(&message(&[
        ("a", "long", json!({})),
        ("b", "gate", json!({})),
    ]));
    wait_until("the tool runs", || {
        dir.path("a.pid").exists() && sleeps(&dir)
    });
    // The upstream is silent, and the writer of the pipe leaves at once.
    write(&path, "no-such-call\na\n");
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
fn lines_that_a_file_holds_already_count_and_so_do_later_ones() {
    let dir = Dir::new();
    let path = dir.write("cancel", "x\na\n");
    let path = path.to_str().unwrap();
    let early = script("early", "touch ran", json!({"class": "read"}));
    let mut live = Live::new(&dir, &[early, long_of("b")], &["--cancel-on", path]);
    live.send(START);
    live.send(&call(0, "a", "early", &json!({})));
    live.send(&message(&[
        ("a", "early", json!({})),
        ("b", "long", json!({})),
    ]));
    live.send(END);
    wait_until("the tool runs", || dir.path("b.pid").exists());
    assert!(!dir.path("ran").exists());
    assert_eq!(live.until("tool_result")["status"], "cancelled");
    write(path, "b");
    write(path, "\n");
    assert_eq!(live.until("tool_result")["status"], "cancelled");
    assert_eq!(live.end().0, 0);
    assert!(!dir.path("ran").exists() && !sleeps(&dir));
}

#[test]
fn a_call_that_waits_for_a_place_is_cancelled_too() {
    let dir = Dir::new();
    let path = fifo(&dir);
    let after = script("after", "touch ran", json!({}));
    let mut live = Live::new(
        &dir,
        &[long_of("a"), after],
        &["--cancel-on", &path, "--jobs", "1"],
    );
    live.send(&message(&[
        ("a", "long", json!({})),
        ("b", "after", json!({})),
    ]));
    wait_until("the tool runs", || dir.path("a.pid").exists());
    write(&path, "b\na\n");
    for _ in 0..2 {
        assert_eq!(live.until("tool_result")["status"], "cancelled");
    }
    assert_eq!(live.end().0, 0);
    assert!(!dir.path("ran").exists());
}

/// An id names a call within its stream: a plain id means each of them, a `retract` event one.
#[test]
fn an_event_names_the_stream() {
    let dir = Dir::new();
    let path = fifo(&dir);
    let mut live = Live::new(&dir, &[long_of("a")], &["--cancel-on", &path]);
    let named = |stream: &str| {
        message(&[("a", "long", json!({}))]).replacen('{', &format!(r#"{{"stream":"{stream}","#), 1)
    };
    for stream in ["x", "y", "z"] {
        live.send(&named(stream));
        live.until("tool_use");
    }
    write(
        &path,
        "{\"type\":\"retract\",\"stream\":\"y\",\"tool_id\":\"a\",\"reason\":\"user\"}\n",
    );
    let result = live.until("tool_result");
    assert_eq!(
        (&result["stream"], &result["status"]),
        (&json!("y"), &json!("cancelled"))
    );
    write(&path, "a\n");
    let mut streams: Vec<_> = (0..2)
        .map(|_| {
            live.until("tool_result")["stream"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    streams.sort();
    assert_eq!(streams, ["x", "z"]);
    assert_eq!(live.end().0, 0);
}

#[test]
fn nobody_has_to_read_the_output() {
    let dir = Dir::new();
    let path = fifo(&dir);
    let text = "x".repeat(4000);
    let flood = script(
        "flood",
        &format!("while :; do echo {text}; done"),
        json!({"class": "read", "max_output": "1G", "limits": {"memory": "1G"}}),
    );
    let mut live = Live::new(
        &dir,
        &[long_of("a"), flood],
        &["--cancel-on", &path, "--progress"],
    );
    live.send(START);
    live.send(&call(0, "f", "flood", &json!({})));
    live.send(&message(&[
        ("f", "flood", json!({})),
        ("a", "long", json!({})),
    ]));
    wait_until("the tool runs", || {
        dir.path("a.pid").exists() && sleeps(&dir)
    });
    write(&path, "a\nf\n");
    wait_until("its processes are gone", || !sleeps(&dir));
    let (status, rest) = live.end();
    let ends: Vec<_> = rest
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| e["status"].as_str().unwrap())
        .collect();
    assert_eq!((status, ends), (0, vec!["cancelled", "cancelled"]));
}

#[test]
fn what_is_neither_a_file_nor_a_pipe_is_refused_and_what_is_missing_may_come() {
    let dir = Dir::new();
    for path in ["/dev/null", "."] {
        let out = run_in(&dir, &[long_of("a")], "", &["--cancel-on", path]);
        assert!(
            out.status == 2 && out.errors.contains("neither a file nor a named pipe"),
            "{}",
            out.errors
        );
    }
    let path = dir.path("later");
    let mut live = Live::new(
        &dir,
        &[long_of("a")],
        &["--cancel-on", path.to_str().unwrap()],
    );
    live.send(&message(&[("a", "long", json!({}))]));
    wait_until("the tool runs", || dir.path("a.pid").exists());
    write(path.to_str().unwrap(), "a\n");
    assert_eq!(live.until("tool_result")["status"], "cancelled");
    assert_eq!(live.end().0, 0);
}
