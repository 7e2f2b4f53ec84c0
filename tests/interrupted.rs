//! Signals that come while a command computes: it ends without finishing the work.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// A tool whose schema is almost too costly to be allowed: fifteen pairs of references, 130,000
/// steps for each item of a list.
fn tools() -> String {
    let mut defs = String::new();
    for i in 0..15 {
        let next = format!("{{\"$ref\":\"#/$defs/d{}\"}}", i + 1);
        defs += &format!("\"d{i}\":{{\"allOf\":[{next},{next}]}},");
    }
    let parameters = format!(
        "{{\"properties\":{{\"a\":{{\"items\":{{\"$ref\":\"#/$defs/d0\"}}}}}},\"$defs\":{{{defs}\"d15\":{{\"type\":\"integer\"}}}}}}"
    );
    format!(
        "[{{\"name\":\"f\",\"parameters\":{parameters},\"exec\":{{\"command\":[\"true\"],\"class\":\"read\"}}}}]"
    )
}

/// Calls of that tool, in fewer bytes than are read at once. Each may take a second, all together a
/// minute.
fn calls(kind: &str) -> String {
    let mut lines = "{\"type\":\"stream_start\",\"v\":1}\n".to_owned();
    for i in 0..CALLS {
        let arguments = format!("{{\"a\":[{}1]}}", "1,".repeat(900));
        lines += &format!(
            "{{\"type\":\"{kind}\",\"index\":{i},\"tool_id\":\"call-{i}\",\"tool_name\":\"f\",\"arguments\":{arguments}}}\n"
        );
    }
    lines
}

const CALLS: usize = 40;

/// Starts a command over the file `input`, and returns it when it computes: when it has read all of
/// the file, by its file position, has taken over the signals, and has used more processor time than
/// it takes to read.
fn start(command: &str, folder: &Path, input: &str) -> Child {
    let path = folder.join("input");
    fs::write(&path, input).expect("written");
    let mut bash = testkit::bash(&format!("exec {command}"), folder);
    bash.stdin(File::open(path).expect("it is there"))
        .stdout(File::create(folder.join("output")).expect("made"));
    let child = bash
        .stderr(File::create(folder.join("messages")).expect("made"))
        .spawn()
        .expect("it starts");
    let all = format!("pos:\t{}\n", input.len());
    let proc =
        |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).expect("it runs");
    while !proc("fdinfo/0").starts_with(&all)
        || caught(&proc("status")) & SIGNALS != SIGNALS
        || ticks(&proc("stat")) < COMPUTES
    {
        std::thread::yield_now();
    }
    child
}

/// The processor time, in hundredths of a second, behind which a command validates: it starts and
/// reads in a few of them.
const COMPUTES: u64 = 40;

/// The processor time of a process in its own code, in hundredths of a second: the fourteenth field
/// of proc_pid_stat(5), and the twelfth behind the name, which may hold spaces.
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().nth(11);
    ticks
        .and_then(|ticks| ticks.parse().ok())
        .expect("a number")
}

/// SIGINT and SIGTERM in a set of signals.
const SIGNALS: u64 = 1 << 1 | 1 << 14;

/// The signals that a process handles.
fn caught(status: &str) -> u64 {
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .expect("a set of signals");
    u64::from_str_radix(set.trim(), 16).expect("hex digits")
}

/// Sends the signal until the command has ended; returns its status.
fn end(mut child: Child, signal: &str) -> Option<i32> {
    let kill = format!("kill -{signal} {}", child.id());
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status.code();
        }
        // The command may have ended since.
        let _ = testkit::bash(&kill, testkit::root())
            .stderr(Stdio::null())
            .status()
            .expect("bash runs");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_that_validates_ends_by_signals() {
    let folder: PathBuf =
        std::env::temp_dir().join(format!("toolpipe-interrupted-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the test");
    fs::write(folder.join("tools.json"), tools()).expect("written");
    for (command, kind, said) in [
        ("tc-accumulate --tools tools.json", "tool_call_delta", ""),
        (
            "tool-exec --tools tools.json",
            "tool_call",
            "tool-exec: ended in the middle of its work by the second signal\n",
        ),
    ] {
        for (signal, status) in [("INT", 130), ("TERM", 143)] {
            let code = end(start(command, &folder, &calls(kind)), signal);
            assert_eq!(code, Some(status), "{command} after {signal}");
            let out = fs::read_to_string(folder.join("output")).expect("text");
            // The last call is emitted when all are validated.
            let last = format!("\"tool_id\":\"call-{}\"", CALLS - 1);
            let answered = out
                .lines()
                .any(|line| line.starts_with("{\"type\":\"tool_call\"") && line.contains(&last));
            assert!(
                !answered,
                "{command} waits for the end of its work after {signal}"
            );
            let messages = fs::read_to_string(folder.join("messages")).expect("text");
            assert_eq!(messages, said, "{command} after {signal}");
        }
    }
    fs::remove_dir_all(&folder).expect("the folder can go");
}
