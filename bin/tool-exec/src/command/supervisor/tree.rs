//! Processes by their descent, as /proc shows it.

use crate::command::process::Process;
use rustix::process::{Pid, Signal, getpid, kill_process};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_below_its_parent() {
        let own = Process::of(getpid().as_raw_nonzero().get()).unwrap();
        assert!(descendants(own.parent).contains(&own) && !own.is_zombie && own.start > 0);
    }
}
