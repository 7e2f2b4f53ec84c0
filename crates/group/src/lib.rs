//! Processes that end together.
//!
//! The processes are a process group, so that a signal of the terminal reaches only the owner of
//! the group. The first member is a guard: a shell that waits on a pipe from this process, and
//! kills the group when the pipe closes. So the group ends even if this process is killed. No other
//! group can get the number of this group until this process has waited for the guard.

pub mod descent;

use descent::{GIVE_UP, Process, ROUND};
use rustix::process::{Pid, Signal, child_subreaper, getpid, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The script of the guard. The guard survives the signals that ask the group to end, and writes a
/// line as soon as it ignores them.
const GUARD: &str = "trap '' HUP INT TERM; echo; read -r line; kill -9 0";

/// A process group with a guard. Dropping it kills its processes.
#[derive(Debug)]
pub struct ProcessGroup {
    guard: Child,
    number: Pid,
}

impl ProcessGroup {
    /// Starts a group that has no member but its guard.
    ///
    /// # Errors
    /// When the shell of the guard cannot be started.
    pub fn start() -> io::Result<ProcessGroup> {
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let number = i32::try_from(guard.id()).ok().and_then(Pid::from_raw);
        Ok(ProcessGroup {
            guard,
            number: number.ok_or_else(|| io::Error::other("the guard has no process id"))?,
        })
    }

    /// The number of the group, for `process_group` of a command that is to be a member.
    pub fn number(&self) -> i32 {
        self.number.as_raw_nonzero().get()
    }

    /// Sends a signal to all members. The guard ends by SIGKILL alone.
    pub fn signal(&mut self, signal: Signal) {
        if signal != Signal::KILL
            && let Some(mut line) = self.guard.stdout.take()
        {
            // Without this wait a signal that comes too early would end the guard.
            let _ = line.read(&mut [0]);
        }
        // Fails where all members have ended already.
        let _ = kill_process_group(self.number, signal);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.guard.wait();
    }
}

/// A process group of which nothing is left when it is dropped, not even a member that has left the
/// group, or what a member has started and left behind: while it is there, this process adopts the
/// orphans below it, and starts no child but the members.
#[derive(Debug)]
pub struct StrictGroup {
    /// Dropped first.
    group: Option<ProcessGroup>,
    /// When it began, in ticks of the system.
    since: u64,
    /// Whether this process adopted orphans before.
    adopted: bool,
    /// Two groups would end each other's members.
    _alone: MutexGuard<'static, ()>,
}

/// Held by the one strict group of this process.
static ALONE: Mutex<()> = Mutex::new(());

impl StrictGroup {
    /// Starts a group, when no other one of this process is there.
    ///
    /// # Errors
    /// As [`ProcessGroup::start`].
    pub fn start() -> io::Result<StrictGroup> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let own = getpid().as_raw_nonzero().get();
        let children = descent::below().into_iter().filter(|p| p.parent == own);
        for child in children.filter_map(|p| u32::try_from(p.pid).ok()) {
            descent::spare(child);
        }
        let adopted = child_subreaper().is_ok_and(|reaper| reaper.is_some());
        let group = ProcessGroup::start()?;
        descent::adopt_orphans(true);
        Ok(StrictGroup {
            since: Process::of(group.number()).map_or(0, |guard| guard.start),
            group: Some(group),
            adopted,
            _alone: alone,
        })
    }

    /// As [`ProcessGroup::number`].
    pub fn number(&self) -> i32 {
        self.group.as_ref().map_or(0, ProcessGroup::number)
    }
}

impl Drop for StrictGroup {
    fn drop(&mut self) {
        drop(self.group.take());
        let until = Instant::now() + GIVE_UP;
        // What one of them has just started is found in the next round.
        while !descent::kill_orphans(self.since).is_empty() && Instant::now() < until {
            std::thread::sleep(ROUND);
        }
        descent::adopt_orphans(self.adopted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::io::BufReader;
    use std::os::unix::process::ExitStatusExt;

    /// A member that writes a line when it is ready.
    fn member(group: &ProcessGroup, script: &str) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .process_group(group.number())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.as_mut().unwrap());
        assert!(out.read_line(&mut line).unwrap() > 0, "{script}");
        child
    }

    #[test]
    fn the_guard_outlives_sigterm_and_kills_what_ignores_it() {
        let mut group = ProcessGroup::start().unwrap();
        let mut polite = member(&group, "echo; sleep 1000");
        let mut stubborn = member(&group, "trap '' TERM; echo; while :; do sleep 1000; done");
        group.signal(Signal::TERM);
        assert_eq!(polite.wait().unwrap().signal(), Some(15));
        assert!(
            group.guard.try_wait().unwrap().is_none(),
            "the guard has ended"
        );
        assert!(stubborn.try_wait().unwrap().is_none());
        // As if this process had been killed: its end of the pipe closes.
        drop(group.guard.stdin.take());
        assert_eq!(stubborn.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_group_that_is_dropped_ends() {
        let group = ProcessGroup::start().unwrap();
        let mut stubborn = member(&group, "trap '' TERM; echo; while :; do sleep 1000; done");
        drop(group);
        assert_eq!(stubborn.wait().unwrap().signal(), Some(9));
    }
}
