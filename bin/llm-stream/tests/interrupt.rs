//! SIGINT and SIGTERM while recorded bodies replay.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SIGNALS: [(&str, i32); 2] = [("-INT", 130), ("-TERM", 143)];

/// Starts a replay of these files; gives its standard input, which stays open, and its output.
fn start(args: &[&str]) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdin, stdout)
}

fn signal(child: &Child, signal: &str) {
    assert!(kill(child.id(), signal));
}

/// A tape of `n` answers, each with a pause of an hour after its first event.
fn slow_tape(n: usize) -> String {
    let exchange = concat!(
        "{\"tape\":1,\"api\":\"ollama\",\"model\":\"m\",\"request\":{\"body\":{}}}\n",
        "[0,\"head\",{\"status\":200}]\n",
        "[0,\"text\",\"{\\\"message\\\":{\\\"content\\\":\\\"a\\\"},\\\"done\\\":false}\\n\"]\n",
        "[3600,\"text\",\"{\\\"message\\\":{\\\"content\\\":\\\"b\\\"},\\\"done\\\":true,\\\"done_reason\\\":\\\"stop\\\"}\\n\"]\n",
        "[0,\"end\",\"eof\"]\n",
    );
    vec![exchange; n].join("\n")
}

/// That the first body ended is seen on standard output, so the command is waiting for the second,
/// or is about to.
#[test]
fn a_replay_that_waits_for_a_body_ends_at_a_signal() {
    let body = chat(&["a"]);
    let tape = slow_tape(1);
    let first = File::new("interrupt-first.sse", &body);
    for (name, status) in SIGNALS {
        for (args, input) in [
            (&[][..], ""),
            (&["--api", "openai-chat"], ""),
            (&["--resplit", "1"], ""),
            (&[], "\n"),                 // the API is not known yet
            (&["--dup-at", "3"], &body), // faults need the whole body
            (&[], &tape),                // and so does a tape
        ] {
            let mut all = vec!["--replay", first.path(), "--replay", "-"];
            all.extend(args);
            let (child, mut stdin, mut stdout) = start(&all);
            stdin.write_all(input.as_bytes()).unwrap();
            until(&mut stdout, "stream_end");
            signal(&child, name);
            let ran = finish(child, Some(stdout));
            assert_eq!(
                (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
                (status, "", ""),
                "{args:?} {input:?}"
            );
        }
    }
}

#[test]
fn a_named_pipe_that_nobody_writes_ends_at_a_signal() {
    let first = File::new("interrupt-before.sse", chat(&["a"]));
    let pipe = File::absent("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(pipe.path())
            .status()
            .unwrap()
            .success()
    );
    let (child, _stdin, mut stdout) = start(&["--replay", first.path(), "--replay", pipe.path()]);
    until(&mut stdout, "stream_end");
    signal(&child, "-INT");
    let ran = finish(child, Some(stdout));
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (130, "", "")
    );
}

#[test]
fn the_open_stream_is_closed_and_no_further_one_begins() {
    let body = chat(&["a", "b"]);
    let next = File::new("interrupt-next.sse", &body);
    let tape = File::new("interrupt.tape", slow_tape(3));
    for (name, status) in SIGNALS {
        let (child, mut stdin, mut stdout) = start(&["--replay", "-", "--replay", next.path()]);
        stdin.write_all(&body.as_bytes()[..first(&body)]).unwrap();
        until(&mut stdout, "content_delta");
        signal(&child, name);
        let ran = finish(child, Some(stdout));
        assert_eq!(
            (ran.status, ran.types().as_str()),
            (status, "stream_end"),
            "{ran:?}"
        );
        assert_eq!(ran.event("stream_end")["finish_reason"], "cancelled");

        let (child, _stdin, mut stdout) = start(&[
            "--no-time",
            "--speed",
            "real",
            "--replay",
            tape.path(),
            "--replay",
            next.path(),
        ]);
        until(&mut stdout, "content_delta");
        signal(&child, name);
        let ran = finish(child, Some(stdout));
        assert_eq!(
            (ran.status, ran.types().as_str()),
            (status, "stream_end"),
            "{ran:?}"
        );
        assert_eq!(ran.event("stream_end")["finish_reason"], "cancelled");
    }
}

/// The signal comes when all bytes of a stream have been read and its output waits for the reader:
/// the stream keeps its own end.
#[test]
fn a_signal_at_the_end_of_a_stream_begins_no_other() {
    let body = turn(&["x"; 500]).stream(Protocol::Ollama);
    assert!(body.len() < 64 << 10, "it is read at once");
    // The pipe takes 64 KiB of the output, the command keeps as much, and the test reads 8 KiB.
    let files =
        [1, 2, 3].map(|n| File::new(&format!("interrupt-{n}-{}.sse", "long".repeat(55)), &body));
    let args: Vec<&str> = files
        .iter()
        .flat_map(|file| ["--replay", file.path()])
        .collect();
    for (name, status) in SIGNALS {
        let (child, _stdin, mut stdout) = start(&args);
        until(&mut stdout, "content_delta");
        signal(&child, name);
        let ran = finish(child, Some(stdout));
        assert_eq!(
            (ran.status, ran.stdout.matches("stream_start").count()),
            (status, 0),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stdout.matches("stream_end").count(), 1);
    }
}

/// A pipe that nobody writes: opening it waits.
#[test]
fn a_file_that_never_comes_is_waited_for_until_a_signal() {
    let folder = Scratch::new();
    let pipe = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for (name, status) in SIGNALS {
        for option in ["--attach", "--text", "--schema"] {
            let args = ["--dry-run", "--model", "m", option, pipe.to_str().unwrap()];
            let child = command(&args).spawn().unwrap();
            signal(&child, name);
            let ran = finish(child, None);
            // The signal itself ends the command: no handler is there yet.
            assert_eq!(
                (ran.status, &*ran.stdout, &*ran.stderr),
                (128 - status, "", ""),
                "{option} {name}"
            );
        }
    }
}
