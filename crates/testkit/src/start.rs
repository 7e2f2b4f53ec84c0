//! Gives every test binary the same start state, even under `nohup`, in the background of a script,
//! without a terminal, or with an unusual umask: the commands under test inherit all of these.

use crate::process::{PATIENCE, kill};
use rustix::fs::{Mode, OFlags, open};
use signal_hook::consts::{FORBIDDEN, SIGPIPE};
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum lifetime of a process that a test started, so that no test waits longer for it.
const LIFETIME: Duration = PATIENCE.saturating_mul(5);
/// The environment variable that replaces [`LIFETIME`], in seconds, to test the guard.
pub const LIFETIME_VARIABLE: &str = "TESTKIT_LIFETIME";
/// Maximum time that a test binary may run, in multiples of [`LIFETIME`].
const WHOLE_RUN: u32 = 9;
/// How many times the guard checks the processes in one lifetime.
const LOOKS: u32 = 20;

#[ctor::ctor]
fn start() {
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    stdin_is_empty();
    signals_are_default_for_children();
    let typed = std::env::var(LIFETIME_VARIABLE).ok();
    let seconds = typed.and_then(|seconds| seconds.parse().ok());
    let lifetime = seconds.map_or(LIFETIME, Duration::from_secs);
    thread::spawn(move || guard(lifetime));
}

/// Makes children whose input the test does not set read end-of-file, never the user's keyboard.
fn stdin_is_empty() {
    // Children inherit standard input. If it was closed, this descriptor is number 0 already.
    let Ok(null) = open("/dev/null", OFlags::RDONLY, Mode::empty()) else {
        return;
    };
    if null.as_raw_fd() == 0 {
        let _ = null.into_raw_fd();
    } else {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// Restores the default of signals for children. A child inherits ignored signals as ignored, but
/// handled signals with their default action. So this process installs an empty handler for each
/// ignored signal.
fn signals_are_default_for_children() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    // Rust itself ignores SIGPIPE, and restores it for children. Signals from 32 on belong to the C
    // library.
    let taken = (1..32).filter(|signal| *signal != SIGPIPE && !FORBIDDEN.contains(signal));
    for signal in taken {
        if ignored >> (signal - 1) & 1 == 1 {
            let nothing = Arc::new(AtomicBool::new(false));
            let _ = signal_hook::flag::register(signal, nothing);
        }
    }
}

/// Kills each descendant that has lived too long, so that the test waiting for it fails. Ends the
/// whole run if a test waits forever for anything else.
fn guard(lifetime: Duration) {
    let start = Instant::now();
    let mut seen: HashMap<String, Instant> = HashMap::new();
    loop {
        thread::sleep(lifetime / LOOKS);
        let below = descendants();
        seen.retain(|identity, _| below.iter().any(|process| process.identity == *identity));
        for process in below {
            let since = *seen.entry(process.identity).or_insert_with(Instant::now);
            if since.elapsed() > lifetime {
                let line = format!(
                    "\ntestkit: killed process {} ({}), which a test started {} s ago\n",
                    process.pid,
                    process.name,
                    since.elapsed().as_secs()
                );
                let _ = std::io::stderr().write_all(line.as_bytes());
                kill(process.pid, "KILL");
            }
        }
        if start.elapsed() > lifetime * WHOLE_RUN {
            let line = format!(
                "\ntestkit: ended the tests after {} s, since one of them waits forever\n",
                start.elapsed().as_secs()
            );
            let _ = std::io::stderr().write_all(line.as_bytes());
            std::process::exit(101);
        }
    }
}

struct Process {
    pid: u32,
    parent: u32,
    name: String,
    /// The process id and the start time, since ids are reused.
    identity: String,
}

/// Returns the running descendants of this process.
fn descendants() -> Vec<Process> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut others: Vec<Process> = folders
        .filter_map(|folder| {
            let pid = folder.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(folder.path().join("stat")).ok()?;
            let (head, rest) = stat.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            Some(Process {
                pid,
                parent: fields.get(1)?.parse().ok()?,
                name: head.split_once('(')?.1.to_owned(),
                identity: format!("{pid} {}", fields.get(19)?),
            })
        })
        .collect();
    let mut below: Vec<Process> = Vec::new();
    loop {
        let is_below = |process: &mut Process| {
            process.parent == std::process::id()
                || below.iter().any(|above| above.pid == process.parent)
        };
        let found: Vec<Process> = others.extract_if(.., is_below).collect();
        if found.is_empty() {
            return below;
        }
        below.extend(found);
    }
}
