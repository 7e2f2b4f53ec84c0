//! A running command, and its termination.

use super::output::{CommandErrors, RequestLog};
use crate::places::AnswerSlot;
use group::ProcessGroup;
use rustix::process::Signal;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use trace::TraceContext;

/// How long to wait for a killed command to exit.
const KILLED: Duration = Duration::from_secs(5);

/// A running command. Dropping it terminates the command: SIGTERM to all its processes, then
/// SIGKILL once they have exited or the grace period is over. The command's slot is freed after
/// that.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    /// The command's input; `None` once it is closed.
    pub stdin: Option<ChildStdin>,
    /// The processes and outputs; `None` only while this value is dropped.
    pub parts: Option<Parts>,
    grace: Duration,
}

/// The parts that are needed until the command has exited.
#[derive(Debug)]
pub(crate) struct Parts {
    group: ProcessGroup,
    /// The command's own process.
    pub command: Child,
    /// The command's output.
    pub stdout: ChildStdout,
    /// The command's standard error.
    pub errors: CommandErrors,
    place: AnswerSlot,
}

impl RunningCommand {
    /// Starts `words` for the request `id`: one word is a command line for `sh`, several are a
    /// program and its arguments. The command gets this process's environment, the variable `more`,
    /// `TOOLPIPE_REQUEST_ID`, and `TRACEPARENT` if its response is traced. `place` is held until
    /// the last process of the command has exited.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub(crate) fn start(
        words: &[OsString],
        more: Option<(&str, String)>,
        id: &str,
        trace: Option<&TraceContext>,
        log: RequestLog,
        place: AnswerSlot,
        grace: Duration,
    ) -> io::Result<RunningCommand> {
        let group = ProcessGroup::start()?;
        let mut line = match words {
            [program, arguments @ ..] if !arguments.is_empty() => {
                let mut line = Command::new(program);
                line.args(arguments);
                line
            }
            _ => {
                let mut line = Command::new("sh");
                line.arg("-c").args(words);
                line
            }
        };
        // This process's trace variables name a different span.
        for name in trace::VARIABLES {
            line.env_remove(name);
        }
        line.envs(more);
        line.envs(trace.into_iter().flat_map(TraceContext::variables));
        let mut command = line
            .env("TOOLPIPE_REQUEST_ID", id)
            .process_group(group.number())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (
            command.stdin.take(),
            command.stdout.take(),
            command.stderr.take(),
        ) else {
            return Err(io::Error::other("the command has no pipes"));
        };
        let parts = Parts {
            group,
            command,
            stdout,
            errors: CommandErrors::new(stderr, log),
            place,
        };
        Ok(RunningCommand {
            stdin: Some(stdin),
            parts: Some(parts),
            grace,
        })
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else {
            return;
        };
        parts.group.signal(Signal::TERM);
        // Without a runtime, the parts are dropped here, which kills the command.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end(parts, self.grace));
        }
    }
}

/// Waits up to `grace` until the command has exited and its outputs are closed, then kills what is
/// left.
async fn end(parts: Parts, grace: Duration) {
    let Parts {
        mut group,
        mut command,
        mut stdout,
        mut errors,
        place,
    } = parts;
    let all_ended = async {
        tokio::join!(discard(&mut stdout), errors.read());
        // A command that cannot be waited for has already exited.
        let _ = command.wait().await;
    };
    // A timeout means that the grace period is over.
    let _ = tokio::time::timeout(grace, all_ended).await;
    group.signal(Signal::KILL);
    let _ = tokio::time::timeout(KILLED, command.wait()).await;
    drop((group, place));
}

/// Reads to the end.
async fn discard(stdout: &mut ChildStdout) {
    let mut block = [0; 4096];
    while matches!(stdout.read(&mut block).await, Ok(count) if count > 0) {}
}
