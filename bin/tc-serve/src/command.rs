//! A command as the source of events. It is started once per request.
//!
//! `command/running.rs` contains its processes and how they end, and `output.rs` parses their
//! output.

mod output;
mod running;

use crate::args::ServeSettings;
use crate::budget::FULL_MS;
use crate::client_request::ClientRequest;
use crate::log::Notices;
use crate::pipe::Pipe;
use crate::places::AnswerSlots;
use anyhow::{Result, bail};
use output::CommandOutput;
pub(crate) use output::{CommandErrors, RequestLog};
pub(crate) use running::RunningCommand;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The time limit for a response if --timeout is not set.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The command that answers requests, and its limits.
#[derive(Debug)]
pub(crate) struct AnsweringCommand {
    words: Vec<String>,
    places: AnswerSlots,
    grace: Duration,
    timeout: Duration,
    max_output: usize,
    model: Option<String>,
    notices: Notices,
}

/// How the output of a command ended.
enum OutputEnd {
    /// The response needs no more output.
    Answered,
    /// The command wrote more than the limit.
    TooLong,
    /// The command exited; the status is `None` if it is unknown.
    Ended(Option<ExitStatus>),
}

impl AnsweringCommand {
    /// Prepares the command. Returns `None` if no command is configured. `notices` receives what
    /// the command writes to standard error.
    ///
    /// # Errors
    /// A one-line error if the program does not exist.
    pub(crate) fn new(
        settings: &ServeSettings,
        notices: &Notices,
    ) -> Result<Option<AnsweringCommand>> {
        let args = &settings.args;
        let words = &args.command.command;
        if words.is_empty() {
            return Ok(None);
        }
        check(words)?;
        // Files that this process inherited, such as a lock of its caller, must not be inherited by
        // the command.
        close_fds::set_fds_cloexec(3, &[]);
        let processes = usize::try_from(args.command.processes)?;
        Ok(Some(AnsweringCommand {
            words: words.clone(),
            places: AnswerSlots::new(processes, args.limits.queue),
            grace: args.service.grace,
            timeout: args.upstream.connection.timeout.unwrap_or(TIMEOUT),
            max_output: args.command.max_output,
            model: args.upstream.provider.model.clone(),
            notices: notices.clone(),
        }))
    }

    /// See [`crate::source::Source::run`].
    pub(crate) async fn run(&self, asked: ClientRequest, pipe: &Pipe) {
        let full = Some(FULL_MS);
        let Some(place) = self.places.take(asked.key).await else {
            let message = "all commands are taken, try again";
            return pipe.fail("too_many_requests", message, 429, full);
        };
        let mut log = RequestLog::new(self.notices.clone(), &asked.id);
        let words: Vec<OsString> = self.words.iter().map(OsString::from).collect();
        let started = RunningCommand::start(
            &words,
            None,
            &asked.id,
            asked.trace.as_ref(),
            log.clone(),
            place,
            self.grace,
        );
        let mut running = match started {
            Ok(running) => running,
            Err(error) => {
                let message = "the command cannot be started";
                log.line(&format!("{message}: {error}"));
                return pipe.fail("command_not_started", message, 503, full);
            }
        };
        let stdin = running.stdin.take();
        let Some(parts) = &mut running.parts else {
            return;
        };
        let mut output = CommandOutput::new(log.clone());
        // The request in the form of event lines.
        let lines = asked.request.lines(asked.api, self.model.as_deref());
        let ClientRequest {
            share: _share,
            request,
            ..
        } = asked;
        drop(request); // it may be large, and the answer may take long
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // The write fails if the command closes its input or exits, which is not an error
                // here.
                let _ = stdin.write_all(lines.as_bytes()).await;
            }
        };
        let beside = async {
            tokio::join!(feed, parts.errors.read());
            std::future::pending::<()>().await;
        };
        let end = tokio::select! {
            end = self.read(&mut parts.stdout, &mut parts.command, &mut output, pipe) => end,
            () = beside => return,
            () = sleep(self.timeout) => {
                log.line("the command took longer than --timeout");
                return pipe.fail("timeout", "the command took too long", 504, None);
            }
        };
        match end {
            OutputEnd::Answered => {}
            OutputEnd::TooLong => {
                log.line("the command wrote more than --max-output");
                pipe.fail("output_too_long", "the command wrote too much", 502, None);
            }
            OutputEnd::Ended(status) => judge(status, &output, pipe, &mut log),
        }
    }

    /// Reads the command's output until the command has exited or no more output is needed.
    async fn read(
        &self,
        stdout: &mut tokio::process::ChildStdout,
        command: &mut tokio::process::Child,
        output: &mut CommandOutput,
        pipe: &Pipe,
    ) -> OutputEnd {
        let mut block = vec![0; 16 << 10];
        let mut status = None;
        let mut left = self.max_output;
        let mut limit = Instant::now() + self.timeout;
        loop {
            pipe.room().await;
            let count = tokio::select! {
                biased;
                count = stdout.read(&mut block) => count.unwrap_or(0),
                ended = command.wait(), if status.is_none() => {
                    // A background process may keep the output open after the command has exited.
                    (status, limit) = (Some(ended.ok()), Instant::now() + self.grace);
                    continue;
                }
                () = sleep_until(limit), if status.is_some() => 0,
            };
            if count == 0 {
                break;
            }
            if count > left {
                return OutputEnd::TooLong;
            }
            left -= count;
            output.push(&block[..count], pipe);
            if pipe.is_done() {
                return OutputEnd::Answered;
            }
        }
        output.finish(pipe);
        if pipe.is_done() {
            return OutputEnd::Answered;
        }
        if status.is_none() {
            // The command has closed its output. If it keeps running it is terminated, and the
            // output so far is used.
            status = timeout(self.grace, command.wait())
                .await
                .ok()
                .map(Result::ok);
        }
        OutputEnd::Ended(status.flatten())
    }

    /// Returns the model name that clients may request. Clients need a name to select, even if the
    /// command ignores it.
    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or("command")
    }

    /// Waits until no process of any command is left.
    pub(crate) async fn ended(&self) {
        self.places.all_free().await;
    }
}

/// Checks that the program in `words` exists. A shell command line is not checked.
///
/// # Errors
/// A one-line error.
fn check(words: &[String]) -> Result<()> {
    let [program, _, ..] = words else {
        return Ok(());
    };
    let exists = if program.contains('/') {
        Path::new(program).is_file()
    } else {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
    };
    if !exists {
        bail!(
            "{program}: no such command, give its path, or a whole command line as one word in quotes"
        );
    }
    Ok(())
}

/// Ends the response as failed if the command's exit status indicates a failure.
fn judge(status: Option<ExitStatus>, output: &CommandOutput, pipe: &Pipe, log: &mut RequestLog) {
    let code = status.map(|status| status.code());
    // tool-exec returns 1 when the turn is over, and 3 when calls need approval. Commands that run
    // tool-exec may return the same.
    let is_good = match code {
        None | Some(Some(0 | 3)) => true,
        Some(Some(1)) => pipe.is_whole(),
        _ => false,
    };
    if is_good && output.has_stream() {
        return;
    }
    let message = match (code.flatten(), status.and_then(|status| status.signal())) {
        _ if is_good => "the command ended without an answer".to_owned(),
        (Some(code), _) => format!("the command ended with status {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command ended in an unknown way".to_owned(),
    };
    log.line(&message);
    // An error that the command reported itself is more specific.
    if pipe.failure().is_none() {
        pipe.fail(
            if is_good {
                "no_answer"
            } else {
                "command_failed"
            },
            &message,
            502,
            None,
        );
    }
}
