//! The filter of system calls of a sandbox, and what holds without one. A script of Python makes
//! the calls.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::needs::{self, skip};
use crate::harness::users::{User, as_user, open_dir, users};
use crate::harness::{command, run_command, tool, turn};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

const PYTHON: &str = "/usr/bin/python3";

/// Denied in every sandbox.
const DENIED: [&str; 27] = [
    "vsock",
    "packet",
    "alg",
    "netfilter",
    "mptcp",
    "sctp",
    "fast-open",
    "add_key",
    "keyctl",
    "request_key",
    "io_uring_setup",
    "io_uring_enter",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "open_tree",
    "kexec_load",
    "name_to_handle_at",
    "ptrace",
    "prlimit",
    "mount",
    "setns",
    "unshare",
    "umount",
];

/// What programs need.
const ALLOWED: [&str; 7] = [
    "tcp", "udp6", "thread", "process", "pair", "limit", "traced",
];

/// The error of each call that the script makes as a tool with these members of `exec`, run with
/// `options`; `None`: the sandbox cannot be had.
fn errors(user: User, options: &[&str], more: Value) -> Option<HashMap<String, String>> {
    let dir = open_dir();
    let script = dir.write("system_calls.py", include_str!("system_calls.py"));
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o644)).unwrap();
    let tools = [tool("calls", &[PYTHON, "system_calls.py"], more)];
    let command = command(&dir, &tools, options);
    let out = run_command(
        as_user(user, &dir, command),
        &turn(&[("a", "calls", json!({}))]),
    );
    if out.status == 2 {
        assert!(out.errors.contains("cannot be had"), "{}", out.errors);
        skip(&format!("{options:?} as {user:?}: {}", out.errors.trim()));
        return None;
    }
    let (status, output) = out.outcome("a");
    assert_eq!(status, "success", "{options:?} as {user:?}: {output}");
    Some(
        output
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect(),
    )
}

#[test]
fn system_calls_that_no_tool_needs_are_denied_in_every_sandbox() {
    if !needs::programs(&[PYTHON]) {
        return;
    }
    for kind in ["landlock", "bwrap"] {
        if kind == "bwrap" && !needs::programs(&["bwrap"]) {
            continue;
        }
        for user in users() {
            for network in [false, true] {
                let more = json!({"sandbox": {"network": network}});
                let Some(found) = errors(user, &["--sandbox", kind], more) else {
                    continue;
                };
                let what = format!("{kind} {user:?} {network}: {found:?}");
                for name in DENIED {
                    assert_eq!(
                        found.get(name).map(String::as_str),
                        Some("EPERM"),
                        "{name} {what}"
                    );
                }
                for name in ALLOWED {
                    assert_eq!(
                        found.get(name).map(String::as_str),
                        Some("0"),
                        "{name} {what}"
                    );
                }
                // A C library finds a kernel without it, and uses clone(2).
                assert_eq!(found["clone3"], "ENOSYS", "{what}");
                assert_eq!(
                    found["route"],
                    if network { "0" } else { "EPERM" },
                    "{what}"
                );
                // The system calls of x32 and of 32 bits have other numbers: none is made past the
                // filter.
                assert!(
                    found.get("x32").is_none_or(|error| error == "ENOSYS"),
                    "{what}"
                );
                assert!(
                    found.get("int80").is_none_or(|status| status != "1792"),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn without_a_sandbox_no_program_gains_rights() {
    if !needs::programs(&[PYTHON]) {
        return;
    }
    for user in users() {
        let found = errors(user, &[], json!({})).unwrap();
        assert_eq!(found["1"], "no_new_privs", "{user:?}: {found:?}");
        // The filter is a part of the sandboxes.
        assert_ne!(found["clone3"], "ENOSYS", "{user:?}: {found:?}");
    }
}
