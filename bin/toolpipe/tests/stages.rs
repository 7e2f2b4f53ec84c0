//! Stages of `react` as threads of it and as processes: the same events, output and statuses.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::commands::{alone, bash, sh};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use testkit::{Scratch, kill};

const QUESTION: &str = "'We are four and would like to spend Saturday night in a hut by a lake. \
                        Can you reserve one, and what should we pack?'";

/// react as the two kinds of runs; both read the same files and write their own log.
const RUNS: [&str; 2] = ["threads", "processes"];

/// The options of a conversation that is recorded as a tape.
const TAPE: &str = "-t $FIXTURES/tools/tools.json --model demo --tape $FIXTURES/tapes/huts.tape";

/// A folder with a link for each command.
fn linked() -> Scratch {
    let folder = alone();
    assert_eq!(sh(&folder, "toolpipe --link .").status, 0);
    folder
}

/// Runs a script both ways; returns the status and all that was written, without the names of its
/// own files. `$REACT` is the command, `$LOG` its log.
fn both_ways(folder: &Scratch, script: &str) -> [String; 2] {
    RUNS.map(|stages| {
        let set = format!(
            "rm -f log reserved; \
             REACT='react --trust --jobs 1 --no-time --stages {stages} --log log'"
        );
        let ran = sh(folder, &format!("{set}; {script}"));
        let log = std::fs::read_to_string(folder.path("log")).unwrap_or_default();
        // Two stages that fail report it in any order.
        let mut stderr: Vec<&str> = ran.stderr.lines().collect();
        stderr.sort_unstable();
        let stderr = stderr.join("\n");
        let text = format!("{}\n{}\n{stderr}\n{log}", ran.status, ran.stdout);
        text.replace(&format!("--stages {stages} "), "")
    })
}

/// Each kind of turn and each way to end that a script can make.
#[test]
fn threads_and_processes_write_the_same() {
    let folder = linked();
    for (script, holds) in [
        (format!("$REACT {TAPE} {QUESTION}"), "sleeping bags"),
        (format!("$REACT {TAPE} -f json {QUESTION}"), "stream_end"),
        (
            format!(
                "$REACT {} --tools-mode tag {QUESTION}",
                TAPE.replace("huts.", "huts-tag.")
            ),
            "sleeping bags",
        ),
        (
            "$REACT --replay $FIXTURES/replay/trip.ndjson --plain".to_owned(),
            "tool_result",
        ),
        // The loop stops with 2.
        (
            format!("$REACT {TAPE} --max-steps 1 {QUESTION}"),
            "max-steps",
        ),
        (
            format!("$REACT {TAPE} {QUESTION} -- --no-such-option"),
            "no-such-option",
        ),
        (format!("$REACT {TAPE} {QUESTION} -- --help"), "Usage"),
        (format!("$REACT {TAPE} 'Another question?'"), "tape_miss"),
        (format!("$REACT {TAPE} --cut-at 700 {QUESTION}"), "error"),
        (format!("$REACT {TAPE} -f nothing {QUESTION}"), "nothing"),
        (
            format!("$REACT {TAPE} --dialect nothing {QUESTION}"),
            "nothing",
        ),
        // A tool that fails, a call that needs approval, a disk that is full, a reader that leaves.
        (
            format!("export RESERVATIONS=/nowhere/x; $REACT {TAPE} {QUESTION}"),
            "exit status 1",
        ),
        (
            format!("$REACT {TAPE} --ask all {QUESTION}"),
            "--approve-call",
        ),
        (
            format!("$REACT {TAPE} {QUESTION} >/dev/full"),
            "standard output",
        ),
        (
            format!("$REACT {TAPE} -f json {QUESTION} | head -1"),
            "stream_start",
        ),
    ] {
        let [threads, processes] = both_ways(&folder, &script);
        testkit::same(&threads, &processes, || &script);
        assert!(threads.contains(holds), "{script}: {threads}");
    }
}

/// The program beside the others counts, whatever react has itself.
#[test]
fn a_stage_of_another_program_is_a_process() {
    let folder = linked();
    let script = format!(
        "rm tag-parse; printf '#!/bin/sh\\necho >>seen; exec toolpipe tag-parse \"$@\"\\n' \
         >tag-parse; chmod +x tag-parse; \
         react --trust -l log {TAPE} {QUESTION}; wc -l <seen"
    );
    let ran = sh(&folder, &script);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with('3'), "{ran:?}");
}

/// A run in a group of its own, once its log contains `place`. `speed` is that of `llm-stream`.
fn started(folder: &Scratch, stages: &str, place: &str, speed: &str) -> Child {
    for name in ["log", "reserved"] {
        let _ = std::fs::remove_file(folder.path(name));
    }
    let script = format!(
        "exec react --trust --stages {stages} -f text -l log {TAPE} {QUESTION} -- --speed {speed}"
    );
    let mut shell = bash(folder, &script);
    shell
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = shell.spawn().unwrap();
    let log = folder.path("log");
    while !std::fs::read_to_string(&log).is_ok_and(|log| log.contains(place)) {
        std::thread::yield_now();
    }
    child
}

/// All that a run still writes to its standard output and standard error, which its stages have
/// too: returns when all of them have ended.
fn rest(child: &mut Child) -> [String; 2] {
    let (mut out, mut err) = (String::new(), String::new());
    let from = child.stdout.as_mut().unwrap();
    from.read_to_string(&mut out).unwrap();
    let from = child.stderr.as_mut().unwrap();
    from.read_to_string(&mut err).unwrap();
    [out, err]
}

/// Ctrl-C and `kill` close the log and end the run with their status.
#[test]
fn signals_end_threads_as_they_end_processes() {
    let folder = linked();
    for (signal, to_group, status) in [("INT", true, 130), ("TERM", false, 143)] {
        for stages in RUNS {
            let mut child = started(&folder, stages, "I'll", "real");
            let id = child.id();
            assert!(kill(
                if to_group {
                    format!("-{id}")
                } else {
                    id.to_string()
                },
                signal
            ));
            let [out, err] = rest(&mut child);
            assert_eq!(
                child.wait().unwrap().code(),
                Some(status),
                "{stages}: {out}{err}"
            );
            let log = folder.read("log");
            assert!(
                log.contains(r#""finish_reason":"cancelled""#) && log.ends_with('\n'),
                "{stages} {signal}: {log}"
            );
            assert!(err.contains("go on with: "), "{stages} {signal}: {err}");
            // The view has shown the end before the process ended.
            assert!(
                out.contains("warning: cancelled"),
                "{stages} {signal}: {out}"
            );
        }
    }
}

/// A view that cannot write on ends with the second SIGTERM, and react with it.
#[test]
fn signals_end_a_run_whose_view_is_stuck() {
    let folder = linked();
    for stages in RUNS {
        // A pipe that is full and has a reader, which reads nothing.
        let script = format!(
            "rm -f full log; mkfifo full; exec 3<>full; head -c 65536 /dev/zero >&3; \
             react --trust --stages {stages} -f text --log log {TAPE} {QUESTION} >&3 & \
             until grep -qs 'sleeping bags' log; do :; done; \
             while kill -TERM $! 2>&-; do :; done; wait $!"
        );
        let ran = sh(&folder, &script);
        assert_eq!(ran.status, 143, "{stages}: {ran:?}");
    }
}

/// react killed in an answer, before and after a result, and in the last answer. Its threads end with
/// it, so the answer is cut. The log has whole lines, and the next run continues from it: no call
/// that may have an effect runs twice.
#[test]
fn a_killed_run_continues_from_its_log() {
    let folder = linked();
    for place in ["I'll", r#""tool_use""#, r#""tool_result""#, "sleeping"] {
        let mut child = started(&folder, "threads", place, "4");
        assert!(kill(child.id().to_string(), "KILL"));
        let [_, err] = rest(&mut child);
        assert_eq!(child.wait().unwrap().code(), None, "{place}: {err}");
        let log = folder.read("log");
        assert!(log.ends_with('\n'), "{place}: {log}");
        // A provider gives each answer an id of its own; the tape gives that of the recorded one.
        let script =
            format!("sed -i s/chatcmpl-/chatcmpl-killed-/ log; react --trust -l log {TAPE}");
        let ran = sh(&folder, &script);
        assert_eq!(ran.status, 0, "{place}: {ran:?}");
        assert!(ran.stdout.contains("sleeping bags"), "{place}: {ran:?}");
        let reserved = folder.read("reserved");
        assert_eq!(reserved.lines().count(), 1, "{place}: {reserved}");
    }
}
