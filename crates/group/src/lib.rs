//! Process groups whose members end together.
//!
//! A signal from the terminal reaches only the owner of the process group, because the members are
//! in a group of their own. The first member is a guard: a shell that blocks on a pipe from this
//! process and kills the group when the pipe closes. So the group ends even if this process is
//! killed. The kernel does not reuse the group's id until this process has waited for the guard.

pub mod descent;

use descent::{GIVE_UP, Process, ROUND};
use rustix::process::{Pid, Signal, child_subreaper, getpid, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The script of the guard. It ignores the signals that ask the group to end, and prints an empty
/// line once it does.
const GUARD: &str = "trap '' HUP INT TERM; echo; read -r line; kill -9 0";

/// A process group with a guard. All its processes are killed on drop.
#[derive(Debug)]
pub struct ProcessGroup {
    guard: Child,
    number: Pid,
}

impl ProcessGroup {
    /// Starts a group whose only member is its guard.
    ///
    /// # Errors
    /// If the shell of the guard cannot be started.
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

    /// Returns the group's id, to pass to `Command::process_group` when starting a member.
    pub fn number(&self) -> i32 {
        self.number.as_raw_nonzero().get()
    }

    /// Sends `signal` to all members. The guard ignores every signal that it can, except SIGKILL.
    pub fn signal(&mut self, signal: Signal) {
        if signal != Signal::KILL
            && let Some(mut line) = self.guard.stdout.take()
        {
            // A signal that arrived before the guard set its traps would end the guard.
            let _ = line.read(&mut [0]);
        }
        // Fails if all members have already exited.
        let _ = kill_process_group(self.number, signal);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.guard.wait();
    }
}

/// A process group that leaves no process behind when dropped, not even members that left the group
/// or children that a member left running. While the group exists, this process is a subreaper and
/// must not start any child other than the members.
#[derive(Debug)]
pub struct StrictGroup {
    /// Dropped before the orphans are killed. `None` only while dropping.
    group: Option<ProcessGroup>,
    /// When the group was started, in clock ticks since boot.
    since: u64,
    /// Whether this process was already a subreaper before.
    adopted: bool,
    /// Held because two strict groups would kill each other's members.
    _alone: MutexGuard<'static, ()>,
}

/// Locked by the only strict group of this process.
static ALONE: Mutex<()> = Mutex::new(());

impl StrictGroup {
    /// Starts a group. Blocks while this process has another strict group.
    ///
    /// # Errors
    /// Same as [`ProcessGroup::start`].
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

    /// Same as [`ProcessGroup::number`].
    pub fn number(&self) -> i32 {
        self.group.as_ref().map_or(0, ProcessGroup::number)
    }
}

impl Drop for StrictGroup {
    fn drop(&mut self) {
        drop(self.group.take());
        let until = Instant::now() + GIVE_UP;
        // Processes started during one round are found in the next.
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

    /// Starts a member and waits until it has written a line.
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
        // Closing the guard's stdin has the same effect as killing this process.
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
