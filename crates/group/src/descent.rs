//! Processes by their descent, as `/proc/PID/stat` shows it, and what becomes of orphans.
//!
//! A process can leave its group, its session and its environment, but not its descent: what it
//! starts and leaves behind comes to the next process above it that adopts orphans (a subreaper,
//! prctl(2)).

use rustix::param::clock_ticks_per_second;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long killing may take before it is given up: a process in the middle of a device's work
/// cannot be killed.
pub const GIVE_UP: Duration = Duration::from_secs(2);
/// How long to wait before killing again what was forked during the last round.
pub const ROUND: Duration = Duration::from_millis(5);

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The number of its parent.
    pub parent: i32,
    /// Its start time, in clock ticks since the system was booted. With the number it names one
    /// process: numbers are used again.
    pub start: u64,
    /// Whether it has ended and its parent has not waited for it.
    pub is_zombie: bool,
}

impl Process {
    /// Reads the process with this number. `None` if no process has it, or if /proc is not mounted.
    pub fn of(pid: i32) -> Option<Process> {
        // "pid (name) state parent …" (proc_pid_stat(5)); the name may hold anything, even
        // brackets.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let name_end = stat.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
            is_zombie: *fields.first()? == "Z",
        })
    }
}

/// All processes that this one sees; none without /proc.
fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Process::of).collect()
}

/// The processes below `root`, each after its parent.
pub fn descendants(root: i32) -> Vec<Process> {
    let all = processes();
    let mut found: Vec<Process> = all.iter().filter(|p| p.parent == root).copied().collect();
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].pid;
        found.extend(all.iter().filter(|p| p.parent == parent).copied());
        next += 1;
    }
    found
}

/// The processes below this one.
pub fn below() -> Vec<Process> {
    descendants(getpid().as_raw_nonzero().get())
}

/// Sends `signal` to each of these processes.
pub fn signal_all(processes: &[Process], signal: Signal) {
    for pid in processes
        .iter()
        .filter(|p| !p.is_zombie)
        .filter_map(|p| Pid::from_raw(p.pid))
    {
        let _ = kill_process(pid, signal); // fails where it has ended already
    }
}

/// Has this process adopt the orphans below it, or leave them to the next process above it. Fails
/// nowhere on Linux since 3.4.
pub fn adopt_orphans(is_on: bool) {
    let _ = set_child_subreaper(is_on.then(getpid));
}

/// The children of this process that are not orphans.
static SPARED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Keeps the child of that number, and all below it, from being ended as an orphan.
pub fn spare(child: u32) {
    let mut spared = SPARED.lock().unwrap_or_else(PoisonError::into_inner);
    spared.extend(i32::try_from(child));
}

/// The time now, as [`Process::start`]: a process that starts later has this time or a later one.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    let ticks = clock_ticks_per_second();
    part(now.tv_sec) * ticks + part(now.tv_nsec) * ticks / 1_000_000_000
}

/// Kills the children of this process that are not spared and started at `since` or later, and all
/// below them. Returns those that are left; ask again after a [`ROUND`] until there are none.
pub fn kill_orphans(since: u64) -> Vec<Process> {
    let all = orphans(since);
    let zombies = all.iter().filter(|p| p.is_zombie);
    for zombie in zombies.filter_map(|p| Pid::from_raw(p.pid)) {
        // Fails for those that are not this process's own children yet.
        let _ = waitpid(Some(zombie), WaitOptions::NOHANG);
    }
    let left: Vec<Process> = all.into_iter().filter(|p| !p.is_zombie).collect();
    signal_all(&left, Signal::KILL);
    left
}

fn orphans(since: u64) -> Vec<Process> {
    let own = getpid().as_raw_nonzero().get();
    let below = descendants(own);
    let mut spared = SPARED.lock().unwrap_or_else(PoisonError::into_inner);
    spared.retain(|pid| below.iter().any(|p| p.pid == *pid && p.parent == own));
    let mut found: Vec<Process> = Vec::new();
    // Each process comes after its parent.
    for process in below {
        let is_orphan =
            process.parent == own && process.start >= since && !spared.contains(&process.pid);
        if is_orphan || found.iter().any(|p| p.pid == process.parent) {
            found.push(process);
        }
    }
    found
}

#[cfg(test)]
mod tree_tests {
    use super::*;

    #[test]
    fn this_process_is_found_below_its_parent() {
        let own = Process::of(getpid().as_raw_nonzero().get()).unwrap();
        assert!(descendants(own.parent).contains(&own) && !own.is_zombie && own.start > 0);
    }

    #[test]
    fn a_process_starts_between_the_times_before_and_after() {
        let before = now();
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let process = Process::of(child.id().cast_signed()).unwrap();
        assert!((before..=now()).contains(&process.start));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
