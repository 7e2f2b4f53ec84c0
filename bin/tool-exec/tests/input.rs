//! The standard input of a command: it has all of the arguments, or the command does not run,
//! whatever ends `tool-exec`.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, command, kill, one, tool, turn, wait_until};
use serde_json::{Value, json};
use std::fs::File;
use std::process::{Child, Stdio};
use testkit::Random;
use testkit::places::count;

/// Arguments that fit into a pipe, and arguments that do not (64 KiB).
const LENGTHS: [usize; 2] = [100, 150_000];

/// The arguments, and how many bytes a command reads of them.
fn arguments(length: usize) -> (Value, String) {
    let arguments = json!({"text": "x".repeat(length)});
    let read = arguments.to_string().len() + 1;
    (arguments, read.to_string())
}

/// A tool that leaves a line with the number of bytes that it has read, even while it is being ended.
fn reads(before: &str) -> Value {
    let script = format!("trap '' TERM; {before} n=$(wc -c); echo $n >>ran");
    tool("reads", &["sh", "-c", &script], json!({"class": "read"}))
}

/// A run with one call of `tool`.
fn begin(dir: &Dir, tool: Value, arguments: Value) -> Child {
    let input = dir.write("in", turn(&[("a", "reads", arguments)]));
    let mut command = command(dir, &[tool], &[]);
    command
        .stdin(File::open(input).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until nothing of the run is left, and returns what its command has read.
fn left(dir: &Dir) -> String {
    wait_until("the command to end", || dir.processes().is_empty());
    dir.read("ran")
}

#[test]
fn a_command_reads_all_of_its_arguments_after_tool_exec_is_killed() {
    for length in LENGTHS {
        let dir = Dir::new();
        let (arguments, whole) = arguments(length);
        let wait = "echo >began; until [ -e go ]; do sleep 0.01; done;";
        let mut run = begin(&dir, reads(wait), arguments);
        wait_until("the command to begin", || dir.path("began").exists());
        kill(run.id(), "KILL");
        run.wait().unwrap();
        dir.write("go", "");
        let read = left(&dir);
        // On a slow machine it may have been killed before it has read.
        assert!(
            read.is_empty() || read.trim_end() == whole,
            "{length}: it has read {read} of {whole}"
        );
    }
}

#[test]
fn no_command_runs_with_a_part_of_its_arguments_wherever_tool_exec_is_killed() {
    let mut ran = 0;
    for seed in 0..count(40, 300) {
        let mut random = Random::new(seed);
        let dir = Dir::new();
        let (arguments, whole) = arguments(LENGTHS[seed as usize % 2]);
        let mut run = begin(&dir, reads("echo >began;"), arguments);
        // Half of the runs are killed at any time, and half as soon as the command has begun.
        let spins = random.below(3000);
        let is_late = seed % 4 < 2;
        (0..spins).for_each(|_| std::thread::yield_now());
        while is_late && !dir.path("began").exists() && run.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        kill(run.id(), "KILL");
        run.wait().unwrap();
        let read = left(&dir);
        assert!(
            read.is_empty() || read.trim_end() == whole,
            "seed {seed}: it has read {read} of {whole}"
        );
        ran += usize::from(!read.is_empty());
    }
    assert!(ran > 0, "no command has run");
}

#[test]
fn a_command_may_read_its_input_by_name_and_more_than_once() {
    for length in LENGTHS {
        let (arguments, whole) = arguments(length);
        let script = "cat /dev/stdin | wc -c; wc -c </dev/stdin; wc -c";
        let out = one(&tool("reads", &["sh", "-c", script], json!({})), &arguments);
        let (status, text) = out.outcome("i");
        assert_eq!(status, "success", "{text}");
        assert!(
            text.split_whitespace().all(|read| read == whole),
            "{text} {whole}"
        );
        // The input cannot be changed by one who holds it.
        let writes = tool("reads", &["sh", "-c", "echo y >&0"], json!({}));
        assert_eq!(one(&writes, &arguments).outcome("i").0, "error");
    }
}
