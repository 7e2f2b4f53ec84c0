//! What a tool does with processes, files and signals, and what `tool-exec` must do then: on a
//! system that allows namespaces, and on one that refuses them, as root and as an ordinary user.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use crate::harness::needs;
use crate::harness::places::{Place, open_to_all, places};
use crate::harness::{
    Dir, Live, Out, command_as, message, processes, run_command, script, tool, turn, wait_until,
};
use group::descent::Process;
use serde_json::{Value, json};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tool-exec");
const NONE: [&str; 0] = [];

fn folder() -> Dir {
    let dir = Dir::new();
    open_to_all(&dir);
    dir
}

fn command(place: &Place, dir: &Dir, tools: &[Value], args: &[&str]) -> Command {
    // The folder is open to all users.
    let mut command = command_as(
        place.command(PROGRAM),
        dir,
        tools,
        &[&["--trust"], args].concat(),
    );
    // Homes go there, so that a test sees what is left of them.
    command.env("TMPDIR", dir.path("."));
    command
}

/// A run of one call of `tool`.
fn one(place: &Place, dir: &Dir, tool: &Value) -> Out {
    run_command(
        command(place, dir, std::slice::from_ref(tool), &[]),
        &(message(&[("i", "t", json!({}))]) + "\n"),
    )
}

/// The homes of commands that are left in a folder.
fn homes(dir: &Dir) -> Vec<String> {
    let names = std::fs::read_dir(dir.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("tool-exec-"))
        .collect()
}

/// What tools try in order to outlive their time. The mark `begun` is there when they run.
const OUTLIVES: [&str; 5] = [
    "touch begun; kill -STOP $PPID; sleep 1000",
    "touch begun; kill -KILL $PPID; sleep 1000",
    "setsid sh -c 'setsid sleep 1000 & setsid sleep 1000' & touch begun; sleep 1000",
    "trap '' TERM INT HUP; touch begun; sleep 1000 & setsid sleep 1000",
    "exec <&- >&- 2>&-; touch begun; sleep 1000",
];

/// Runs the tools of these texts at once, each in a folder of its own.
fn outlive(place: &Place, dir: &Dir, texts: &[&str], more: &Value) -> Live {
    let name = |n: usize| format!("t{n}");
    let mut tools = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let cwd = dir.path(&name(n));
        std::fs::create_dir(&cwd).unwrap();
        std::fs::set_permissions(
            &cwd,
            std::fs::metadata(dir.path(".")).unwrap().permissions(),
        )
        .unwrap();
        let mut exec = more.clone();
        exec["cwd"] = json!(name(n));
        tools.push(script(&name(n), text, exec));
    }
    let names: Vec<String> = (0..texts.len()).map(name).collect();
    let calls: Vec<(&str, &str, Value)> = names
        .iter()
        .map(|name| (&**name, &**name, json!({})))
        .collect();
    let mut live = Live::of(command(place, dir, &tools, &["--order", "completion"]));
    live.send(&message(&calls));
    live
}

fn begun(dir: &Dir, texts: &[&str]) -> bool {
    (0..texts.len()).all(|n| dir.path(&format!("t{n}/begun")).exists())
}

#[test]
fn no_tool_outlives_its_time() {
    for place in places() {
        let dir = folder();
        let mut live = outlive(&place, &dir, &OUTLIVES, &json!({"timeout": "2s"}));
        let results: Vec<Value> = OUTLIVES.iter().map(|_| live.until("tool_result")).collect();
        assert_eq!(processes(&dir), NONE, "{place:?}");
        assert!(begun(&dir, &OUTLIVES), "{place:?}");
        for (n, text) in OUTLIVES.iter().enumerate() {
            let result = results
                .iter()
                .find(|result| result["tool_id"] == format!("t{n}"))
                .unwrap();
            // Where the process above a tool can be killed or stopped, the tool does that. It is
            // never said that it did not start.
            let may_fail = !place.is_contained() && text.contains("kill");
            assert!(
                result["status"] == "timeout" || may_fail,
                "{place:?}: {text}: {result}"
            );
            assert!(
                !result["output"].as_str().unwrap().contains("could not be"),
                "{place:?}: {text}: {result}"
            );
        }
        live.end();
        assert_eq!(homes(&dir), NONE, "{place:?}");
    }
}

#[test]
fn no_tool_outlives_tool_exec() {
    for place in places() {
        // Without any help of the system a tool can stop the process that would end it after
        // `tool-exec` is killed.
        let texts = &OUTLIVES[if place.is_contained() { 0 } else { 2 }..];
        for signal in ["TERM", "KILL"] {
            let dir = folder();
            let mut live = outlive(&place, &dir, texts, &json!({}));
            wait_until("the tools begin", || begun(&dir, texts));
            live.signal(signal);
            if signal == "TERM" {
                texts.iter().for_each(|_| {
                    assert_eq!(
                        live.until("tool_result")["status"],
                        "cancelled",
                        "{place:?}"
                    )
                });
                assert_eq!(processes(&dir), NONE, "{place:?}");
            }
            wait_until(&format!("{place:?}: processes are left"), || {
                processes(&dir).is_empty()
            });
            wait_until("homes are left", || homes(&dir).is_empty());
            live.end();
        }
    }
}

/// The processes that `tool-exec` itself has started and not waited for.
fn children(live: &Live) -> Vec<i32> {
    let own = live.child.id().cast_signed();
    let below = group::descent::descendants(own);
    let children = below.iter().filter(|process| process.parent == own);
    children.map(|process| process.pid).collect()
}

#[test]
fn the_first_call_starts_a_zygote_and_no_further_call_another() {
    let dir = Dir::new();
    let mut live = Live::new(&dir, &[script("t", "exit 0", json!({}))], &["--jobs", "1"]);
    live.send(
        &json!({"type": "message", "message": {"role": "user", "content": "go"}}).to_string(),
    );
    assert_eq!(live.line()["message"]["role"], "user");
    assert!(children(&live).is_empty());
    live.send(&message(&[("a", "t", json!({})), ("b", "t", json!({}))]));
    let results: Vec<Vec<i32>> = ["a", "b"]
        .iter()
        .map(|id| {
            let result = live.until("tool_result");
            assert_eq!(
                (&result["tool_id"], &result["status"]),
                (&json!(id), &json!("success"))
            );
            children(&live)
        })
        .collect();
    assert_eq!((results[0].len(), &results[0]), (1, &results[1]));
    live.end();
}

/// Where a tool may signal all processes of its user, the zygote is among them.
#[test]
fn a_tool_that_ends_or_stops_the_zygote_stops_no_later_call() {
    // More than the socket to a supervisor holds, so that somebody must read it.
    let long = "x".repeat(100_000);
    let long = json!({"text": long, "a": long, "b": long});
    let find = "set -- $(cat /proc/$PPID/stat); [ $4 -lt 2 ] ||";
    for place in places() {
        for signal in ["KILL", "STOP"] {
            let dir = folder();
            let tools = [
                script("t", &format!("{find} kill -{signal} $4; exit 0"), json!({})),
                tool(
                    "other",
                    &["sh", "-c", "exit 0", "text={text}", "a={a}", "b={b}"],
                    json!({}),
                ),
            ];
            let mut live = Live::of(command(&place, &dir, &tools, &["--jobs", "2"]));
            // The calls of the second turn begin together; those of a stopped zygote wait for it.
            for (calls, last) in [
                (&["a"][..], "t"),
                (&["b", "c", "d", "e"], "other"),
                (&["f"], "t"),
            ] {
                let calls: Vec<_> = calls.iter().map(|id| (*id, last, long.clone())).collect();
                live.send(&message(&calls));
                for (id, ..) in calls {
                    let result = live.until("tool_result");
                    assert_eq!(result["tool_id"], id);
                    assert_eq!(result["status"], "success", "{place:?} {signal}: {result}");
                }
            }
            let zygotes = children(&live);
            live.end();
            assert_eq!(processes(&dir), NONE, "{place:?}");
            assert_eq!(homes(&dir), NONE, "{place:?}");
            wait_until("the zygote ends, even a stopped one", || {
                let is_there = |pid| Process::of(pid).is_some_and(|process| !process.is_zombie);
                !zygotes.iter().any(|pid| is_there(*pid))
            });
        }
    }
}

/// Where a tool may end the zygote and its own supervisor, the supervisors of other calls lose their
/// parent, and the failed call kills what it has left.
#[test]
fn a_call_whose_supervisor_is_killed_ends_no_other_call() {
    for place in places().into_iter().filter(|place| !place.is_contained()) {
        let dir = folder();
        let tools = [
            script(
                "t",
                "while [ ! -e begun ]; do sleep 0.01; done; set -- $(cat /proc/$PPID/stat); kill -KILL $4 $1",
                json!({}),
            ),
            script(
                "other",
                ": >begun; while [ ! -e go ]; do sleep 0.01; done; echo done",
                json!({}),
            ),
        ];
        let mut live = Live::of(command(&place, &dir, &tools, &["--jobs", "2"]));
        live.send(&message(&[
            ("a", "t", json!({})),
            ("b", "other", json!({})),
        ]));
        let result = live.until("tool_result");
        assert_eq!(
            (&result["tool_id"], &result["status"]),
            (&json!("a"), &json!("error"))
        );
        dir.write("go", "");
        let result = live.until("tool_result");
        assert_eq!(
            (&result["tool_id"], &result["output"]),
            (&json!("b"), &json!("done\n")),
            "{place:?}"
        );
        live.end();
        assert_eq!(processes(&dir), NONE, "{place:?}");
    }
}

/// The first signal of each process takes longer than killing may take.
#[test]
fn a_kill_that_takes_long_is_not_given_up() {
    if !has_strace() {
        return;
    }
    for place in places().into_iter().filter(|place| !place.is_contained()) {
        let dir = folder();
        let text = "trap '' TERM; touch begun; while :; do sleep 1; done";
        let tool = script("t", text, json!({"timeout": "1s"}));
        let mut strace = place.command("strace");
        // SIGTERM from a supervisor, or SIGKILL from `tool-exec` where that is faster.
        let inject = "inject=kill:delay_exit=2510000:when=1";
        strace.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=kill",
            "-e",
            inject,
            PROGRAM,
        ]);
        let out = run_command(
            command_as(strace, &dir, &[tool], &["--trust"]),
            &(message(&[("i", "t", json!({}))]) + "\n"),
        );
        assert!(dir.path("begun").exists(), "{place:?}: {}", out.text);
        assert!(
            !out.text.contains("could not be"),
            "{place:?}: {}",
            out.text
        );
        assert_eq!(processes(&dir), NONE, "{place:?}");
    }
}

#[test]
fn a_fork_bomb_of_an_ordinary_user_ends_with_its_call_21() {
    // `exec` needs no process more: the shell itself could not start `sleep` while the bomb has them all.
    let bomb = "touch begun; b='sh -c \"$0\" \"$0\" & sh -c \"$0\" \"$0\" & wait'; sh -c \"$b\" \"$b\"; exec sleep 1000";
    for place in places().into_iter().filter(|place| place.is_ordinary) {
        let dir = folder();
        let tool = script(
            "t",
            bomb,
            json!({"timeout": "1s", "limits": {"processes": 150}}),
        );
        let out = one(&place, &dir, &tool);
        assert_eq!(out.outcome("i").0, "timeout", "{place:?}: {}", out.text);
        assert!(dir.path("begun").exists());
        assert_eq!(processes(&dir), NONE, "{place:?}");
    }
}

/// In a namespace nothing outside is in sight; elsewhere the system keeps the processes of one user
/// apart.
#[test]
fn a_tool_reaches_neither_the_environment_nor_the_files_of_tool_exec_16() {
    // The mark alone is printed: what else is in an environment is nobody's business.
    let text = "umount /proc 2>/dev/null; grep -ls canary-7391 /proc/[0-9]*/environ
        for process in /proc/[0-9]*; do read name <$process/comm; [ \"$name\" = tool-exec ] || continue
        for file in $process/fd/*; do (echo forged >>$file) 2>/dev/null; done; done; echo tried";
    for place in places() {
        // Root without namespaces reads what it likes.
        if !place.is_ordinary && !place.has_namespaces {
            continue;
        }
        let dir = folder();
        let mut command = command(&place, &dir, &[script("t", text, json!({}))], &[]);
        command.env("CANARY", "canary-7391");
        let out = run_command(command, &(message(&[("i", "t", json!({}))]) + "\n"));
        assert_eq!(out.outcome("i").1, "tried\n", "{place:?}");
        assert!(!out.errors.contains("forged"), "{place:?}: {}", out.text);
        assert!(
            out.text.lines().all(|line| line.starts_with('{')),
            "{place:?}: {}",
            out.text
        );
    }
}

#[test]
fn a_tool_has_a_pid_namespace_where_there_is_one() {
    for place in places() {
        let dir = folder();
        let text = "echo $$ $PPID $(ls -d /proc/[0-9]* | wc -l) $(id -u); kill -0 -1 && echo others; touch made";
        let out = one(&place, &dir, &script("t", text, json!({})));
        let numbers: Vec<u32> = out
            .outcome("i")
            .1
            .split_whitespace()
            .map_while(|n| n.parse().ok())
            .collect();
        let user = if place.is_ordinary { 65534 } else { 0 };
        assert!(
            !place.has_namespaces || numbers[..2] == [2, 1] && numbers[2] < 9,
            "{place:?}: {}",
            out.text
        );
        if rustix::process::geteuid().is_root() {
            assert_eq!(numbers[3], user, "{place:?}");
            let owner = std::os::unix::fs::MetadataExt::uid(&dir.path("made").metadata().unwrap());
            assert_eq!(owner, user, "{place:?}");
        }
    }
}

#[test]
fn a_tool_does_not_reach_the_terminals_of_its_user_18() {
    // A terminal is there while this is open.
    let terminal = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/ptmx");
    for place in places()
        .into_iter()
        .filter(|place| place.has_namespaces && terminal.is_ok())
    {
        let out = one(
            &place,
            &folder(),
            &script("t", "ls /dev/pts; (: </dev/ptmx) && echo new", json!({})),
        );
        assert_eq!(out.outcome("i").1, "ptmx\nnew\n", "{place:?}");
    }
}

#[test]
fn what_a_tool_writes_is_limited() {
    for place in places() {
        let dir = folder();
        let text = "head -c 3000000 /dev/zero >file; wc -c <file; head -c 3000000 /dev/zero >$HOME/a; wc -c <$HOME/a; stat -f -c %T $HOME";
        let limits = json!({"limits": {"file_size": "2M", "home": "1M"}});
        let out = one(&place, &dir, &script("t", text, limits));
        let lines: Vec<&str> = out.outcome("i").1.lines().collect();
        assert_eq!(lines[0], (2 << 20).to_string(), "{place:?}: {}", out.text);
        let home = if place.has_namespaces {
            ["1048576", "tmpfs"]
        } else {
            ["2097152", lines[2]]
        };
        assert_eq!(lines[1..], home, "{place:?}");
        assert_eq!(homes(&dir), NONE, "{place:?}");
    }
}

#[test]
fn a_home_of_1500_levels_is_removed() {
    let text =
        "cd $HOME; mkdir -p closed/inner; touch closed/inner/file; chmod 0 closed/inner closed
        n=0; while [ $n -lt 15 ]; do mkdir -p $LEVELS && cd $LEVELS || exit 1; n=$((n+1)); done; echo $n'00'";
    // Of 200 characters, since a path has a limit.
    let text = text.replace("$LEVELS", &"d/".repeat(100));
    for place in places() {
        let dir = folder();
        let out = one(&place, &dir, &script("t", &text, json!({})));
        assert_eq!(out.outcome("i"), ("success", "1500\n"), "{place:?}");
        // On a slow disk the supervisor goes on with it after the result is there.
        wait_until("the home is removed", || homes(&dir).is_empty());
    }
}

/// The output is a pipe that nobody reads, and more comes than it holds.
#[test]
fn a_blocked_reader_stops_no_timeout() {
    let dir = Dir::new();
    let text = "touch begun; i=0; while [ $i -lt 300 ]; do head -c 10000 /dev/zero | tr '\\0' x; i=$((i+1)); done; touch written; exec sleep 1000";
    let tool = script("t", text, json!({"timeout": "20s", "max_output": "8M"}));
    let quick = script("q", "touch q; sleep 1000", json!({"timeout": "1s"}));
    let mut live = Live::new(&dir, &[tool, quick], &["--progress", "--max-result", "8M"]);
    live.send(&message(&[("i", "t", json!({})), ("q", "q", json!({}))]));
    // All of the output is read while nobody takes a line, and the other call ends.
    wait_until("the output is read", || dir.path("written").exists());
    wait_until("its time is up", || {
        dir.path("q").exists() && processes(&dir).len() == 1
    });
    live.signal("TERM");
    wait_until("it goes on", || processes(&dir).is_empty());
    let mut shown = 0;
    let mut result = Value::Null;
    while result.is_null() {
        let event = live.line();
        match event["type"].as_str().unwrap() {
            "tool_progress" => shown += event["text"].as_str().unwrap().len(),
            "tool_result" if event["tool_id"] == "i" => result = event,
            _ => {}
        }
    }
    assert_eq!(result["output_bytes"], 3_000_000);
    assert!(result["output"].as_str().unwrap().len() >= 3_000_000 && shown <= 3_000_000);
}

#[test]
fn a_command_that_ran_is_never_said_not_to_have_been_started() {
    if !has_strace() {
        return;
    }
    // Each watch over a file of the event loop fails once: those over the pipes of a command, too.
    let mut ran = 0;
    for n in 1..=16 {
        let dir = Dir::new();
        let tool = script("t", "trap '' TERM; touch begun; cat", json!({}));
        let mut strace = Command::new("strace");
        let inject = format!("inject=epoll_ctl:error=ENOSPC:when={n}");
        strace.args([
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=epoll_ctl",
            "-e",
            &inject,
            PROGRAM,
        ]);
        let out = run_command(
            command_as(strace, &dir, &[tool], &[]),
            &turn(&[("i", "t", json!({}))]),
        );
        let is_begun = dir.path("begun").exists();
        let said = out.events.iter().any(|e| {
            e["output"]
                .as_str()
                .is_some_and(|o| o.contains("could not be started"))
        });
        assert!(!(is_begun && said), "watch {n}: {}", out.text);
        ran += usize::from(is_begun);
    }
    assert!(ran > 0);
}

/// Whether this machine can make system calls fail.
fn has_strace() -> bool {
    if !needs::programs(&["strace"]) {
        return false;
    }
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status()
        .is_ok_and(|s| s.success());
    if !works {
        needs::skip("strace may not trace here");
    }
    works
}

#[test]
fn what_cannot_be_ended_is_named() {
    if !has_strace() {
        return;
    }
    let dir = Dir::new();
    let tool = script(
        "t",
        "trap '' TERM; touch begun; while :; do sleep 1; done",
        json!({"timeout": "1s"}),
    );
    let mut strace = Command::new("strace");
    strace.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=kill",
        "-e",
        "inject=kill:error=EPERM",
        PROGRAM,
    ]);
    let out = run_command(
        command_as(strace, &dir, &[tool], &[]),
        &turn(&[("i", "t", json!({}))]),
    );
    let (status, output) = out.outcome("i");
    assert!(
        dir.path("begun").exists() && status == "timeout",
        "{output}"
    );
    assert!(
        output.contains("Some of its processes could not be ended (PIDs "),
        "{output}"
    );
    wait_until("the processes end with their supervisor", || {
        processes(&dir).is_empty()
    });
}
