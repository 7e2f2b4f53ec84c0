//! Processes that end together.
//!
//! The processes are a process group, so that a signal of the terminal reaches only the owner of
//! the group. The first member is a guard: a shell that waits on a pipe from this process, and
//! kills the group when the pipe closes. So the group ends even if this process is killed. No other
//! group can get the number of this group until this process has waited for the guard.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The variable by which processes are found that have left their group.
const MARK: &str = "TOOLPIPE_GROUP";

/// How often processes that have left the group are looked for, and the time between.
const ROUNDS: u32 = 200;
const ROUND: Duration = Duration::from_millis(5);

/// The script of the guard. The guard survives the signals that ask the group to end, and writes a
/// line as soon as it ignores them.
const GUARD: &str = "trap '' HUP INT TERM; echo; read -r line; kill -9 0";

/// A process group with a guard. Dropping it kills its processes.
#[derive(Debug)]
pub struct ProcessGroup {
    guard: Child,
    number: Pid,
    /// The time of its start: numbers of processes are used again.
    begun: u128,
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
            begun: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_nanos()),
        })
    }

    /// The number of the group, for `process_group` of a command that is to be a member.
    pub fn number(&self) -> i32 {
        self.number.as_raw_nonzero().get()
    }

    /// A variable for the environment of a member, with which [`ProcessGroup::end_with_leavers`]
    /// finds what the member has started.
    pub fn mark(&self) -> (&'static str, String) {
        (MARK, format!("{}-{}", self.number(), self.begun))
    }

    /// Kills all members, and the processes with the group's mark in their environment that have
    /// left it (`setsid`). One that has cleared its environment stays.
    pub fn end_with_leavers(self) {
        let (name, value) = self.mark();
        let mark = format!("{name}={value}");
        drop(self);
        for _ in 0..ROUNDS {
            let left = marked(mark.as_bytes());
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL); // fails where it has ended already
            }
            // What one of them has just started is found in the next round.
            std::thread::sleep(ROUND);
        }
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

/// The processes that began with this variable in their environment. None without /proc, and none of
/// other users.
fn marked(variable: &[u8]) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_marked = |environment: Vec<u8>| environment.split(|b| *b == 0).any(|v| v == variable);
    all.filter(|process| std::fs::read(process.path().join("environ")).is_ok_and(is_marked))
        .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
        .collect()
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
    fn what_has_left_the_group_ends_with_it() {
        let group = ProcessGroup::start().unwrap();
        let (name, value) = group.mark();
        // The shell is a child of this process, in a group of its own.
        let mut left = Command::new("sh")
            .args(["-c", "sh -c 'echo; sleep 1000' & wait"])
            .env(name, value)
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(left.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        group.end_with_leavers();
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        // The end of its output: nothing that it has started is left.
        assert_eq!(out.read_line(&mut String::new()).unwrap(), 0);
    }

    #[test]
    fn a_group_that_is_dropped_ends() {
        let group = ProcessGroup::start().unwrap();
        let mut stubborn = member(&group, "trap '' TERM; echo; while :; do sleep 1000; done");
        drop(group);
        assert_eq!(stubborn.wait().unwrap().signal(), Some(9));
    }
}
