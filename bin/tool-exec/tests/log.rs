//! `--log`: the file that holds all of the output, from which the next run continues, whatever
//! happens to this one.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{
    self, Dir, END, Live, Out, START, call, command, command_as, events, kill, message, processes,
    put, run_in, script, turn, wait_until,
};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

fn put_calls(ids: &[&str]) -> String {
    turn(
        &ids.iter()
            .map(|id| (*id, "put", json!({"text": id})))
            .collect::<Vec<_>>(),
    )
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The lines of these kinds, in short.
fn shape(text: &str, kinds: &[&str]) -> String {
    let events = events(text)
        .into_iter()
        .filter(|e| kinds.contains(&e["type"].as_str().unwrap()))
        .collect();
    Out {
        status: 0,
        text: String::new(),
        errors: String::new(),
        events,
    }
    .shape()
}

#[test]
fn the_log_is_the_output_byte_for_byte_and_has_each_start_before_it_happens() {
    let dir = Dir::new();
    let look = script(
        "look",
        "while read -r line; do case $line in *'\"tool_use\"'*'\"tool_id\":\"a\"'*) echo 1 ;; esac; done <log; tail -c 1 log | od -An -c",
        json!({}),
    );
    let input = turn(&[("a", "look", json!({}))]);
    let out = run_in(
        &dir,
        std::slice::from_ref(&look),
        &input,
        &["--log", "log", "--no-time"],
    );
    assert_eq!(
        (out.status, out.outcome("a").1),
        (0, "1\n  \\n\n"),
        "{}",
        out.errors
    );
    assert_eq!(dir.read("log"), out.text);
    let mode = dir.path("log").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The same again: nothing runs, and nothing is lost.
    let again = run_in(&dir, &[look], &input, &["--log", "log", "--no-time"]);
    assert_eq!(
        (again.status, again.of("tool_use").len(), again.outcome("a")),
        (0, 0, out.outcome("a"))
    );
    assert_eq!(dir.read("log"), out.text + &again.text);
}

#[test]
fn a_result_is_in_the_log_when_its_call_ends_though_the_output_keeps_the_order() {
    let dir = Dir::new();
    // The first call ends when the log has the result of the second one.
    let first = script(
        "first",
        "until grep -q '\"tool_result\".*\"tool_id\":\"b\"' log; do sleep 0.01; done",
        json!({}),
    );
    let input = turn(&[
        ("a", "first", json!({})),
        ("b", "put", json!({"text": "b"})),
    ]);
    let out = run_in(&dir, &[first, put("write")], &input, &["--log", "log"]);
    assert_eq!(out.status, 0, "{}", out.errors);
    let kinds = ["tool_use", "tool_result"];
    assert_eq!(
        shape(&out.text, &kinds),
        "tool_use:a tool_use:b tool_result:a tool_result:b"
    );
    assert_eq!(
        shape(&dir.read("log"), &kinds),
        "tool_use:a tool_use:b tool_result:b tool_result:a"
    );
    assert_eq!(
        sorted(&dir.read("log")),
        sorted(&out.text),
        "each line once"
    );
}

#[test]
fn a_reader_that_takes_nothing_does_not_hold_up_the_log() {
    let dir = Dir::new();
    let wait = script(
        "wait",
        "until [ -e go ]; do sleep 0.01; done; echo done",
        json!({"class": "read"}),
    );
    let mut live = Live::new(&dir, &[wait], &["--log", "log"]);
    live.send(START);
    live.send(&call(0, "a", "wait", &json!({})));
    live.until("tool_use");
    // Four times what a pipe holds, which nobody reads.
    let text = json!({"type": "content_delta", "text": "x".repeat(256 * 1024)}).to_string();
    live.send(&text);
    wait_until("the log has the text", || {
        dir.read("log").len() > 256 * 1024
    });
    dir.write("go", "");
    wait_until("the log has the result", || {
        dir.read("log").contains("\"status\":\"success\"")
    });
    live.send(&message(&[("a", "wait", json!({}))]));
    live.send(END);
    let (status, rest) = live.end();
    let results = rest.iter().filter(|e| e["type"] == "tool_result").count();
    assert_eq!(
        (
            status,
            results,
            dir.read("log").matches("\"tool_result\"").count()
        ),
        (0, 1, 1)
    );
}

#[test]
fn the_log_goes_on_where_the_reader_of_the_output_leaves() {
    let dir = Dir::new();
    let wait = script(
        "wait",
        "until [ -e go ]; do sleep 0.01; done; echo done",
        json!({}),
    );
    let tools = [wait, put("write")];
    let mut command = command(&dir, &tools, &["--log", "log", "--jobs", "1", "--no-time"]);
    let mut child = command
        .stdin(Stdio::from(
            std::fs::File::open(dir.write(
                "in",
                turn(&[("a", "wait", json!({})), ("b", "put", json!({"text": "b"}))]),
            ))
            .unwrap(),
        ))
        .spawn()
        .unwrap();
    wait_until("the call runs", || dir.read("log").contains("\"tool_use\""));
    drop(child.stdout.take());
    dir.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let log = dir.read("log");
    assert!(log.ends_with('\n'));
    let kinds = ["tool_use", "tool_result", "message"];
    let want = "message tool_use:a tool_result:a message:a tool_use:b tool_result:b message:b";
    assert_eq!(shape(&log, &kinds), want, "{log}");
}

#[test]
fn a_stream_that_its_reader_leaves_is_no_failure_and_ends_the_loop() {
    let dir = Dir::new();
    let mut live = Live::new(&dir, &[put("write")], &["--log", "log"]);
    live.send(START);
    live.send(r#"{"type":"content_delta","text":"a"}"#);
    live.until("content_delta");
    // The input stays open, and its stream has not ended.
    assert_eq!(live.leave(), 1);
    assert!(dir.read("log").contains("content_delta"));
}

#[test]
fn a_process_that_tool_exec_leaves_behind_holds_no_lock_that_it_was_handed() {
    let dir = Dir::new();
    dir.write("lock", "");
    dir.write("in", turn(&[("a", "wait", json!({}))]));
    let wait = script(
        "wait",
        "trap '' TERM; : >runs; while :; do sleep 0.01; done",
        json!({}),
    );
    let mut shell = Command::new("bash");
    // As react locks its log: a file that the commands inherit.
    shell.args([
        "-c",
        "exec {lock}<>lock; flock -n $lock && exec \"$@\" in",
        "bash",
    ]);
    shell.arg(env!("CARGO_BIN_EXE_tool-exec"));
    let mut child = command_as(shell, &dir, &[wait], &[]).spawn().unwrap();
    wait_until("the call runs", || dir.path("runs").exists());
    let lock = std::fs::File::open(dir.path("lock")).unwrap();
    let take = || rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    assert!(take().is_err(), "it is locked while the command runs");
    // Its supervisors have to end the call, which takes them a while.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let children = std::fs::read_to_string(children).unwrap();
    let signal = |signal| {
        children
            .split(' ')
            .filter(|pid| !pid.trim().is_empty())
            .for_each(|pid| assert!(kill(pid.trim(), signal)))
    };
    signal("STOP");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the lock is held", || take().is_ok());
    assert!(!processes(&dir).is_empty());
    signal("CONT");
    wait_until("the call ends", || processes(&dir).is_empty());
}

#[test]
fn where_standard_output_is_the_log_each_line_is_written_once() {
    let dir = Dir::new();
    dir.write("in", put_calls(&["a", "b"]));
    for option in ["--log", "--journal"] {
        for truncates in [false, true] {
            let _ = std::fs::remove_file(dir.path("log"));
            let mut go = command(
                &dir,
                &[put("write")],
                &[option, "log", "--no-time", "--jobs", "1", "in"],
            );
            let log = OpenOptions::new()
                .append(!truncates)
                .write(true)
                .create(true)
                .truncate(truncates)
                .open(dir.path("log"));
            let out = go.stdout(Stdio::from(log.unwrap())).output().unwrap();
            assert_eq!(
                harness::code(out.status),
                0,
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
            let kinds = ["tool_use", "tool_result", "message"];
            let want =
                "message tool_use:a tool_result:a message:a tool_use:b tool_result:b message:b";
            assert_eq!(shape(&dir.read("log"), &kinds), want);
        }
    }
    // As journal and log at once, too.
    let out = run_in(
        &dir,
        &[put("write")],
        &put_calls(&["c"]),
        &[
            "--log",
            "x",
            "--journal",
            "x",
            "--resume",
            "log",
            "--no-time",
        ],
    );
    assert_eq!((out.status, dir.read("x")), (0, out.text));
}

#[test]
fn a_run_that_stopped_continues_from_its_log() {
    let dir = Dir::new();
    let whole = run_in(
        &dir,
        &[put("write")],
        &put_calls(&["a", "b"]),
        &["--no-time", "--jobs", "1"],
    )
    .text;
    let lines: Vec<&str> = whole.lines().collect();
    for n in 0..=lines.len() {
        let _ = std::fs::remove_file(dir.path("ran"));
        let log: String = lines[..n].iter().flat_map(|line| [line, "\n"]).collect();
        dir.write("log", &log);
        let out = run_in(
            &dir,
            &[put("write")],
            "",
            &["--log", "log", "--no-time", "--jobs", "1"],
        );
        assert_eq!(
            dir.read("log"),
            log + &out.text,
            "what is appended is what is written, after {n} lines"
        );
        let over = run_in(&dir, &[put("write")], "", &["--log", "log", "--no-time"]);
        assert!(
            dir.read("ran").lines().count() <= 2 && over.of("tool_use").is_empty(),
            "after {n} lines"
        );
    }
}

#[test]
fn a_line_that_was_cut_ends_where_it_was_cut() {
    let dir = Dir::new();
    let used = r#"{"type":"tool_use","tool_id":"a","tool_name":"put","status":"running"}"#;
    for (cut, stays) in [
        (used, true),
        (&used[..40], false),
        ("{\"role\":\"user\",\"content\":\"hi\"}", true),
        ("{\"type\":\"tool_result\",\"output\":\"{}", false),
        ("\u{e9}{", false),
    ] {
        dir.write(
            "log",
            format!("{{\"role\":\"user\",\"content\":\"hi\"}}\n{cut}"),
        );
        let out = run_in(
            &dir,
            &[put("write")],
            &put_calls(&["b"]),
            &["--log", "log", "--no-time"],
        );
        assert_eq!(out.status, 0, "{}", out.errors);
        let log = dir.read("log");
        let events = events(&log); // every line is JSON
        assert_eq!(
            events.iter().filter(|e| e["raw"] == cut).count(),
            usize::from(!stays),
            "{log}"
        );
        assert_eq!(log.lines().any(|line| line == cut), stays, "{log}");
        assert!(log.ends_with(&out.text), "{log}");
    }
    // Bytes that are not UTF-8 are kept too.
    dir.write("log", b"\xff\xfe{");
    run_in(&dir, &[put("write")], "", &["--log", "log", "--no-time"]);
    assert_eq!(events(&dir.read("log"))[0]["raw_base64"], "//57");
}

#[test]
fn a_second_run_on_the_same_files_stops_with_one_line() {
    let dir = Dir::new();
    let wait = script("wait", "until [ -e go ]; do sleep 0.01; done", json!({}));
    for name in ["log", "journal", "old"] {
        dir.write(name, "");
        std::fs::hard_link(dir.path(name), dir.path(&format!("{name}-again"))).unwrap();
    }
    let names = [
        "--log",
        "log",
        "--journal",
        "journal",
        "--resume",
        "old",
        "--resume",
        "log",
        "--resume",
        "old-again",
    ];
    let mut live = Live::new(&dir, std::slice::from_ref(&wait), &names);
    turn(&[("a", "wait", json!({}))])
        .lines()
        .for_each(|line| live.send(line));
    live.until("tool_use");
    for name in ["log", "journal", "old-again"] {
        for option in ["--log", "--journal", "--resume"] {
            let out = run_in(&dir, std::slice::from_ref(&wait), "", &[option, name]);
            let said =
                out.errors.contains("another tool-exec works on it") && out.errors.contains(name);
            assert!(
                out.status == 2 && said && out.errors.lines().count() == 1,
                "{option} {name}: {}",
                out.errors
            );
            assert_eq!(out.text, "");
        }
    }
    // Looking only is allowed.
    assert_eq!(
        run_in(
            &dir,
            std::slice::from_ref(&wait),
            "",
            &["--resume", "log", "--list-pending"]
        )
        .status,
        0
    );
    dir.write("go", "");
    assert_eq!(live.end().0, 0);
    assert_eq!(
        run_in(&dir, &[wait], "", &["--resume", "log"]).status,
        1,
        "the lock is gone with its process"
    );
}

#[test]
fn a_log_is_an_ordinary_file_that_no_link_replaces() {
    let dir = Dir::new();
    dir.write("real", "");
    symlink(dir.path("real"), dir.path("link")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(dir.path("fifo"))
            .status()
            .unwrap()
            .success()
    );
    for option in ["--log", "--journal"] {
        for (name, says) in [
            ("link", "is a link"),
            ("fifo", "not an ordinary file"),
            ("/dev/null", "not an ordinary file"),
            ("/dev/full", "not an ordinary file"),
            (".", "cannot be used"),
            ("/no/such", "cannot be used"),
        ] {
            let out = run_in(&dir, &[put("write")], &put_calls(&["a"]), &[option, name]);
            let said = out.errors.contains(says) && out.errors.lines().count() == 1;
            assert!(out.status == 2 && said, "{option} {name}: {}", out.errors);
        }
    }
    assert_eq!(
        (dir.read("ran"), dir.read("real")),
        (String::new(), String::new())
    );
}

/// A run whose files may not grow beyond 64 KiB.
fn small(dir: &Dir, tools: &[Value], args: &str) -> Command {
    let file = dir.write("tools.json", json!(tools).to_string());
    let program = env!("CARGO_BIN_EXE_tool-exec");
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec '{program}' --tools '{}' {args}",
        file.display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(dir.path("."));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A log of `length` bytes that ends in whole lines.
fn filled(length: usize) -> String {
    let empty = json!({"type": "content_delta", "text": ""})
        .to_string()
        .len()
        + 1;
    json!({"type": "content_delta", "text": "x".repeat(length - empty)}).to_string() + "\n"
}

#[test]
fn what_does_not_fit_into_the_log_does_not_run_and_what_ran_is_said_to_have_run() {
    let dir = Dir::new();
    let input = put_calls(&["a", "b"]);
    let whole = run_in(&dir, &[put("write")], &input, &["--no-time", "--jobs", "1"]).text;
    let mut steps: Vec<usize> = whole
        .split_inclusive('\n')
        .scan(0, |at, line| {
            *at += line.len();
            Some(*at)
        })
        .collect();
    steps.extend(steps.clone().iter().map(|at| at - 9));
    for option in ["--log", "--journal"] {
        for room in [0, 1].into_iter().chain(steps.iter().copied()) {
            let _ = std::fs::remove_file(dir.path("ran"));
            let before = filled(64 * 1024 - room);
            dir.write("log", &before);
            let args = format!("{option} log --no-time --jobs 1");
            let out = harness::run_command(small(&dir, &[put("write")], &args), &input);
            let log = dir.read("log");
            assert!(log.starts_with(&before) && log.ends_with('\n'), "{room}");
            let is_whole = out.status == 0;
            let said = out.errors.contains("log: the ") && out.errors.contains("cannot be written");
            assert!(
                is_whole || (out.status == 2 && out.errors.lines().count() == 1 && said),
                "{room}: {}",
                out.errors
            );
            let has = |text: &str, kind: &str, id: &str| {
                events(text)
                    .iter()
                    .any(|e| e["type"] == kind && e["tool_id"] == id)
            };
            for id in ["a", "b"] {
                let ran = dir.read("ran").lines().filter(|line| *line == id).count();
                assert_eq!(
                    ran,
                    usize::from(has(&log, "tool_use", id)),
                    "{option} {room} {id}: starts are in the log"
                );
                let (status, text) = out.outcome(id);
                let want = if ran == 1 {
                    ("success", format!("put {id}\n"))
                } else {
                    (status, text.to_owned())
                };
                assert_eq!(
                    (status, text),
                    (want.0, want.1.as_str()),
                    "{room} {id}: the result reaches standard output"
                );
                assert!(
                    ran == 1 || (text.contains("was not run") && status != "success"),
                    "{room} {id}: {text}"
                );
            }
            // On a larger disk it goes on from there.
            run_in(
                &dir,
                &[put("write")],
                &input,
                &[option, "log", "--resume", "log", "--no-time"],
            );
            assert!(
                ["a", "b"].iter().all(|id| dir
                    .read("ran")
                    .lines()
                    .filter(|line| line == id)
                    .count()
                    == 1),
                "{room}"
            );
        }
    }
}
