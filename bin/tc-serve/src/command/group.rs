//! The processes of one request, which end together.
//!
//! They are a process group. Its first member is a guard: a shell that waits on a pipe from this
//! process, and kills the group when the pipe closes, so that nothing is left even where this
//! process is killed. As long as the guard is not waited for, no other group can get its number.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// What the guard runs. It outlives SIGTERM, which the group gets first.
const GUARD: &str = "trap '' HUP INT TERM; read -r line; kill -9 0";

/// The processes of one request. Dropping it kills them.
#[derive(Debug)]
pub struct Group {
    guard: Child,
    command: Child,
}

/// The ends of a command's standard files.
#[derive(Debug)]
pub struct CommandFiles {
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
}

impl Group {
    /// Starts `words`: one word is a command line for `sh`, several are a program and its
    /// arguments. The command gets this process's environment, and the variable
    /// `TOOLPIPE_REQUEST_ID`.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub fn start(words: &[String], request_id: &str) -> io::Result<(Group, CommandFiles)> {
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let Some(number) = guard.id().and_then(|id| i32::try_from(id).ok()) else {
            return Err(io::Error::other("the guard has no process id"));
        };
        let (program, arguments): (&str, &[String]) = match words {
            [program, arguments @ ..] if !arguments.is_empty() => (program, arguments),
            _ => ("sh", &[]),
        };
        let mut command = Command::new(program);
        if arguments.is_empty() {
            command.arg("-c").args(words);
        } else {
            command.args(arguments);
        }
        let started = command
            .env("TOOLPIPE_REQUEST_ID", request_id)
            .process_group(number)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        // Dropping the guard closes its pipe, and so ends it.
        let mut command = started?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (
            command.stdin.take(),
            command.stdout.take(),
            command.stderr.take(),
        ) else {
            return Err(io::Error::other("the command has no pipes"));
        };
        Ok((
            Group { guard, command },
            CommandFiles {
                stdin,
                stdout,
                stderr,
            },
        ))
    }

    /// Sends a signal to all of them.
    pub fn signal(&self, signal: Signal) {
        // A group without a number has no guard any more, which is never waited for before the
        // group is dropped.
        if let Some(group) = self
            .guard
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
        {
            // It fails where all have ended, which is what it is for.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Waits until the command itself has ended; its children may run on. May be dropped and called
    /// again.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.command.wait().await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The runtime waits for the processes afterwards.
        self.signal(Signal::KILL);
    }
}
