//! One command while it runs, and its end.

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

/// How long a killed command may take to be gone.
const KILLED: Duration = Duration::from_secs(5);

/// One command while it runs. Dropping it ends the command: SIGTERM to all its processes, and
/// SIGKILL when they have ended or the grace is over. Its place is free after that.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    /// Its input, until it is closed.
    pub stdin: Option<ChildStdin>,
    /// Its processes and outputs, until this is dropped.
    pub parts: Option<Parts>,
    grace: Duration,
}

/// What is needed to the end.
#[derive(Debug)]
pub(crate) struct Parts {
    group: ProcessGroup,
    /// The command itself.
    pub command: Child,
    /// Its output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub errors: CommandErrors,
    place: AnswerSlot,
}

impl RunningCommand {
    /// Starts `words` for the request `id`: one word is a command line for `sh`, several are a
    /// program and its arguments. The command gets this process's environment, the variable `more`,
    /// `TOOLPIPE_REQUEST_ID`, and `TRACEPARENT` if its answer is traced. `place` is kept until the
    /// last process of the command has ended.
    ///
    /// # Errors
    /// When a process cannot be started.
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
        // The variables of this process name another span.
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
        mut command,
        mut stdout,
        mut errors,
        place,
    } = parts;
    let all_ended = async {
        tokio::join!(discard(&mut stdout), errors.read());
        // A command that cannot be waited for has ended.
        let _ = command.wait().await;
    };
    // An error means that the grace is over.
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
