//! A log is the checkpoint: however a run ends, the next one continues from there and runs nothing
//! twice.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{
    self, Dir, Live, command, events, message, put, ran, run_in, script, tool, turn,
};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::process::Stdio;

fn calls<'a>(ids: &[&'a str]) -> Vec<(&'a str, &'static str, Value)> {
    ids.iter()
        .map(|id| (*id, "put", json!({"text": id})))
        .collect()
}

#[test]
fn a_call_that_a_journal_answers_does_not_run_again() {
    let dir = Dir::new();
    let input = turn(&calls(&["a", "b"]));
    let first = run_in(
        &dir,
        &[put("write")],
        &input,
        &["--journal", "journal", "--no-time"],
    );
    assert_eq!(first.status, 0);
    let journal = events(&dir.read("journal"));
    let kinds: Vec<_> = journal
        .iter()
        .map(|e| e["type"].as_str().unwrap())
        .collect();
    assert!(
        kinds.iter().filter(|k| **k == "tool_use").count() == 2 && kinds.len() == 4,
        "{kinds:?}"
    );
    let again = run_in(
        &dir,
        &[put("write")],
        &input,
        &["--resume", "journal", "--no-time"],
    );
    assert_eq!(
        (again.status, again.of("tool_use").len(), ran(&dir)["a"]),
        (0, 0, 1)
    );
    assert_eq!(
        (again.outcome("a"), again.result("a")["resumed"].clone()),
        (("success", "put a\n"), json!(true))
    );
    assert_eq!(
        again.of("message"),
        first.of("message"),
        "the messages are the same"
    );
    // The log itself serves as well as the journal.
    dir.write("log", &first.text);
    let again = run_in(&dir, &[put("write")], "", &["--resume", "log"]);
    assert_eq!((again.status, again.text.as_str()), (1, ""));
}

#[test]
fn the_turn_that_a_log_ends_in_is_finished() {
    let dir = Dir::new();
    let whole = run_in(
        &dir,
        &[put("write")],
        &turn(&calls(&["a", "b"])),
        &["--no-time"],
    );
    std::fs::remove_file(dir.path("ran")).unwrap();
    // Every prefix of the log: a call with a result does not run, one that was started waits for a
    // person, any other one runs.
    let lines: Vec<&str> = whole.text.lines().collect();
    for n in 0..=lines.len() {
        let _ = std::fs::remove_file(dir.path("ran"));
        let log = lines[..n].join("\n");
        dir.write("log", &log);
        let has = |kind: &str, id: &str| {
            events(&log).iter().any(|e| {
                e["type"] == kind && (e["tool_id"] == id || e["message"]["tool_call_id"] == id)
            })
        };
        let committed = log.contains("assistant");
        let out = run_in(&dir, &[put("write")], "", &["--resume", "log", "--no-time"]);
        let ran = ran(&dir);
        for id in ["a", "b"] {
            let fresh = committed && !has("tool_use", id);
            assert_eq!(
                ran.get(id).copied().unwrap_or(0),
                usize::from(fresh),
                "{id} after {n} lines"
            );
            let begun =
                committed && has("tool_use", id) && !has("tool_result", id) && !has("message", id);
            let pending = out
                .of("tool_result")
                .iter()
                .any(|r| r["tool_id"] == id && r["status"] == "pending");
            assert_eq!(pending, begun, "{id} after {n} lines");
        }
        // Together both logs hold each message once, in call order.
        let all = events(&format!("{log}\n{}", out.text));
        let sent: Vec<_> = all
            .iter()
            .filter_map(|e| e["message"]["tool_call_id"].as_str())
            .collect();
        let pending = out
            .of("tool_result")
            .iter()
            .any(|r| r["status"] == "pending");
        assert_eq!(out.status == 3, pending, "after {n} lines: {}", out.text);
        if committed && !pending {
            assert_eq!(sent, ["a", "b"], "after {n} lines");
        }
    }
}

#[test]
fn a_call_that_was_begun_runs_again_when_a_person_says_so_or_it_only_reads() {
    let used = r#"{"type":"tool_use","tool_id":"a","tool_name":"put","status":"running"}"#;
    let log = format!("{}\n{used}\n", message(&calls(&["a"])));
    for (class, args, status, count) in [
        ("write", &[][..], 3, 0),
        ("read", &[], 0, 1),
        ("write", &["--ask", "none"], 3, 0),
    ] {
        let dir = Dir::new();
        dir.write("log", &log);
        let args: Vec<&str> = [&["--resume", "log"], args].concat();
        let out = run_in(&dir, &[put(class)], "", &args);
        assert_eq!(
            (out.status, ran(&dir).len()),
            (status, count),
            "{class} {args:?}"
        );
        if status == 3 {
            let yes = out.reference("a");
            assert!(
                out.outcome("a")
                    .1
                    .contains(&format!("--approve-call {yes}"))
                    && out.of("message").is_empty()
            );
            let out = run_in(
                &dir,
                &[put(class)],
                "",
                &["--resume", "log", "--approve-call", &yes],
            );
            assert_eq!((out.status, ran(&dir).len()), (0, 1), "{}", out.text);
        }
    }
}

#[test]
fn a_command_that_is_killed_at_any_line_goes_on_from_its_journal() {
    let ids = ["a", "b", "c", "d"];
    let input = turn(&calls(&ids));
    let all = input.lines().count() + 3 * ids.len();
    for n in 1..=all {
        let dir = Dir::new();
        let mut live = Live::new(
            &dir,
            &[put("write")],
            &["--journal", "journal", "--jobs", "2"],
        );
        input.lines().for_each(|line| live.send(line));
        for _ in 0..n {
            live.line();
        }
        live.signal("KILL");
        assert_eq!(live.end().0, -9);
        check_resume(&dir, &input, &ids, n);
    }
}

/// After a run that was killed: no call has run twice, none is lost, and those with an unknown
/// outcome wait for a person.
fn check_resume(dir: &Dir, input: &str, ids: &[&str], at: usize) {
    let out = run_in(
        dir,
        &[put("write")],
        input,
        &["--resume", "journal", "--journal", "journal"],
    );
    let after = ran(dir);
    let mut pending = false;
    for id in ids {
        let (status, _) = out.outcome(id);
        pending |= status == "pending";
        let count = after.get(*id).copied().unwrap_or(0);
        // A command may be killed with its runner before it leaves its trace.
        assert!(
            count == 1 || (status == "pending" && count == 0),
            "{id} ran {count} times, killed at line {at}: {status}"
        );
    }
    assert_eq!(out.status, if pending { 3 } else { 0 });
}

#[test]
fn the_log_may_be_its_own_journal() {
    let dir = Dir::new();
    let ids = ["a", "b"];
    let mut go = command(
        &dir,
        &[put("write")],
        &["--journal", "log", "--resume", "log", "--no-time", "in"],
    );
    dir.write("in", turn(&calls(&ids)));
    dir.write(
        "log",
        "{\"role\":\"user\",\"content\":\"hi\"}\n{\"type\":\"content_del",
    );
    let log = OpenOptions::new()
        .append(true)
        .open(dir.path("log"))
        .unwrap();
    let out = go.stdout(Stdio::from(log)).output().unwrap();
    assert_eq!(
        harness::code(out.status),
        0,
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = dir.read("log");
    let lines: Vec<&str> = text.lines().collect();
    let cut: Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(
        (&cut["code"], &cut["raw"]),
        (&json!("not_an_event"), &json!("{\"type\":\"content_del"))
    );
    let events = events(&lines[2..].join("\n"));
    let count = |kind: &str| events.iter().filter(|e| e["type"] == kind).count();
    assert_eq!(
        (count("tool_use"), count("tool_result"), count("message")),
        (2, 2, 3),
        "nothing stands in it twice"
    );
    // The run continues from there.
    let mut again = command(&dir, &[put("write")], &["--resume", "log"]);
    let out = again.stdin(Stdio::null()).output().unwrap();
    assert_eq!((harness::code(out.status), ran(&dir)["a"]), (1, 1));
}

/// How a run that continues from the file `log` may name it. In each of them the file holds all
/// that went before, and gets all that follows.
const SELF: [&[&str]; 12] = [
    &["--log", "log"],
    &["--log", "log", "--resume", "log"],
    &["--resume", "log"],
    &["--resume", "log", "--journal", "log"],
    &["--resume", "./log", "--journal", "log-hard"],
    &["--resume", "log-link"],
    &["--resume", "log-link", "--journal", "/dev/stdout"],
    &["--resume", "/dev/fd/1", "--log", "log", "--journal", "log"],
    &["--resume", "log", "--journal", "journal"],
    &["--journal", "log"],
    &[
        "--log",
        "log",
        "--journal",
        "./log-hard",
        "--resume",
        "log-link",
    ],
    &[
        "--resume", "log", "--resume", "log-link", "--resume", "log-hard",
    ],
];

/// A run that continues from the file `log`, named as `names` has it, and appends to it. A write
/// call needs no yes.
fn continued(dir: &Dir, names: &[&str], input: &str) -> harness::Out {
    let _ = std::fs::hard_link(dir.path("log"), dir.path("log-hard"));
    let _ = std::os::unix::fs::symlink(dir.path("log"), dir.path("log-link"));
    let mut go = command(dir, &[put("write")], &[names, &["--no-time"]].concat());
    let log = OpenOptions::new()
        .append(true)
        .open(dir.path("log"))
        .unwrap();
    go.stdin(std::fs::File::open(dir.write("in", input)).unwrap())
        .stdout(log);
    harness::run_command_without_input(go)
}

#[test]
fn a_log_that_is_read_and_appended_to_runs_a_call_once_whatever_its_names() {
    for names in SELF {
        let dir = Dir::new();
        dir.write("log", "");
        for status in [0, 0, 0] {
            let out = continued(&dir, names, &turn(&calls(&["a"])));
            assert_eq!(
                (out.status, ran(&dir)["a"]),
                (status, 1),
                "{names:?}: {}",
                out.errors
            );
        }
        let text = dir.read("log");
        let of = |kind: &str| events(&text).iter().filter(|e| e["type"] == kind).count();
        assert_eq!(
            (of("tool_use"), of("tool_result")),
            (1, 3),
            "{names:?}: each line once\n{text}"
        );
    }
}

#[test]
fn a_log_that_is_read_and_appended_to_keeps_what_was_begun_and_what_waits() {
    let used = r#"{"type":"tool_use","tool_id":"a","tool_name":"put","status":"running"}"#;
    for names in SELF {
        let dir = Dir::new();
        // A call that was begun waits for a person; one that was not is run.
        dir.write("log", format!("{}\n{used}\n", message(&calls(&["a", "b"]))));
        let out = continued(&dir, names, "");
        assert_eq!(
            (out.status, ran(&dir).len(), dir.read("ran")),
            (3, 1, "b\n".to_owned()),
            "{names:?}: {}",
            out.errors
        );
        let out = continued(&dir, names, "");
        assert_eq!(
            (out.status, dir.read("ran").as_str()),
            (3, "b\n"),
            "{names:?}: {}",
            out.errors
        );
        // What is appended begins on a line of its own, so that no start becomes the rest of a line
        // that was cut.
        let dir = Dir::new();
        dir.write(
            "log",
            format!("{}\n{{\"type\":\"tool_re", message(&calls(&["a"]))),
        );
        assert_eq!(continued(&dir, names, "").status, 0, "{names:?}");
        assert_eq!(
            (continued(&dir, names, "").status, ran(&dir)["a"]),
            (1, 1),
            "{names:?}: {}",
            dir.read("log")
        );
        events(&dir.read("log"));
    }
}

#[test]
fn a_file_that_is_written_is_no_input() {
    let dir = Dir::new();
    let text = turn(&calls(&["a"]));
    dir.write("log", &text);
    std::os::unix::fs::symlink(dir.path("log"), dir.path("log-link")).unwrap();
    for (args, is_stdin, is_stdout) in [
        (&["--log", "log"][..], true, false),
        (&["--log", "log", "log-link"], false, false),
        (&["--journal", "log", "/dev/stdin"], true, false),
        (&["--resume", "log", "-"], true, true),
        (&[], true, true),
        (&["./log"], false, true),
    ] {
        let mut go = command(&dir, &[put("write")], args);
        let open = || {
            OpenOptions::new()
                .read(true)
                .append(true)
                .open(dir.path("log"))
                .unwrap()
        };
        go.stdin(if is_stdin {
            Stdio::from(open())
        } else {
            Stdio::null()
        });
        go.stdout(if is_stdout {
            Stdio::from(open())
        } else {
            Stdio::piped()
        });
        let out = harness::run_command_without_input(go);
        let said =
            out.errors.contains("is both input and output") && out.errors.lines().count() == 1;
        assert!(
            out.status == 2 && said && out.text.is_empty(),
            "{args:?}: {} {}",
            out.status,
            out.errors
        );
        assert_eq!(
            (dir.read("log"), dir.read("ran")),
            (text.clone(), String::new()),
            "{args:?}"
        );
    }
    // A log that is only read may be the input too.
    let mut go = command(&dir, &[put("write")], &["--resume", "log"]);
    go.stdin(std::fs::File::open(dir.path("log")).unwrap());
    assert_eq!(harness::run_command_without_input(go).status, 0);
}

#[test]
fn a_log_that_was_cut_at_any_byte_is_read() {
    let dir = Dir::new();
    let whole = run_in(&dir, &[put("write")], &turn(&calls(&["a"])), &["--no-time"]).text;
    let message_at = whole.find("{\"type\":\"message\"").unwrap();
    for cut in (message_at..whole.len()).step_by(23) {
        let _ = std::fs::remove_file(dir.path("ran"));
        let log = &whole[..cut];
        dir.write("log", log);
        let complete: Vec<&str> = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .collect();
        let begun = complete.iter().any(|line| line.contains("tool_use"));
        let committed = complete.iter().any(|line| line.contains("assistant"));
        let out = run_in(&dir, &[put("write")], "", &["--resume", "log"]);
        // A complete line that lacks only its line feed counts too.
        let whole_but_feed = whole.as_bytes()[cut] == b'\n';
        if !whole_but_feed {
            assert_eq!(
                ran(&dir).len(),
                usize::from(committed && !begun),
                "cut at {cut}"
            );
        }
        assert!(
            matches!(out.status, 0 | 1 | 3),
            "cut at {cut}: {}",
            out.errors
        );
    }
}

#[test]
fn an_id_that_a_server_uses_again_is_another_call() {
    let dir = Dir::new();
    let one = run_in(
        &dir,
        &[put("write")],
        &turn(&[("call_0", "put", json!({"text": "x"}))]),
        &[],
    );
    dir.write("log", &one.text);
    let two = run_in(
        &dir,
        &[put("write")],
        &turn(&[("call_0", "put", json!({"text": "y"}))]),
        &["--resume", "log"],
    );
    assert_eq!(
        (two.status, two.outcome("call_0").1, ran(&dir).len()),
        (0, "put y\n", 2)
    );
    // Two turns of one log, the second without an answer.
    let both = one.text + &turn(&[("call_0", "put", json!({"text": "z"}))]);
    let out = run_in(&dir, &[put("write")], &both, &[]);
    assert_eq!(
        (out.outcome("call_0").1, ran(&dir)["x"], ran(&dir)["z"]),
        ("put x\n", 1, 1)
    );
}

#[test]
fn a_tool_that_reads_only_is_no_exception_to_once() {
    let dir = Dir::new();
    let input = turn(&calls(&["a"]));
    run_in(&dir, &[put("read")], &input, &["--journal", "journal"]);
    run_in(&dir, &[put("read")], &input, &["--resume", "journal"]);
    assert_eq!(ran(&dir)["a"], 1);
    assert_eq!(
        run_in(
            &dir,
            &[tool("put", &["cat"], json!({}))],
            &input,
            &["--resume", "journal"]
        )
        .outcome("a")
        .1,
        "put a\n"
    );
}

#[test]
fn a_call_that_was_cut_does_not_run_from_the_log_either() {
    let dir = Dir::new();
    let refused = json!({"type": "tool_call", "index": 0, "tool_id": "a", "tool_name": "put", "arguments": null,
        "arguments_text": "{\"te", "error": {"code": "incomplete", "message": "cut off"}});
    let asked = message(&[("a", "put", json!({})), ("b", "put", json!({"text": "b"}))]);
    dir.write("log", format!("{}\n{refused}\n{asked}\n", harness::START));
    let out = run_in(&dir, &[put("write")], "", &["--resume", "log", "--no-time"]);
    assert_eq!(
        (out.status, out.outcome("a").0, out.outcome("b").0),
        (0, "invalid", "success")
    );
    assert_eq!(ran(&dir).into_keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_call_that_a_person_refuses_is_denied_and_the_turn_goes_on() {
    let tools = [
        put("write"),
        script("rm", "echo removed >>ran", json!({"class": "danger"})),
    ];
    let dir = Dir::new();
    let two = [
        ("a", "rm", json!({})),
        ("b", "put", json!({"text": "b"})),
        ("c", "rm", json!({})),
    ];
    let waits = run_in(&dir, &tools, &turn(&two), &["--no-time"]);
    assert_eq!(waits.status, 3);
    dir.write("log", &waits.text);
    let pending = run_in(&dir, &tools, "", &["--resume", "log", "--list-pending"]);
    assert_eq!(
        (
            pending.status,
            pending.text.as_str(),
            pending.errors.as_str()
        ),
        (
            0,
            format!("{}\n{}\n", waits.reference("a"), waits.reference("c")).as_str(),
            ""
        )
    );
    // A refusal overrides an approval.
    let [a, c] = [waits.reference("a"), waits.reference("c")];
    let args = [
        "--resume",
        "log",
        "--no-time",
        "--deny-call",
        &a,
        "--approve-call",
        &a,
        "--approve-call",
        &c,
    ];
    let out = run_in(&dir, &tools, "", &args);
    assert_eq!(
        (out.status, out.outcome("a").0, out.outcome("c").0),
        (0, "denied", "success"),
        "{}",
        out.errors
    );
    assert_eq!(dir.read("ran"), "b\nremoved\n");
    let sent: Vec<_> = out
        .of("message")
        .iter()
        .map(|e| e["message"]["tool_call_id"].clone())
        .collect();
    assert_eq!(sent, ["a", "b", "c"]);
    dir.write("log", waits.text + &out.text);
    let over = run_in(&dir, &tools, "", &["--resume", "log", "--list-pending"]);
    assert_eq!((over.status, over.text.as_str()), (1, ""));
}

#[test]
fn a_call_that_was_begun_may_be_refused_too() {
    let used = r#"{"type":"tool_use","tool_id":"a","tool_name":"put","status":"running"}"#;
    let dir = Dir::new();
    dir.write("log", format!("{}\n{used}\n", message(&calls(&["a"]))));
    let waits = run_in(
        &dir,
        &[put("write")],
        "",
        &["--resume", "log", "--list-pending"],
    )
    .text;
    let out = run_in(
        &dir,
        &[put("write")],
        "",
        &["--resume", "log", "--deny-call", waits.trim_end()],
    );
    let (status, text) = out.outcome("a");
    assert!(
        out.status == 0 && status == "denied" && text.contains("was started before"),
        "{text}"
    );
    assert_eq!((ran(&dir).len(), out.of("message").len()), (0, 1));
    // Without a call that waits it changes nothing.
    let out = run_in(
        &dir,
        &[put("write")],
        &turn(&calls(&["b"])),
        &["--deny-call", waits.trim_end()],
    );
    assert_eq!((out.status, out.outcome("b").0), (0, "success"));
}

#[test]
fn an_id_that_a_later_response_uses_again_runs_again() {
    let dir = Dir::new();
    for (id, count) in [("r1", 1), ("r2", 2), ("r2", 2)] {
        let input = turn(&calls(&["a"])).replace(
            "\"type\":\"stream_start\"",
            &format!("\"type\":\"stream_start\",\"id\":\"{id}\""),
        );
        assert!(input.contains(id));
        let out = run_in(&dir, &[put("write")], &input, &["--log", "log"]);
        assert_eq!(
            (out.status, ran(&dir)["a"]),
            (0, count),
            "{id}: {}",
            out.text
        );
    }
}

#[test]
fn a_log_and_its_journal_are_not_two_histories() {
    for no_time in [&["--no-time"][..], &[]] {
        let dir = Dir::new();
        let args = [&["--log", "log", "--journal", "journal"], no_time].concat();
        let out = run_in(&dir, &[put("write")], &turn(&calls(&["a", "b"])), &args);
        assert_eq!(out.status, 0, "{}", out.errors);
        for files in [["log", "journal"], ["journal", "log"]] {
            let args = ["--resume", files[0], "--resume", files[1]];
            let again = run_in(&dir, &[put("write")], "", &args);
            assert_eq!((again.status, again.text.as_str()), (1, ""), "{files:?}");
        }
    }
}

#[test]
fn what_ran_is_the_same_whichever_option_names_its_file_however_often() {
    let tools = [put("write")];
    let limit = "[[rule]]\ntool = \"put\"\nlimit = 3\n";
    let kept = Dir::new();
    let args = ["--log", "log", "--journal", "journal", "--no-time"];
    let first = run_in(&kept, &tools, &turn(&calls(&["a", "b"])), &args);
    assert_eq!(first.status, 0, "{}", first.errors);
    // The limit leaves one more call, so a start that counts twice is seen.
    let next = turn(&calls(&["a", "c", "d"]));
    let names: [&[&str]; 9] = [
        &["--log", "f"],
        &["--journal", "f"],
        &["--resume", "f"],
        &["--log", "f", "--journal", "hard", "--resume", "link"],
        &["--journal", "./f", "--resume", "hard"],
        &["--resume", "f", "--resume", "f"],
        &["--resume", "link", "--resume", "hard"],
        &["--resume", "f", "--journal", "other"],
        &["--log", "f", "--resume", "other"],
    ];
    for file in ["log", "journal"] {
        for replays in [false, true] {
            let mut all: Vec<String> = Vec::new();
            for names in names {
                let dir = Dir::new();
                dir.write("policy", limit);
                dir.write("f", kept.read(file));
                // A copy that is the other kind of file.
                dir.write(
                    "other",
                    kept.read(if file == "log" { "journal" } else { "log" }),
                );
                std::fs::hard_link(dir.path("f"), dir.path("hard")).unwrap();
                std::os::unix::fs::symlink(dir.path("f"), dir.path("link")).unwrap();
                dir.write("recorded", first.text.replace("put a", "recorded"));
                let more: &[&str] = match replays {
                    true => &["--replay", "recorded", "--no-time"],
                    false => &["--policy", "policy", "--no-time"],
                };
                let input = if replays {
                    &turn(&calls(&["a"]))
                } else {
                    &next
                };
                let out = run_in(&dir, &tools, input, &[names, more].concat());
                let seen = format!("{} {}{}", out.status, out.text, dir.read("ran"));
                if !names.contains(&"other") {
                    all.push(seen);
                } else if !replays {
                    let ran: Vec<_> = ran(&dir).into_iter().collect();
                    assert_eq!(
                        ran,
                        [("c".to_owned(), 1)],
                        "{file} {names:?}: {}",
                        out.errors
                    );
                }
            }
            all.iter()
                .for_each(|seen| assert_eq!(*seen, all[0], "{file}"));
            assert!(replays || all[0].ends_with("\nc\n"), "{}", all[0]);
        }
    }
}

#[test]
fn a_log_that_a_replay_is_given_twice_is_one() {
    let dir = Dir::new();
    let asked = |id| turn(&[(id, "put", json!({"text": "x"}))]);
    let tools = [put("write")];
    let [first, second] = ["a", "b"].map(|id| run_in(&dir, &tools, &asked(id), &[]).text);
    dir.write("recorded", &(first + &second.replace("put x", "put y")));
    let replay = ["--replay", "recorded", "--log", "log"];
    let first = run_in(&dir, &tools, &asked("c"), &replay);
    assert_eq!(first.outcome("c").1, "put x\n", "{}", first.errors);
    std::os::unix::fs::symlink(dir.path("log"), dir.path("link")).unwrap();
    let args = [&replay[..], &["--resume", "log", "--resume", "link"]].concat();
    let second = run_in(&dir, &tools, &asked("d"), &args);
    assert_eq!(second.outcome("d").1, "put y\n", "{}", second.errors);
}

#[test]
fn a_stream_that_fails_after_its_message_does_not_hide_what_ran() {
    let dir = Dir::new();
    let failed = turn(&calls(&["a", "b"])).replace(
        "\"finish_reason\":\"tool_calls\"",
        "\"finish_reason\":\"error\"",
    );
    let out = run_in(&dir, &[put("write")], &failed, &["--log", "log"]);
    assert_eq!(
        (out.status, out.outcome("a"), out.outcome("b").0),
        (2, ("success", "put a\n"), "success")
    );
    assert!(
        out.errors.contains("after 2 calls had started") && !out.errors.contains("none"),
        "{}",
        out.errors
    );
    // A call that reads has run before the stream is cut without a message.
    let mut live = Live::new(&dir, &[put("read")], &[]);
    live.send(harness::START);
    live.send(&harness::call(0, "r", "put", &json!({"text": "r"})));
    live.until("tool_result");
    let (status, _, errors) = live.end_and_errors();
    assert!(
        status == 2 && errors.contains("after a call had started"),
        "{errors}"
    );
    let out = run_in(
        &dir,
        &[put("write")],
        &failed.lines().take(2).collect::<Vec<_>>().join("\n"),
        &[],
    );
    assert!(
        out.status == 2 && out.errors.contains("none of its calls ran"),
        "{}",
        out.errors
    );
}
