//! `--doctor`: each line agrees with what a command finds. Runs as this user, and where that is
//! root as an ordinary user too.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::users::{User, as_user, open_dir, users};
use crate::harness::{command, run_command, script, turn};
use serde_json::json;
use std::collections::HashMap;
use std::process::{Command, Output};

fn doctor(user: User, args: &[&str]) -> Output {
    let dir = open_dir();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tool-exec"));
    command
        .arg("--doctor")
        .args(args)
        .current_dir(dir.path("."));
    as_user(user, &dir, command).output().unwrap()
}

/// The lines of `--doctor`: what comes after each name.
fn lines(out: &Output) -> HashMap<String, String> {
    let text = String::from_utf8(out.stdout.clone()).unwrap();
    let line = |line: &str| (line[..16].trim().to_owned(), line[17..].to_owned());
    text.lines().map(line).collect()
}

#[test]
fn what_is_printed_is_what_a_command_finds() {
    for user in users() {
        let out = doctor(user, &[]);
        assert_eq!(
            out.status.code(),
            Some(0),
            "{user:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        let found = lines(&out);
        let look =
            "echo $$; stat -f -c %T ~; cat /proc/$$/cgroup; kill -0 $PPID && echo can signal";
        let tools = [script("look", look, json!({"limits": {"memory": "1G"}}))];
        let dir = open_dir();
        let out = run_command(
            as_user(user, &dir, command(&dir, &tools, &[])),
            &turn(&[("a", "look", json!({}))]),
        );
        let output = out.result("a")["output"].as_str().unwrap();
        let is_small = |line: &str| line.parse::<u32>().is_ok_and(|pid| pid < 10);
        let is_init = output.lines().any(is_small);
        assert_eq!(
            found["processes"].starts_with("a PID namespace"),
            is_init,
            "{user:?}: {output}"
        );
        let has_tmpfs = output.lines().any(|line| line == "tmpfs");
        assert!(
            has_tmpfs || !found["home"].starts_with("a file system"),
            "{user:?}: {output}"
        );
        assert_eq!(
            found["memory"].contains("a control group counts"),
            output.contains("/tool-exec-"),
            "{user:?}: {output}"
        );
    }
}

#[test]
fn a_sandbox_that_works_is_printed_as_such_and_one_that_does_not_ends_with_2() {
    for user in users() {
        for (kind, works) in [("landlock", "version "), ("bwrap", "bubblewrap ")] {
            let out = doctor(user, &["--sandbox", kind]);
            let dir = open_dir();
            let tools = [script("t", "echo ran", json!({}))];
            let run = run_command(
                as_user(user, &dir, command(&dir, &tools, &["--sandbox", kind])),
                &turn(&[("a", "t", json!({}))]),
            );
            assert_eq!(
                (out.status.code(), run.status),
                if run.status == 0 {
                    (Some(0), 0)
                } else {
                    (Some(2), 2)
                },
                "{user:?} {kind}"
            );
            if run.status == 0 {
                let found = lines(&out);
                assert!(
                    found["system calls"].starts_with("in a sandbox filtered"),
                    "{found:?}"
                );
                assert!(found["privileges"].contains("no_new_privs"), "{found:?}");
                let line = &found[kind];
                assert!(
                    line.starts_with(works)
                        && !line.contains("cannot be used")
                        && !line.contains("does not work"),
                    "{line}"
                );
            }
        }
    }
    let mut none = Command::new(env!("CARGO_BIN_EXE_tool-exec"));
    let out = none
        .args(["--doctor", "--sandbox", "bwrap"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(
        lines(&out)["bwrap"],
        "bwrap is not found in PATH, install bubblewrap"
    );
    let error = String::from_utf8(out.stderr).unwrap();
    assert!(
        error.contains("--sandbox bwrap is unavailable: bwrap is not found")
            && error.lines().count() == 1,
        "{error}"
    );
}
