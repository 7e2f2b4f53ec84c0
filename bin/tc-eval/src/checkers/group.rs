//! The processes of a command, which end together.
//!
//! The command and its children are a process group, so that a signal of the terminal reaches this
//! process alone. A guard is the first of the group: a shell that waits on a pipe from this
//! process, and kills the group when that pipe closes. So the group ends even where this process is
//! killed, and its number cannot be given to another group before that.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The processes of one command.
#[derive(Debug)]
pub struct Group {
    guard: Child,
    /// The command itself, with its three files.
    pub command: Child,
    has_ended: bool,
}

impl Group {
    /// Starts `command` with `sh -c`, and pipes from and to it.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub fn start(command: &str) -> io::Result<Self> {
        let mut guard = Command::new("sh")
            .args(["-c", "read -r line; kill -9 0"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let group = i32::try_from(guard.id()).unwrap_or_default();
        let command = Command::new("sh")
            .args(["-c", command])
            .process_group(group)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        match command {
            Ok(command) => Ok(Group {
                guard,
                command,
                has_ended: false,
            }),
            Err(error) => {
                let _ = (guard.kill(), guard.wait());
                Err(error)
            }
        }
    }

    /// Whether the command has ended; its children may run on.
    pub fn has_command_ended(&mut self) -> bool {
        matches!(self.command.try_wait(), Ok(Some(_)))
    }

    /// Kills all of them, and returns how the command ended: by itself, if it had done so already.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.has_ended = true;
        if let Some(group) = i32::try_from(self.guard.id()).ok().and_then(Pid::from_raw) {
            // It fails where all have ended, which is what it is for.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let ended = self.command.wait();
        // The last: as long as it is not waited for, its number is the group's.
        let _ = self.guard.wait();
        ended
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.end();
        }
    }
}
