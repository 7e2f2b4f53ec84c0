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
        let text = format!("{}\n{}\n{}\n{log}", ran.status, ran.stdout, ran.stderr);
        text.replace(&format!("--stages {stages} "), "")
    })
}

/// Each kind of turn and each way to end that a script can make.
#[test]
fn threads_and_processes_write_the_same() {
    let folder = linked();
    for (script, holds) in [
        (format!("$REACT {TAPE} {QUESTION}"), "sleeping bags"),
        (
            format!("$REACT {TAPE} --view json {QUESTION}"),
            "stream_end",
        ),
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
        (
            format!("$REACT {TAPE} --view nothing {QUESTION}"),
            "nothing",
        ),
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
            format!("$REACT {TAPE} --view json {QUESTION} | head -1"),
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

/// A run in a group of its own, in the middle of its first answer.
fn in_the_middle(folder: &Scratch, stages: &str) -> (Child, String) {
    let _ = std::fs::remove_file(folder.path("log"));
    let script =
        format!("exec react --trust --stages {stages} -l log {TAPE} {QUESTION} -- --speed real");
    let mut shell = bash(folder, &script);
    shell
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = shell.spawn().unwrap();
    let mut seen = String::new();
    let mut byte = [0];
    let out = child.stdout.as_mut().unwrap();
    while !seen.ends_with("I'll") {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "{seen}");
        seen.push(char::from(byte[0]));
    }
    (child, seen)
}

/// Ctrl-C and `kill` close the log and end the run with their status.
#[test]
fn signals_end_threads_as_they_end_processes() {
    let folder = linked();
    for (signal, to_group, status) in [("INT", true, 130), ("TERM", false, 143)] {
        for stages in RUNS {
            let (mut child, _) = in_the_middle(&folder, stages);
            let id = child.id();
            assert!(kill(
                if to_group {
                    format!("-{id}")
                } else {
                    id.to_string()
                },
                signal
            ));
            let mut rest = String::new();
            child
                .stdout
                .take()
                .unwrap()
                .read_to_string(&mut rest)
                .unwrap();
            let mut err = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut err)
                .unwrap();
            assert_eq!(
                child.wait().unwrap().code(),
                Some(status),
                "{stages}: {rest}{err}"
            );
            let log = folder.read("log");
            assert!(
                log.contains(r#""finish_reason":"cancelled""#) && log.ends_with('\n'),
                "{stages} {signal}: {log}"
            );
            assert!(err.contains("go on with: "), "{stages} {signal}: {err}");
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
             react --trust --stages {stages} --log log {TAPE} {QUESTION} >&3 & \
             until grep -qs 'sleeping bags' log; do :; done; \
             while kill -TERM $! 2>&-; do :; done; wait $!"
        );
        let ran = sh(&folder, &script);
        assert_eq!(ran.status, 143, "{stages}: {ran:?}");
    }
}
