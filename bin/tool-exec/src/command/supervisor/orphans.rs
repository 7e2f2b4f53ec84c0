//! What a supervisor leaves behind that was killed from outside: it comes to `tool-exec`, which
//! ends it.

use super::tree;
use crate::command::process::Process;
use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long killing may take before it is given up.
const GIVE_UP: Duration = Duration::from_secs(2);
/// How long to wait before the next round.
const ROUND: Duration = Duration::from_millis(5);
/// How many processes that could not be ended are listed.
const LISTED: usize = 20;

/// The children of this process that are not orphans.
static SPARED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Keeps the child of that number, and all below it, from being ended as an orphan. Returns when it
/// started, in ticks of the system.
pub fn spare(child: u32) -> u64 {
    let Ok(pid) = i32::try_from(child) else {
        return 0;
    };
    SPARED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(pid);
    Process::of(pid).map_or(0, |process| process.start)
}

/// Kills the children of this process that are not spared and started at `since` or later, and all
/// below them, until none is left. Returns the first of those that could not be killed.
pub async fn end_all(since: u64) -> Vec<i32> {
    let until = tokio::time::Instant::now() + GIVE_UP;
    loop {
        let all = orphans(since);
        for zombie in all
            .iter()
            .filter(|p| p.is_zombie)
            .filter_map(|p| Pid::from_raw(p.pid))
        {
            // Fails for those that are not this process's own children yet.
            let _ = waitpid(Some(zombie), WaitOptions::NOHANG);
        }
        let left: Vec<Process> = all.into_iter().filter(|p| !p.is_zombie).collect();
        if left.is_empty() || tokio::time::Instant::now() > until {
            return left.iter().map(|p| p.pid).take(LISTED).collect();
        }
        tree::signal_all(&left, Signal::KILL);
        tokio::time::sleep(ROUND).await;
    }
}

fn orphans(since: u64) -> Vec<Process> {
    let own = getpid().as_raw_nonzero().get();
    let below = tree::descendants(own);
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
