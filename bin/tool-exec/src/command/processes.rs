//! A process as `/proc/PID/stat` shows it.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::time::Duration;

/// How long killing may take before it is given up: a process in the middle of a device's work
/// cannot be killed.
pub(super) const GIVE_UP: Duration = Duration::from_secs(2);
/// How long to wait before killing again what was forked during the last round.
pub(super) const ROUND: Duration = Duration::from_millis(5);
/// How many processes that could not be ended are listed.
pub(super) const LISTED: usize = 20;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
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
    pub(super) fn of(pid: i32) -> Option<Process> {
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

// Processes by their descent, as /proc shows it.

/// All processes that this one sees; none without /proc.
fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Process::of).collect()
}

/// The processes below `root`, each after its parent.
pub(super) fn descendants(root: i32) -> Vec<Process> {
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
pub(super) fn below() -> Vec<Process> {
    descendants(getpid().as_raw_nonzero().get())
}

/// Sends `signal` to each of these processes.
pub(super) fn signal_all(processes: &[Process], signal: Signal) {
    for pid in processes
        .iter()
        .filter(|p| !p.is_zombie)
        .filter_map(|p| Pid::from_raw(p.pid))
    {
        let _ = kill_process(pid, signal); // fails where it has ended already
    }
}

#[cfg(test)]
mod tree_tests {
    use super::*;

    #[test]
    fn this_process_is_found_below_its_parent() {
        let own = Process::of(getpid().as_raw_nonzero().get()).unwrap();
        assert!(descendants(own.parent).contains(&own) && !own.is_zombie && own.start > 0);
    }
}
