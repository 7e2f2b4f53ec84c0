//! One command while it runs, and its end.

use super::group::Group;
use super::output::{CommandErrors, RequestLog};
use crate::places::Place;
use rustix::process::Signal;
use std::io;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdin, ChildStdout};

/// How long a killed command may take to be gone.
const KILLED: Duration = Duration::from_secs(5);

/// One command while it runs. Dropping it ends the command: SIGTERM to all its processes, and
/// SIGKILL when they have ended or the grace is over. Its place is free after that.
#[derive(Debug)]
pub struct RunningCommand {
    /// Its input, until it is closed.
    pub stdin: Option<ChildStdin>,
    /// Its processes and outputs, until this is dropped.
    pub parts: Option<Parts>,
    grace: Duration,
}

/// What is needed to the end.
#[derive(Debug)]
pub struct Parts {
    /// Its processes.
    pub group: Group,
    /// Its output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub errors: CommandErrors,
    place: Place,
}

impl RunningCommand {
    /// Starts `words` for the request `id`. `place` is kept until nothing of the command is left.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        words: &[String],
        id: &str,
        log: RequestLog,
        place: Place,
        grace: Duration,
    ) -> io::Result<RunningCommand> {
        let (group, files) = Group::start(words, id)?;
        Ok(RunningCommand {
            stdin: Some(files.stdin),
            parts: Some(Parts {
                group,
                stdout: files.stdout,
                errors: CommandErrors::new(files.stderr, log),
                place,
            }),
            grace,
        })
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else {
            return;
        };
        parts.group.signal(Signal::TERM);
        // Without a runtime the parts are dropped here, which kills the command.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end(parts, self.grace));
        }
    }
}

/// Waits until the command has ended and nobody holds its outputs, but not longer than `grace`;
/// then kills what is left.
async fn end(parts: Parts, grace: Duration) {
    let Parts {
        mut group,
        mut stdout,
        mut errors,
        place,
    } = parts;
    let all_ended = async {
        tokio::join!(discard(&mut stdout), errors.read());
        // A command that cannot be waited for has ended.
        let _ = group.ended().await;
    };
    // An error means that the grace is over.
    let _ = tokio::time::timeout(grace, all_ended).await;
    group.signal(Signal::KILL);
    let _ = tokio::time::timeout(KILLED, group.ended()).await;
    drop((group, place));
}

/// Reads to the end.
async fn discard(stdout: &mut ChildStdout) {
    let mut block = [0; 4096];
    while matches!(stdout.read(&mut block).await, Ok(count) if count > 0) {}
}
