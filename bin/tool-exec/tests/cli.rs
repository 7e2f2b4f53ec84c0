//! The command as it is typed: its output, its status and its messages.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{
    self, Dir, END, Live, Out, START, call, code, command, message, processes, run, run_command,
    run_in, runs, script, tool, turn, wait_until,
};
use serde_json::{Value, json};
use std::fs::File;
use std::process::{Command, Stdio};

fn say() -> Value {
    tool("say", &["echo", "{text}"], json!({}))
}

/// One line on standard error, status 2, nothing on standard output.
fn refused(out: &Out, want: &str) {
    assert_eq!((out.status, out.text.as_str()), (2, ""), "{}", out.errors);
    assert!(
        out.errors.starts_with("tool-exec: ")
            && out.errors.contains(want)
            && out.errors.lines().count() == 1,
        "{}",
        out.errors
    );
}

fn bare(args: &[&str]) -> Out {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tool-exec"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let out = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Out {
        status: code(out.status),
        text: text(out.stdout),
        errors: text(out.stderr),
        events: vec![],
    }
}

#[test]
fn list_gives_the_tools_without_their_commands() {
    let tools = [
        say(),
        tool(
            "rm",
            &["rm", "--", "{text}"],
            json!({"class": "danger", "env": ["SECRET_TOKEN"]}),
        ),
    ];
    let out = run(&tools, "", &["--list", "--deny", "rm*"]);
    let list: Vec<Value> = serde_json::from_str(&out.text).unwrap();
    let schema = &tools[0]["parameters"];
    assert_eq!(
        list,
        [json!({"type": "function", "function": {"name": "say", "parameters": schema}})]
    );
    let all = run(&tools, "", &["--list"]).text;
    assert!(
        !all.contains("exec") && !all.contains("SECRET_TOKEN") && all.contains("\"rm\""),
        "{all}"
    );
}

#[test]
fn a_dry_run_prints_command_lines_and_runs_nothing() {
    let dir = Dir::new();
    let tools = [tool("touch", &["touch", "--", "{text}"], json!({})), say()];
    let calls = [
        ("a", "touch", json!({"text": "made; $(id)"})),
        ("b", "say", json!({"text": "-n"})),
        ("c", "none", json!({})),
    ];
    let out = run_in(&dir, &tools, &turn(&calls), &["--dry-run"]);
    assert_eq!((out.status, out.events.len()), (0, 3));
    assert_eq!(out.events[0]["argv"], json!(["touch", "--", "made; $(id)"]));
    assert_eq!(
        (&out.events[1]["status"], &out.events[2]["status"]),
        (&json!("invalid"), &json!("unknown_tool"))
    );
    assert!(!dir.path("made; $(id)").exists());
    assert_eq!(
        run(&tools, START, &["--dry-run"]).status,
        2,
        "a stream that was cut"
    );
    assert_eq!(run(&tools, "", &["--dry-run"]).status, 1);
}

#[test]
fn mistakes_are_one_line_with_the_remedy() {
    let dir = Dir::new();
    refused(
        &bare(&["--tools", "/no/such/file"]),
        "/no/such/file: No such file or directory (os error 2), check the path",
    );
    refused(&bare(&[]), "--tools <FILE>");
    for (text, want) in [
        ("[", "not JSON: EOF while parsing"),
        (
            r#"[{"name":"a","exec":{"command":["x","{y}"]}}]"#,
            r#"tool 1 ("a"): {y} in the command is not a declared argument"#,
        ),
        (
            r#"{"mcpServers":{"git":{"comand":"x"}}}"#,
            r#"mcpServers: "git": comand is unknown, it may have type, command, args"#,
        ),
        (
            r#"[{"name":"a","exec":{"http":{"url":"x"}}}]"#,
            "exec.http.url must begin with https:",
        ),
        ("[{\"name\":\"a\n\u{1b}[2J\"}]", "not JSON"),
        (r#"[{"name":"a\u001b[2J"}]"#, "the name must be 1 to 128"),
    ] {
        let file = dir.write("t.json", text);
        let out = bare(&["--tools", file.to_str().unwrap()]);
        refused(&out, want);
        assert!(
            out.errors.contains("t.json") && !out.errors.contains('\u{1b}'),
            "{}",
            out.errors
        );
    }
    dir.write("t.json", b"\xff\xfe");
    refused(
        &bare(&["--tools", dir.path("t.json").to_str().unwrap()]),
        "not UTF-8",
    );
    for (args, want) in [
        (
            &["--sandbox", "docker"][..],
            "not one of none, landlock, bwrap",
        ),
        (&["--ask", "some"], "not one of danger, write, all, none"),
        (&["--approve-call", "a"], "write ID:HASH"),
        (&["--jobs", "0"], "not a number above 0"),
        (&["--timeout", "0s"], "must be above 0"),
        (&["--timeout", "soon"], "not a time"),
        (&["--resume", "/no/log"], "/no/log: the log cannot be read"),
        (&["--journal", "/no/dir/log"], "the journal cannot be used"),
        (&["--cache", "/no/dir/cache"], "the folder cannot be made"),
        (&["/no/such/input"], "/no/such/input"),
        (&["--no-such-option"], "--no-such-option"),
    ] {
        refused(&run(&[say()], "", args), want);
    }
}

#[test]
fn help_and_version() {
    let help = bare(&["--help"]);
    assert!(
        help.status == 0 && help.text.contains("Examples:") && help.text.contains("--resume <LOG>")
    );
    assert!(bare(&["--version"]).text.starts_with("tool-exec "));
}

#[test]
fn statuses() {
    let ok = turn(&[("a", "say", json!({"text": "x"}))]);
    let error =
        r#"{"type":"error","source":"llm-stream","code":"x","message":"y","retryable":false}"#;
    let plain = format!(
        "{START}\n{}\n{END}\n",
        r#"{"type":"message","message":{"role":"assistant","content":"hi"}}"#
    );
    for (input, status) in [
        (ok.clone(), 0),
        (plain.clone(), 1),
        (String::new(), 1),
        (format!("{START}\n{error}\n"), 2),
        (format!("{ok}{error}\n"), 2),
        (format!("{START}\n"), 2),
        (
            format!(
                "{START}\n{}\n{END}\n",
                call(0, "a", "say", &json!({"text": "x"}))
            ),
            2,
        ),
    ] {
        let out = run(&[say()], &input, &[]);
        assert_eq!(out.status, status, "{input}");
    }
    let lone = run(&[say()], &call(0, "a", "say", &json!({"text": "x"})), &[]);
    assert!(
        lone.status == 2
            && lone.errors.contains("put tc-accumulate before tool-exec")
            && lone.of("tool_use").is_empty()
    );
}

#[test]
fn lines_that_are_no_events_go_on_inside_warnings() {
    let input = format!(
        "not json\n{}{{\"type\":",
        turn(&[("a", "say", json!({"text": "x"}))])
    );
    let out = run(&[say()], &input, &[]);
    let warnings: Vec<_> = out
        .of("warning")
        .iter()
        .map(|w| (w["raw"].clone(), w["line"].clone()))
        .collect();
    assert_eq!(
        warnings,
        [
            (json!("not json"), json!(1)),
            (json!("{\"type\":"), json!(6))
        ]
    );
    assert_eq!(
        (out.status, out.outcome("a").1, out.errors.lines().count()),
        (0, "x\n", 2)
    );
    let strict = run(&[say()], &input, &["--strict"]);
    assert!(
        strict.status == 2
            && strict.errors.contains("line 1: not an event")
            && strict.of("tool_use").is_empty()
    );
    let long = run(
        &[say()],
        &format!(
            "{}\n{}",
            "x".repeat(10_000),
            turn(&[("a", "say", json!({"text": "x"}))])
        ),
        &["--max-line", "2K"],
    );
    assert_eq!(
        (
            long.status,
            long.of("warning")[0]["raw"].as_str().unwrap().len()
        ),
        (0, 10_000)
    );
    assert_eq!(
        run(&[say()], &input, &["--max-line", "20"])
            .of("tool_use")
            .len(),
        0
    );
}

#[test]
fn an_event_that_is_too_long_to_be_read_fails_its_turn() {
    let delta = json!({"type": "content_delta", "stream": "s", "text": "x".repeat(10_000)});
    let input = format!("{delta}\n{}", turn(&[("a", "say", json!({"text": "x"}))]));
    for (args, events) in [
        (&["--max-line", "2K"][..], 8),
        (&["--max-line", "2K", "--dry-run"], 1),
    ] {
        let out = run(&[say()], &input, args);
        assert_eq!(
            (out.status, out.events.len() >= events),
            (2, true),
            "{args:?}: {}",
            out.text
        );
        let error = out
            .of("error")
            .first()
            .map(|e| (e["stream"].clone(), e["code"].clone()));
        assert!(
            error.is_none() || error == Some((json!("s"), json!("line_too_long"))),
            "{}",
            out.text
        );
        assert_eq!(
            error.is_some(),
            args.len() == 2,
            "a dry run prints calls alone: {}",
            out.text
        );
    }
    // Nor does the command write an event that the next one could not read: its result and its tool
    // message are lost.
    let big = script("big", "head -c 9000 /dev/zero | tr '\\0' x", json!({}));
    let out = run(
        &[big],
        &turn(&[("a", "big", json!({}))]),
        &["--max-line", "5K"],
    );
    let codes: Vec<_> = out
        .of("error")
        .iter()
        .map(|e| e["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        (out.status, &codes[..]),
        (2, &["line_too_long"; 2][..]),
        "{}",
        out.text
    );
}

#[test]
fn what_may_run() {
    let tools = [
        say(),
        tool("rm", &["echo", "removed"], json!({"class": "danger"})),
    ];
    let input = turn(&[("a", "say", json!({"text": "x"})), ("b", "rm", json!({}))]);
    for (args, say, rm, status) in [
        (&[][..], "success", "pending", 3),
        (
            &["--ask", "none", "--sandbox", "none"],
            "success",
            "success",
            0,
        ),
        (
            &["--ask", "none", "--deny", "r*", "--deny", "x"],
            "success",
            "denied",
            0,
        ),
        (&["--ask", "none", "--allow", "rm"], "denied", "success", 0),
        (&["--allow", "*", "--deny", "*"], "denied", "denied", 0),
        (&["--ask", "write"], "pending", "pending", 3),
    ] {
        let out = run(&tools, &input, args);
        assert_eq!(
            (out.outcome("a").0, out.outcome("b").0, out.status),
            (say, rm, status),
            "{args:?}"
        );
    }
}

#[test]
fn a_call_that_waited_for_approval_runs_when_it_comes() {
    let tools = [
        say(),
        tool("rm", &["echo", "removed"], json!({"class": "danger"})),
    ];
    let input = turn(&[("a", "say", json!({"text": "x"})), ("b", "rm", json!({}))]);
    let waits = run(&tools, &input, &[]);
    assert_eq!(
        (waits.status, waits.of("message").len()),
        (3, 2),
        "the call that waits has no message yet: {}",
        waits.text
    );
    let dir = Dir::new();
    let log = dir.path("log.ndjson");
    std::fs::write(&log, &waits.text).unwrap();
    let log = log.to_str().unwrap();
    let still = run(&tools, "", &["--resume", log]);
    assert_eq!(
        (still.status, still.of("tool_use").len()),
        (3, 0),
        "{}",
        still.text
    );
    let goes_on = run(
        &tools,
        "",
        &["--resume", log, "--approve-call", &waits.reference("b")],
    );
    assert_eq!(
        (
            goes_on.status,
            goes_on.of("tool_use").len(),
            goes_on.of("message").len()
        ),
        (0, 1, 1),
        "{}",
        goes_on.text
    );
    assert!(
        goes_on.result("b")["output"]
            .as_str()
            .unwrap()
            .contains("removed")
    );
}

#[test]
fn a_full_disk_is_one_line_and_status_2_and_the_call_does_not_start() {
    let dir = Dir::new();
    let tools = [script("touch", "touch ran", json!({}))];
    let mut command = command(&dir, &tools, &["in"]);
    dir.write("in", turn(&[("a", "touch", json!({}))]));
    command.stdout(File::create("/dev/full").unwrap());
    let out = command.output().unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(
        (code(out.status), errors.lines().count()),
        (2, 1),
        "{errors}"
    );
    assert!(
        errors.contains("No space left") && !dir.path("ran").exists(),
        "{errors}"
    );
    // A journal on a full disk, likewise.
    let out = run_in(
        &dir,
        &tools,
        &turn(&[("a", "touch", json!({}))]),
        &["--journal", "/dev/full"],
    );
    assert!(
        out.status == 2 && out.errors.contains("/dev/full") && !dir.path("ran").exists(),
        "{}",
        out.errors
    );
}

#[test]
fn a_reader_that_leaves_ends_the_command_and_what_runs() {
    let dir = Dir::new();
    let wait = script("wait", "echo $$; exec sleep 1000", json!({"class": "read"}));
    let mut live = Live::new(&dir, &[wait], &["--progress"]);
    live.send(START);
    live.send(&call(0, "a", "wait", &json!({})));
    live.until("tool_progress");
    assert_eq!(processes(&dir).len(), 1);
    // The input stays open, without another line.
    assert_eq!(live.leave(), 0);
    wait_until("the command goes on", || processes(&dir).is_empty());
}

#[test]
fn head_leaves_early_without_a_word() {
    let dir = Dir::new();
    let file = dir.write("tools.json", json!([say()]).to_string());
    dir.write(
        "in",
        turn(&[("a", "say", json!({"text": "x"}))]).repeat(2000),
    );
    let script = format!(
        "set -o pipefail; '{}' --tools '{}' in | head -1",
        env!("CARGO_BIN_EXE_tool-exec"),
        file.display()
    );
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .current_dir(dir.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let out = run_command(shell, "");
    assert_eq!(
        (out.status, out.errors.as_str(), out.events.len()),
        (0, "", 1)
    );
}

/// A turn whose first call runs until it is ended or let go, and whose second waits for its place.
fn busy(dir: &Dir) -> Live {
    let wait = script("wait", "echo $$; read line <gate; echo done", json!({}));
    Command::new("mkfifo")
        .arg(dir.path("gate"))
        .status()
        .unwrap();
    let mut live = Live::new(
        dir,
        &[wait],
        &["--progress", "--jobs", "1", "--order", "completion"],
    );
    turn(&[("a", "wait", json!({})), ("b", "wait", json!({}))])
        .lines()
        .for_each(|line| live.send(line));
    live.until("tool_progress");
    live
}

/// Sends a first interrupt, and waits until the command reports it.
fn interrupt(live: &mut Live) {
    live.signal("INT");
    assert_eq!(
        live.error(),
        "tool-exec: waiting for running calls to end (wait), press Ctrl-C again to stop them now\n"
    );
    let result = live.until("tool_result");
    assert_eq!(
        (&result["tool_id"], &result["status"]),
        (&json!("b"), &json!("cancelled"))
    );
}

fn results(events: &[Value]) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    events
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| (text(&e["tool_id"]), text(&e["status"])))
        .collect()
}

#[test]
fn the_first_interrupt_lets_what_runs_finish_and_closes_the_log() {
    let dir = Dir::new();
    let mut live = busy(&dir);
    interrupt(&mut live);
    assert_eq!(processes(&dir).len(), 1);
    std::fs::write(dir.path("gate"), "go\n").unwrap();
    let (status, rest) = live.end();
    assert_eq!(
        (status, results(&rest)),
        (130, vec![("a".into(), "success".into())])
    );
    let sent: Vec<_> = rest
        .iter()
        .filter(|e| e["type"] == "message")
        .map(|e| e["message"]["tool_call_id"].clone())
        .collect();
    assert_eq!(sent, ["a", "b"]);
}

#[test]
fn the_second_interrupt_ends_now() {
    let dir = Dir::new();
    let mut live = busy(&dir);
    interrupt(&mut live);
    live.signal("INT");
    let (status, rest) = live.end();
    assert_eq!(
        (status, results(&rest)),
        (130, vec![("a".into(), "cancelled".into())])
    );
    assert!(
        rest.iter().any(|e| e["output"]
            .as_str()
            .is_some_and(|text| text.contains("was stopped"))),
        "{rest:?}"
    );
    let sent = rest.iter().filter(|e| e["type"] == "message").count();
    assert!(
        sent == 2 && processes(&dir).is_empty(),
        "the log is whole: {rest:?}"
    );
}

/// Nothing runs, so there is nothing to wait for and nothing to report.
#[test]
fn an_interrupt_without_a_call_is_silent() {
    let dir = Dir::new();
    let mut live = Live::new(&dir, &[say()], &[]);
    live.send(START);
    live.until("stream_start");
    let input = live.input.take(); // stays open: the signal alone ends it
    live.signal("INT");
    let (status, _, errors) = live.end_and_errors();
    drop(input);
    assert_eq!((status, errors.as_str()), (130, ""));
}

#[test]
fn a_termination_ends_what_runs_and_closes_the_log() {
    let dir = Dir::new();
    let live = busy(&dir);
    live.signal("TERM");
    let (status, rest) = live.end();
    let mut results = results(&rest);
    results.sort();
    assert_eq!(
        (status, results),
        (
            143,
            vec![
                ("a".into(), "cancelled".into()),
                ("b".into(), "cancelled".into())
            ]
        )
    );
    assert_eq!(processes(&dir), [""; 0]);
}

#[test]
fn interrupts_end_it_also_while_nobody_reads() {
    let dir = Dir::new();
    let big = script(
        "big",
        "head -c 2000000 /dev/zero | tr '\\0' x; touch made",
        json!({"max_output": "4M"}),
    );
    let mut live = Live::new(&dir, &[big], &[]);
    turn(&[("a", "big", json!({}))])
        .lines()
        .for_each(|line| live.send(line));
    wait_until("the result is there", || dir.path("made").exists());
    // Signals that arrive at the same moment count as one, so they are sent until the command ends.
    let pid = live.child.id();
    wait_until("it goes on", || {
        harness::kill(pid, "INT");
        !runs(&pid.to_string())
    });
    assert_eq!(code(live.child.wait().unwrap()), 130);
}

#[test]
fn a_file_of_the_tools_folder_runs_from_anywhere() {
    let dir = Dir::new();
    let other = Dir::new();
    let program = dir.write("here.sh", "#!/bin/sh\npwd\n");
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let tools = [
        tool("here", &["./here.sh"], json!({})),
        tool("there", &["./here.sh"], json!({"cwd": "."})),
    ];
    let mut command = command(&dir, &tools, &[]);
    command.current_dir(other.path("."));
    let out = run_command(
        command,
        &turn(&[("a", "here", json!({})), ("b", "there", json!({}))]),
    );
    let real = |dir: &Dir| format!("{}\n", dir.path(".").canonicalize().unwrap().display());
    assert_eq!(
        (out.outcome("a").1, out.outcome("b").1),
        (real(&other).as_str(), real(&dir).as_str())
    );
}

#[test]
fn results_are_kept_for_tools_that_say_so() {
    let dir = Dir::new();
    let count =
        |name: &str, cache: Value| script(name, "echo x >>ran; wc -l <ran; exit $CODE", cache);
    let tools = [
        count("kept", json!({"cache": "1h", "env": ["CODE"]})),
        count("not", json!({})),
    ];
    let go = |name: &str, text: &str, code: &str, args: &[&str]| {
        let mut command = command(&dir, &tools, args);
        command.env("CODE", code);
        let out = run_command(command, &message(&[("i", name, json!({"text": text}))]));
        let result = out.result("i").clone();
        let hits = out.of("session_stats")[0]["cache_hits"].clone();
        (
            result["output"].as_str().unwrap().trim().to_owned(),
            result["cached"] == true,
            hits,
            out.of("tool_use").len(),
        )
    };
    let cache = &["--cache", "kept-results"][..];
    assert_eq!(
        go("kept", "a", "0", cache),
        ("1".into(), false, json!(0), 1)
    );
    assert_eq!(go("kept", "a", "0", cache), ("1".into(), true, json!(1), 0));
    assert_eq!(
        go("kept", "b", "0", cache),
        ("2".into(), false, json!(0), 1),
        "other arguments"
    );
    assert_eq!(
        go("kept", "a", "0", &[]),
        ("3".into(), false, json!(0), 1),
        "another folder"
    );
    assert_eq!(
        go("kept", "a", "0", &[]),
        ("3".into(), true, json!(1), 0),
        "the default folder"
    );
    assert_eq!(
        go("kept", "a", "0", &["--no-cache"]),
        ("4".into(), false, json!(0), 1),
        "without a cache"
    );
    assert!(!go("not", "a", "0", cache).1 && !go("not", "a", "0", cache).1);
    // Another environment makes another key, and failures are not kept.
    assert_eq!(
        (go("kept", "a", "1", cache).1, go("kept", "a", "1", cache).1),
        (false, false)
    );
}
