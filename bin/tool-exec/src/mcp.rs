//! Tools of Model Context Protocol servers: server processes and connections, sessions, and calls.

mod answer;
mod hub;
mod lines;
mod pool;
#[cfg_attr(not(feature = "mcp"), path = "mcp/session/absent.rs")]
mod session;
mod setup;

pub(crate) use setup::{Setup, Unlocked};

use super::command::confine::sandboxes::ProtectedFile;
use super::task::{Task, Terms};
use answer::{answer, of_text};
use hub::{HubCall, HubClient};
use pool::Pool;
use serde_json::Value;
use session::{McpSession, SessionCall};
use std::rc::Rc;
use tool::{CallFailure, CallStep, McpRun, SandboxKind, Status, ToolAnswer};
use trace::TraceContext;

/// The minimum confinement of server programs, and the files that none of them may write.
#[derive(Debug)]
pub(crate) struct Confines {
    /// The minimum sandbox of each server.
    pub least: SandboxKind,
    /// tool-exec's own files, which no server may write.
    pub protected: Vec<ProtectedFile>,
}

/// What a call reported next: progress or its result.
pub(crate) enum CallOutcome {
    /// The call reported progress.
    Step(CallStep),
    /// The call ended, with its result as JSON, or with the reason for the failure, for the model.
    Done(Result<Value, CallFailure>),
}

/// Calls a tool of a server and returns the answer.
pub(crate) async fn run(task: &Task<'_>, backend: &Backend, tool: &McpRun) -> ToolAnswer {
    let Task { handle, terms, .. } = task;
    let timeout = terms.timeout;
    let failed = |failed: CallFailure| {
        let why = format!("The server {:?}: {}", tool.server, failed.why);
        failed.within(of_text(Status::Error, &why, terms))
    };
    let not_sent = |why: String| failed(CallFailure::not_run(why));
    let unsent = || {
        ToolAnswer::new(
            Status::Cancelled,
            "The call was stopped before it was sent to its server.",
        )
    };
    // The start of the server has a time limit of its own.
    let ready = tokio::select! {
        ready = backend.ready(tool) => ready,
        () = handle.stop.notified() => return unsent(),
    };
    if let Err(why) = ready {
        return not_sent(why);
    }
    let deadline = tokio::time::sleep(timeout);
    tokio::pin!(deadline);
    let late = format!(
        "The server {:?} did not answer within {timeout:?};",
        tool.server
    );
    let taken = tokio::select! {
        biased;
        () = handle.stop.notified() => return unsent(),
        taken = backend.call(tool, task.arguments, task.trace.as_ref()) => taken,
        () = &mut deadline => {
            return ToolAnswer::new(Status::Timeout, late + " the call was not sent to it.");
        }
    };
    let mut call = match taken {
        Ok(call) => call,
        Err(why) => return not_sent(why),
    };
    loop {
        tokio::select! {
            biased;
            () = &mut deadline => {
                call.cancel("the time for the call is over").await;
                let text = late + " it was told to stop.";
                return CallFailure::may_have_run(text).answer(Status::Timeout);
            }
            () = handle.stop.notified() => {
                call.cancel("the call was cancelled").await;
                let text = "The call was stopped before it was done; the server was told.";
                return CallFailure::may_have_run(text).answer(Status::Cancelled);
            }
            outcome = call.next() => match outcome {
                CallOutcome::Step(step) => if let Some(progress) = &task.progress {
                    progress.step(settled(step, terms));
                },
                CallOutcome::Done(result) => {
                    let read = |result| answer(&result, terms).map_err(CallFailure::may_have_run);
                    return result.and_then(read).unwrap_or_else(failed);
                }
            },
        }
    }
}

/// The longest part of a server's progress message that is shown, in bytes.
const LONGEST_STEP: usize = 4096;

/// Whether the message of a step may have been truncated. A character has at most four bytes.
fn may_be_cut(message: &str) -> bool {
    message.len() + 4 > LONGEST_STEP
}

/// Returns the step without a trailing part that may be the start of a secret, if its message may
/// have been truncated.
fn settled(mut step: CallStep, terms: &Terms<'_>) -> CallStep {
    if may_be_cut(&step.message) {
        let message = terms.outputs.settled(step.message.as_bytes());
        step.message = String::from_utf8_lossy(message).into_owned();
    }
    step
}

// Where the servers of a run live: in this process, or in a running hub.

/// The owner of the servers.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// Servers that this process starts.
    Own(Rc<Pool>),
    /// Servers that a hub has started.
    Hub(HubClient),
}

/// A call that was sent to a server.
pub(crate) enum TakenCall {
    /// A call to a server of this process.
    Own(Rc<McpSession>, Box<SessionCall>),
    /// A call to a server of a hub.
    Hub(HubCall),
}

impl Backend {
    /// Starts the server of a tool unless it is running. A hub starts its servers itself.
    ///
    /// # Errors
    /// The reason why the server is not running, for the model.
    pub(crate) async fn ready(&self, tool: &McpRun) -> Result<(), String> {
        match self {
            Backend::Own(pool) => pool.ready(&tool.server).await,
            Backend::Hub(_) => Ok(()),
        }
    }

    /// Sends a call to the server of its tool, which is started first if necessary. `arguments` is
    /// a JSON object; `trace` is the trace context to send along. If the future is dropped before
    /// it completes, nothing was sent.
    ///
    /// # Errors
    /// The reason why nothing was sent, for the model.
    pub(crate) async fn call(
        &self,
        tool: &McpRun,
        arguments: &str,
        trace: Option<&TraceContext>,
    ) -> Result<TakenCall, String> {
        match self {
            Backend::Own(pool) => {
                let session = pool.session(&tool.server, &tool.tool).await?;
                let call = session.call(&tool.tool, arguments, trace).await?;
                Ok(TakenCall::Own(session, Box::new(call)))
            }
            Backend::Hub(hub) => hub.call(tool, arguments, trace).await.map(TakenCall::Hub),
        }
    }

    /// Whether the tools of any server differ from the lock file.
    pub(crate) fn is_blocked(&self) -> bool {
        match self {
            Backend::Own(pool) => pool.is_blocked(),
            Backend::Hub(hub) => hub.is_blocked(),
        }
    }

    /// Ends the servers that this process has started.
    pub(crate) async fn close(&self) {
        if let Backend::Own(pool) = self {
            pool.close().await;
        }
    }
}

impl TakenCall {
    /// Waits for the next report of the call. Cancel-safe.
    pub(crate) async fn next(&mut self) -> CallOutcome {
        match self {
            TakenCall::Own(session, call) => session.next(call).await,
            TakenCall::Hub(call) => call.next().await,
        }
    }

    /// Tells the server that the call is cancelled.
    pub(crate) async fn cancel(&self, why: &str) {
        match self {
            TakenCall::Own(session, call) => session.cancel(call, why).await,
            TakenCall::Hub(_) => {} // the hub cancels the call when its connection closes
        }
    }
}
