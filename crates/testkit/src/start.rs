//! Gives every test binary the same start, whether it runs under `nohup`, in the background of a
//! script, without a terminal, or with an unusual umask: the commands under test inherit all of
//! these.

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

/// How long a process that a test started may live, so that no test waits longer for one.
const LIFETIME: Duration = PATIENCE.saturating_mul(5);
/// The variable that replaces [`LIFETIME`], in seconds, for the test of the guard.
pub const LIFETIME_VARIABLE: &str = "TESTKIT_LIFETIME";
/// How many times [`LIFETIME`] a test binary may run, whatever its tests wait for.
const WHOLE_RUN: u32 = 9;
/// How many times the guard looks in one lifetime.
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

/// A child whose input the test does not set reads an end, and never the user's keyboard.
fn stdin_is_empty() {
    // Children inherit it, also where standard input was closed, so that this is number 0 already.
    let Ok(null) = open("/dev/null", OFlags::RDONLY, Mode::empty()) else {
        return;
    };
    if null.as_raw_fd() == 0 {
        let _ = null.into_raw_fd();
    } else {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// A signal that is ignored stays ignored in programs that are started, but one with a handler has
/// its default again. So this process handles what it was told to ignore, and does nothing.
fn signals_are_default_for_children() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    // Rust ignores SIGPIPE itself, and gives it back to children. Those above belong to the C library.
    let taken = (1..32).filter(|signal| *signal != SIGPIPE && !FORBIDDEN.contains(signal));
    for signal in taken {
        if ignored >> (signal - 1) & 1 == 1 {
            let nothing = Arc::new(AtomicBool::new(false));
            let _ = signal_hook::flag::register(signal, nothing);
        }
    }
}

/// Kills each descendant that has lived too long, so that the test that waits for it fails. Ends
/// the whole run if a test waits forever for anything else.
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
    /// The number and the time of the start: a number is given again.
    identity: String,
}

/// The processes that come from this one and still have it as an ancestor.
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
