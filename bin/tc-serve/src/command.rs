//! A command as the source of events: it is started for each request.
//!
//! `command/running.rs` is its processes and how they end, and `output.rs` what they write.

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

/// The longest time for an answer without --timeout.
const TIMEOUT: Duration = Duration::from_secs(600);

/// How a command answers requests.
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
    /// The answer needs nothing more.
    Answered,
    /// The command wrote more than it may.
    TooLong,
    /// The command ended, with this status where it is known.
    Ended(Option<ExitStatus>),
}

impl AnsweringCommand {
    /// Prepares the command; `None` without one. `notices` gets what a command writes to its
    /// standard error.
    ///
    /// # Errors
    /// One line for a program that does not exist.
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
        // What this process was started with, such as a lock of the caller's, is not the command's.
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
        // The request, and the log.
        let lines = asked.request.lines(asked.api, self.model.as_deref());
        let ClientRequest {
            share: _share,
            request,
            ..
        } = asked;
        drop(request); // it may be large, and the answer may take long
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // It fails where the command closes its input, or ends.
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

    /// Reads the output of a command until it has ended, or nothing more of it is needed.
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
                    // A process in the background may hold the output open.
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
            // It has closed its output. One that runs on is ended, and its output counts as it is.
            status = timeout(self.grace, command.wait())
                .await
                .ok()
                .map(Result::ok);
        }
        OutputEnd::Ended(status.flatten())
    }

    /// The name of the model that may be asked for. A client needs one to choose, also where the
    /// command knows better.
    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or("command")
    }

    /// Waits until nothing of any command is left.
    pub(crate) async fn ended(&self) {
        self.places.all_free().await;
    }
}

/// Checks that the program of `words` exists. A command line for `sh` is not looked into.
///
/// # Errors
/// One line.
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

/// Ends the answer as failed where the status of its command means that.
fn judge(status: Option<ExitStatus>, output: &CommandOutput, pipe: &Pipe, log: &mut RequestLog) {
    let code = status.map(|status| status.code());
    // 1 is what tool-exec returns when the turn is over, and 3 when calls wait for a person: these
    // are handed on.
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
    // An error that the command reported itself says more.
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
