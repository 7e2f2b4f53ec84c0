//! Limits for all processes of a call together, in a control group. The numbers are those of
//! fixtures/hostile-inputs.md.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::needs::{self, skip};
use crate::harness::users::is_root;
use crate::harness::{self, Dir, Live, START, call, one, run_in, script, tool, turn, wait_until};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The folder in which this user can make groups with this controller: one of its own hierarchy, or
/// the one above its own group.
fn folder(controller: &str) -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = |wanted: &str| {
        let line = groups
            .lines()
            .find(|line| line.split(':').nth(1) == Some(wanted))?;
        line.splitn(3, ':')
            .nth(2)
            .map(|path| path.trim_start_matches('/').to_owned())
    };
    let one = path(controller).map(|path| Path::new("/sys/fs/cgroup").join(controller).join(path));
    let two = path("")
        .map(|path| PathBuf::from("/sys/fs/cgroup").join(path))
        .and_then(|own| own.parent().map(Into::into));
    let found = [one, two].into_iter().flatten().find(|folder| {
        let trial = folder.join(format!(
            "trial-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        if std::fs::create_dir(&trial).is_err() {
            return false;
        }
        let is_good = ["memory.limit_in_bytes", "memory.max", "pids.max"]
            .iter()
            .any(|file| file.starts_with(controller) && trial.join(file).exists());
        std::fs::remove_dir(trial).unwrap();
        is_good
    });
    if found.is_none() {
        skip(&format!(
            "this user cannot make control groups with {controller}"
        ));
    }
    found
}

/// The groups of calls in that folder.
fn groups(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("tool-exec-")
        })
        .collect()
}

const SHARED: &str = "import os, mmap
f = os.memfd_create('x')
os.ftruncate(f, 400 << 20)
m = mmap.mmap(f, 400 << 20)
for at in range(0, 400 << 20, 4096): m[at] = 1
print('held')";

#[test]
fn memory_that_no_process_owns_counts_where_a_control_group_can_be_made() {
    let Some(_) = folder("memory") else { return };
    if !needs::programs(&["/usr/bin/python3"]) {
        return;
    }
    // First with room: files that are read for the first time count for the group that reads them,
    // and near its limit the system drops and reads the program's own again and again.
    let free = tool(
        "hold",
        &["/usr/bin/python3", "-c", SHARED],
        json!({"limits": {"memory": "2G"}}),
    );
    assert_eq!(one(&free, &json!({})).outcome("i"), ("success", "held\n"));
    let limited = tool(
        "hold",
        &["/usr/bin/python3", "-c", SHARED],
        json!({"limits": {"memory": "64M"}}),
    );
    let out = one(&limited, &json!({}));
    let (status, output) = out.outcome("i");
    assert!(
        status == "error"
            && output.contains("used more memory than they may")
            && !output.contains("held"),
        "{output}"
    );
}

#[test]
fn the_processes_of_a_call_are_counted_together_21() {
    let Some(_) = folder("pids") else { return };
    // Each process is one of its own, and all are started by children of children.
    let bomb =
        "n=0; while [ $n -lt 60 ]; do (sleep 100 & sleep 100) & n=$((n+1)); done; echo started all";
    let tool = script(
        "bomb",
        bomb,
        json!({"limits": {"processes": 20}, "timeout": "1s"}),
    );
    let out = one(&tool, &json!({}));
    assert!(
        !out.text.contains("started all") && out.text.contains("ork"),
        "{}",
        out.text
    );
}

#[test]
fn a_group_goes_with_its_call_and_one_that_was_left_goes_with_a_later_run() {
    let Some(folder) = folder("memory") else {
        return;
    };
    let dir = Dir::new();
    let tools = [script(
        "t",
        "cat /proc/$$/cgroup; : >runs; while [ ! -e go ]; do sleep 0.01; done",
        json!({"limits": {"memory": "64M"}}),
    )];
    let mut live = Live::new(&dir, &tools, &["--no-time"]);
    live.send(START);
    live.send(&call(0, "a", "t", &json!({})));
    live.send(&harness::message(&[("a", "t", json!({}))]));
    wait_until("it does not run", || dir.path("runs").exists());
    let made = groups(&folder);
    assert!(!made.is_empty());
    dir.write("go", "");
    let (_, events) = live.end();
    let output = events.iter().find(|e| e["type"] == "tool_result").unwrap()["output"]
        .as_str()
        .unwrap()
        .to_owned();
    let own = made
        .iter()
        .find(|path| output.contains(path.file_name().unwrap().to_str().unwrap()));
    assert!(!own.expect("the call is in no group").exists());
    // A group of a process that has ended: this PID namespace, the number of this process, and
    // another start.
    let namespace = std::fs::read_link("/proc/self/ns/pid")
        .unwrap()
        .display()
        .to_string();
    let number: String = namespace.chars().filter(char::is_ascii_digit).collect();
    let left = folder.join(format!("tool-exec-{number}-{}-1", std::process::id()));
    std::fs::create_dir(&left).unwrap();
    run_in(&dir, &tools, &turn(&[("b", "t", json!({}))]), &[]);
    assert!(!left.exists());
}

#[test]
fn root_has_a_limit_of_processes_too_21() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let release = read("/proc/sys/kernel/osrelease");
    let mut version = release
        .trim()
        .split(|c: char| !c.is_ascii_digit())
        .map(|n| n.parse::<u32>().unwrap_or(0));
    let is_new = (version.next(), version.next()) >= (Some(6), Some(14));
    if !is_root() || !is_new {
        return skip("for root on Linux 6.14");
    }
    let tool = script("limit", "echo $$; cat /proc/sys/kernel/pid_max", json!({}));
    let out = one(&tool, &json!({}));
    let numbers: Vec<u64> = out
        .outcome("i")
        .1
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    if numbers[0] > 100 {
        return skip("no PID namespace");
    }
    let all: u64 = read("/proc/sys/kernel/pid_max").trim().parse().unwrap();
    assert!(numbers[1] < all, "{numbers:?} of {all}");
}
