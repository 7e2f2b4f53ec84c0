//! Tools of servers that speak the Model Context Protocol: the servers' processes and connections,
//! their sessions, and the calls.

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

/// What confines the programs at the least, and the files that none of them may write.
#[derive(Debug)]
pub(crate) struct Confines {
    /// The least that confines each.
    pub least: SandboxKind,
    /// The files of this program.
    pub protected: Vec<ProtectedFile>,
}

/// What comes of a call.
pub(crate) enum CallOutcome {
    /// It goes on.
    Step(CallStep),
    /// Its result as JSON, or why it failed, for the model.
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
    // The server's start counts by its own limit.
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

/// How much of what a server says about a step is shown, in bytes.
const LONGEST_STEP: usize = 4096;

/// Whether the message of a step may be the beginning of a longer one. A character has at most four
/// bytes.
fn may_be_cut(message: &str) -> bool {
    message.len() + 4 > LONGEST_STEP
}

/// A step without what may be the beginning of a secret where its message was cut.
fn settled(mut step: CallStep, terms: &Terms<'_>) -> CallStep {
    if may_be_cut(&step.message) {
        let message = terms.outputs.settled(step.message.as_bytes());
        step.message = String::from_utf8_lossy(message).into_owned();
    }
    step
}

// Where the servers of a run are: started by it, or by a hub that runs already.

/// Where the servers are.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// This process starts them.
    Own(Rc<Pool>),
    /// A hub has started them.
    Hub(HubClient),
}

/// A call that a server has taken.
pub(crate) enum TakenCall {
    /// By a server of this process.
    Own(Rc<McpSession>, Box<SessionCall>),
    /// By a server of a hub.
    Hub(HubCall),
}

impl Backend {
    /// Starts the server of a tool, unless it runs; a hub does that by itself.
    ///
    /// # Errors
    /// Why it does not run, for the model.
    pub(crate) async fn ready(&self, tool: &McpRun) -> Result<(), String> {
        match self {
            Backend::Own(pool) => pool.ready(&tool.server).await,
            Backend::Hub(_) => Ok(()),
        }
    }

    /// Sends a call with arguments, a JSON object, and its trace context to its server, which is
    /// started first if necessary. If the future is dropped before it is done, nothing was sent.
    ///
    /// # Errors
    /// Why nothing of it was sent, for the model.
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

    /// Whether a server was found whose tools are not as they were locked.
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
    /// Waits for the next news of the call. May be dropped while it waits, and called again.
    pub(crate) async fn next(&mut self) -> CallOutcome {
        match self {
            TakenCall::Own(session, call) => session.next(call).await,
            TakenCall::Hub(call) => call.next().await,
        }
    }

    /// Tells the server that nobody waits for the call any more.
    pub(crate) async fn cancel(&self, why: &str) {
        match self {
            TakenCall::Own(session, call) => session.cancel(call, why).await,
            TakenCall::Hub(_) => {} // the hub cancels it when its connection is closed
        }
    }
}
