//! Process ancestry, as `/proc/PID/stat` reports it, and the killing of orphans.
//!
//! A process can leave its group and its session and can clear its environment, but it cannot
//! change its ancestry. When it exits, its children are reparented to the nearest ancestor that is
//! a subreaper (prctl(2)).

use rustix::param::clock_ticks_per_second;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long to keep killing before giving up: a process in uninterruptible sleep cannot be killed.
pub const GIVE_UP: Duration = Duration::from_secs(2);
/// Time between two rounds of killing. The next round finds processes forked during the last one.
pub const ROUND: Duration = Duration::from_millis(5);

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The process id of its parent.
    pub parent: i32,
    /// Its start time, in clock ticks since boot. Process ids are reused; the id and the start time
    /// together identify one process.
    pub start: u64,
    /// Whether the process has exited but its parent has not waited for it yet.
    pub is_zombie: bool,
}

impl Process {
    /// Reads the process with this id. Returns `None` if it does not exist or /proc is not mounted.
    pub fn of(pid: i32) -> Option<Process> {
        // "pid (name) state parent …" (proc_pid_stat(5)). The name may contain any byte, even a
        // parenthesis.
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

/// Returns all processes visible to this one, or none without /proc.
fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Process::of).collect()
}

/// Returns all descendants of `root`, each after its parent.
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

/// Returns all descendants of this process.
pub fn below() -> Vec<Process> {
    descendants(getpid().as_raw_nonzero().get())
}

/// Sends `signal` to each of these processes that is not a zombie.
pub fn signal_all(processes: &[Process], signal: Signal) {
    for pid in processes
        .iter()
        .filter(|p| !p.is_zombie)
        .filter_map(|p| Pid::from_raw(p.pid))
    {
        let _ = kill_process(pid, signal); // fails if the process has already exited
    }
}

/// Makes this process a subreaper, which adopts the orphans among its descendants, or ends that.
/// Never fails on Linux 3.4 or later.
pub fn adopt_orphans(is_on: bool) {
    let _ = set_child_subreaper(is_on.then(getpid));
}

/// The ids of the descendants that [`kill_orphans`] does not kill.
static SPARED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Excludes the descendant with this process id, and its own descendants, from [`kill_orphans`],
/// also after its parent has ended.
pub fn spare(process: u32) {
    let mut spared = SPARED.lock().unwrap_or_else(PoisonError::into_inner);
    spared.extend(i32::try_from(process));
}

/// Undoes [`spare`].
pub fn spare_no_longer(process: u32) {
    let mut spared = SPARED.lock().unwrap_or_else(PoisonError::into_inner);
    spared.retain(|pid| i32::try_from(process) != Ok(*pid));
}

/// Returns the current time in the unit of [`Process::start`]. A process started later has a start
/// time equal to or greater than this.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    let ticks = clock_ticks_per_second();
    part(now.tv_sec) * ticks + part(now.tv_nsec) * ticks / 1_000_000_000
}

/// Kills the children of this process that started at `since` or later and were not passed to
/// [`spare`], with all their descendants. Returns the processes that were still alive; call again
/// after a [`ROUND`] until it returns none.
pub fn kill_orphans(since: u64) -> Vec<Process> {
    let all = orphans(since);
    let zombies = all.iter().filter(|p| p.is_zombie);
    for zombie in zombies.filter_map(|p| Pid::from_raw(p.pid)) {
        // Fails for zombies that are not children of this process yet.
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
    spared.retain(|pid| below.iter().any(|p| p.pid == *pid));
    let mut found: Vec<Process> = Vec::new();
    // `below` lists each process after its parent.
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
