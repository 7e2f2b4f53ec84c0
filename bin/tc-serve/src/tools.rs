//! Tools that the service runs itself (`--tools`). `tool-exec` runs the calls, as in a pipeline: it
//! reads the events of a turn from standard input, appends them to the session and runs the calls.
//! Its exit status says how the loop continues.

mod options;

use crate::command::{CommandErrors, RequestLog, RunningCommand};
use crate::keys::ClientKey;
use crate::log::Notices;
use crate::pipe::Pipe;
use crate::places::AnswerSlots;
use anyhow::{Context, Result, bail};
use json::ToolList;
use serde_json::Value;
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::{Future, poll_fn};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use trace::TraceContext;

pub(crate) use options::{ToolArgs, ToolsMode};

/// The tools that the service runs.
#[derive(Debug)]
pub(crate) struct ServiceTools {
    /// The command line of `tool-exec`.
    words: Vec<OsString>,
    /// The tools to list in requests.
    pub list: Arc<ToolList>,
    /// What clients see of the service's calls.
    pub mode: ToolsMode,
    /// The maximum number of model turns per request.
    pub steps: u32,
    places: AnswerSlots,
    grace: Duration,
    notices: Notices,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The model must be asked again, with the results of the calls.
    Again,
    /// The response is complete.
    Answered,
    /// Calls wait for approval.
    Pending,
    /// The turn, or `tool-exec`, has failed.
    Failed,
}

impl ServiceTools {
    /// Reads the tools. Returns `None` if there are none. If the tools include servers, this
    /// process restarts itself under `tool-exec --hub`, and the servers end with it.
    ///
    /// # Errors
    /// A one-line error for an invalid tools file or option.
    pub(crate) fn new(
        args: &ToolArgs,
        grace: Duration,
        places: AnswerSlots,
        notices: &Notices,
    ) -> Result<Option<ServiceTools>> {
        if args.tools.is_empty() {
            return Ok(None);
        }
        let mut words = ::args::program::command("tool-exec");
        let mut sources = args.tools.iter();
        let has_servers = sources.any(|source| toolbox::names_servers(source));
        if has_servers && std::env::var_os(HUB).is_none_or(|path| path.is_empty()) {
            return Err(with_servers(&words, args));
        }
        let program = PathBuf::from(&words[0]);
        words.extend(args.words());
        let mut listing = Command::new(&program);
        let listed = listing.args(&words[1..]).arg("--list").output();
        let listed = listed.with_context(|| {
            format!(
                "{}: it cannot be started, and runs the tools; install it beside tc-serve",
                program.display()
            )
        })?;
        if !listed.status.success() {
            let said = String::from_utf8_lossy(&listed.stderr);
            // Output before the error, such as text to paste, keeps its line breaks.
            let (shown, said) = said.trim().rsplit_once('\n').unwrap_or(("", said.trim()));
            stdio::block(shown);
            bail!("{}", said.strip_prefix("tool-exec: ").unwrap_or(said));
        }
        let list = ToolList::read_valid(&String::from_utf8_lossy(&listed.stdout))?;
        Ok(Some(ServiceTools {
            words,
            list: Arc::new(list),
            mode: args.mode,
            steps: args.max_steps,
            places,
            grace,
            notices: notices.clone(),
        }))
    }

    /// Starts `tool-exec` on a session, with the options `answer` that contain a user's answer.
    ///
    /// # Errors
    /// The message for a client.
    async fn start(&self, turn: &ToolTurn<'_>, answer: &[OsString]) -> Result<RunningCommand> {
        let place = self
            .places
            .take(turn.key)
            .await
            .context("all processes are taken, try again")?;
        let mut words = self.words.clone();
        words.extend(["--log".into(), turn.log.into()]);
        for name in turn.leave {
            words.extend(["--leave".into(), name.into()]);
        }
        words.push("--progress".into());
        // Other users can read a command line, but a reason or a result must stay private.
        let answers = (!answer.is_empty()).then(|| {
            let texts = answer
                .iter()
                .map(|word| word.to_string_lossy().into_owned());
            (ANSWERS, Value::from_iter(texts).to_string())
        });
        let notes = RequestLog::new(self.notices.clone(), turn.id);
        RunningCommand::start(
            &words, answers, turn.id, turn.trace, notes, place, self.grace,
        )
        .context("tool-exec cannot be started")
    }

    /// Runs one turn: passes the events that `work` pushes into `pipe` to `tool-exec`, which
    /// appends them to the session file `log`, and waits until its calls have ended. Calls of the
    /// tools named in `leave` are left to the client.
    ///
    /// # Errors
    /// The message for a client, if `tool-exec` could not be started.
    pub(crate) async fn turn(
        &self,
        turn: ToolTurn<'_>,
        pipe: &Pipe,
        work: impl Future<Output = ()>,
    ) -> Result<TurnEnd> {
        let mut running = self.start(&turn, &[]).await?;
        let input = running.stdin.take();
        let feed = async move {
            let mut input = input?;
            let mut work = pin!(work);
            loop {
                let (lines, is_done) = next_lines(work.as_mut(), pipe).await;
                // If `tool-exec` exited early, its exit status gives the reason.
                input.write_all(&lines).await.ok()?;
                if is_done {
                    return feed_retracts(input, turn.retracts).await;
                }
            }
        };
        self.ended(&mut running, feed).await
    }

    /// Applies a user's answer to a pending call, and runs the call if it was approved.
    ///
    /// # Errors
    /// As for [`ServiceTools::turn`].
    pub(crate) async fn decide(&self, turn: ToolTurn<'_>, answer: &[OsString]) -> Result<TurnEnd> {
        let mut running = self.start(&turn, answer).await?;
        let input = running.stdin.take();
        let feed = async { feed_retracts(input?, turn.retracts).await };
        self.ended(&mut running, feed).await
    }

    /// Feeds `tool-exec` its input, and waits until it has exited.
    async fn ended(
        &self,
        running: &mut RunningCommand,
        feed: impl Future<Output = Option<Infallible>>,
    ) -> Result<TurnEnd> {
        let parts = running.parts.as_mut().context("tool-exec has ended")?;
        let stdout = &mut parts.stdout;
        let passed = async {
            let mut block = [0; 16 << 10];
            while matches!(stdout.read(&mut block).await, Ok(count) if count > 0) {}
        };
        let outputs = async { tokio::join!(passed, CommandErrors::read(&mut parts.errors)) };
        tokio::select! {
            _ = outputs => {}
            Some(never) = feed => match never {},
        }
        let status: ExitStatus = parts.command.wait().await?;
        Ok(match status.code() {
            Some(0) => TurnEnd::Again,
            Some(1) => TurnEnd::Answered,
            Some(3) => TurnEnd::Pending,
            _ => TurnEnd::Failed,
        })
    }
}

/// The turn to run, and its session.
#[derive(Debug)]
pub(crate) struct ToolTurn<'t> {
    /// The file of the session.
    pub log: &'t Path,
    /// The id of the response, for messages.
    pub id: &'t str,
    /// The client's key.
    pub key: ClientKey,
    /// The names of the client's tools.
    pub leave: &'t [String],
    /// The lines that cancel calls of the turn.
    pub retracts: mpsc::UnboundedReceiver<Vec<u8>>,
    /// The span of the response, if it is traced.
    pub trace: Option<&'t TraceContext>,
}

/// The line after the events of a turn. From then on `tool-exec` accepts only `retract` lines, and
/// exits when its calls have ended.
const INPUT_END: &[u8] = b"{\"type\":\"input_end\"}\n";

/// Ends the events of a turn, then passes on the lines that cancel its calls. Returns when
/// `tool-exec` has closed its input.
async fn feed_retracts(
    mut input: ChildStdin,
    mut retracts: mpsc::UnboundedReceiver<Vec<u8>>,
) -> Option<Infallible> {
    input.write_all(INPUT_END).await.ok()?;
    loop {
        let line = retracts.recv().await?;
        input.write_all(&line).await.ok()?;
    }
}

/// How many bytes of lines are batched before they are passed on.
const BATCH: usize = 16 << 10;

/// Returns the next lines that `work` pushes into `pipe`, and whether `work` has ended, so that
/// these are the last lines. Available lines are batched, because each piece costs a write, and the
/// source produces the next lines only after other tasks have run.
pub(crate) async fn next_lines(
    mut work: Pin<&mut impl Future<Output = ()>>,
    pipe: &Pipe,
) -> (Vec<u8>, bool) {
    let mut lines = Vec::new();
    loop {
        let before = lines.len();
        let is_done = poll_fn(|cx| {
            let is_done = work.as_mut().poll(cx).is_ready();
            if is_done {
                pipe.finish();
            }
            lines.append(&mut pipe.take());
            if lines.is_empty() && !is_done {
                Poll::Pending
            } else {
                Poll::Ready(is_done)
            }
        })
        .await;
        if is_done || lines.len() == before || lines.len() > BATCH {
            return (lines, is_done);
        }
        tokio::task::yield_now().await;
    }
}

/// The environment variable that gives `tool-exec` the address of the running tool servers.
const HUB: &str = "TOOLPIPE_HUB";

/// The environment variable that gives `tool-exec` a user's answers, as a JSON list of options.
const ANSWERS: &str = "TOOLPIPE_ANSWERS";

/// Restarts this process under `tool-exec --hub`, which starts the tool servers once. Returns the
/// error if that fails.
fn with_servers(program: &[OsString], args: &ToolArgs) -> anyhow::Error {
    let mut hub = Command::new(&program[0]);
    hub.args(&program[1..]).arg("--hub").args(args.sources());
    if args.trust {
        hub.arg("--trust");
    }
    if let Some(sandbox) = &args.sandbox {
        hub.arg("--sandbox").arg(sandbox);
    }
    let error = hub
        .arg("--")
        .args(::args::program::again("tc-serve"))
        .args(std::env::args_os().skip(1))
        .exec();
    anyhow::Error::new(error)
        .context("tool-exec --hub cannot be started, and runs the servers of tools")
}
