//! Tools of servers that speak the Model Context Protocol: the servers' processes and connections,
//! their sessions, and the calls.

mod answer;
mod http;
mod hub;
mod lock_file;
mod pool;
mod program;
mod session;
mod setup;
mod stdio;

pub use lock_file::LockFile;
pub use program::Confines;
pub use setup::{Setup, Unlocked};

use super::call::{Handle, Progress};
use super::store::Outputs;
use answer::{answer, failure};
use hub::{HubCall, HubClient};
use pool::Pool;
use serde_json::Value;
use session::{OpenCall, Outcome, Session, Step};
use std::rc::Rc;
use std::time::Duration;
use tool::{Answer, CallFailure, Exec, McpRun, Status};

// Runs calls of tools of servers.

/// Runs calls of tools of servers.
#[derive(Debug)]
pub struct McpRunner {
    /// Where the servers are.
    pub backend: Backend,
    /// How long a call may take, unless its server has a limit of its own.
    timeout: Duration,
    /// Makes results readable.
    outputs: Rc<Outputs>,
}

impl McpRunner {
    /// Runs calls on the servers of `backend`, each at most for `timeout` unless its server has a
    /// limit of its own. `outputs` makes results readable.
    pub fn new(backend: Backend, timeout: Duration, outputs: Rc<Outputs>) -> Self {
        McpRunner {
            backend,
            timeout,
            outputs,
        }
    }

    /// Calls a tool and returns the answer; `handle` ends the call early. `arguments` are those of
    /// the call, as JSON.
    pub async fn run(
        &self,
        exec: &Exec,
        tool: &McpRun,
        arguments: &str,
        handle: &Handle,
        progress: Option<Progress>,
    ) -> Answer {
        let timeout = exec.timeout.unwrap_or(self.timeout);
        let failed = |failed: CallFailure| {
            let failed = failed.with(|why| format!("The server {:?}: {why}", tool.server));
            failed.within(failure(failed.why(), &self.outputs, exec.max_result))
        };
        let not_sent = |why: String| failed(CallFailure::NotRun(why));
        let stopped = || {
            let text = "The call was stopped before it was done; the server was told.";
            CallFailure::MayHaveRun(text.to_owned()).answer(Status::Cancelled)
        };
        let late = || {
            let text = format!(
                "The server {:?} did not answer within {timeout:?}; it was told to stop.",
                tool.server
            );
            CallFailure::MayHaveRun(text).answer(Status::Timeout)
        };
        let unsent = || {
            Answer::new(
                Status::Cancelled,
                "The call was stopped before it was sent to its server.",
            )
        };
        // The server's start counts by its own limit.
        let ready = tokio::select! {
            ready = self.backend.ready(tool) => ready,
            () = handle.stop.notified() => return unsent(),
        };
        if let Err(why) = ready {
            return not_sent(why);
        }
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let taken = tokio::select! {
            biased;
            () = handle.stop.notified() => return unsent(),
            taken = self.backend.call(tool, arguments) => taken,
            () = &mut deadline => {
                let text = format!("The server {:?} did not answer within {timeout:?}; the call was not sent to it.", tool.server);
                return Answer::new(Status::Timeout, text);
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
                    return late();
                }
                () = handle.stop.notified() => {
                    call.cancel("the call was cancelled").await;
                    return stopped();
                }
                outcome = call.next() => match outcome {
                    Outcome::Step(step) => if let Some(progress) = &progress {
                        progress.step(step.progress, self.message(step));
                    },
                    Outcome::Done(result) => {
                        let read = |result: Value| {
                            let read = answer(&result, &self.outputs, exec.max_result);
                            read.map_err(CallFailure::MayHaveRun)
                        };
                        return result.and_then(read).unwrap_or_else(failed);
                    }
                },
            }
        }
    }

    /// What a call does now, without what may be the beginning of a secret where it was cut.
    fn message(&self, step: Step) -> String {
        if !step.may_be_cut() {
            return step.message;
        }
        String::from_utf8_lossy(self.outputs.settled(step.message.as_bytes())).into_owned()
    }
}

// Where the servers of a run are: started by it, or by a hub that runs already.

/// Where the servers are.
#[derive(Clone, Debug)]
pub enum Backend {
    /// This process starts them.
    Own(Rc<Pool>),
    /// A hub has started them.
    Hub(HubClient),
}

/// A call that a server has taken.
pub enum TakenCall {
    /// By a server of this process.
    Own(Rc<Session>, Box<OpenCall>),
    /// By a server of a hub.
    Hub(HubCall),
}

impl Backend {
    /// Starts the server of a tool, unless it runs; a hub does that by itself.
    ///
    /// # Errors
    /// Why it does not run, for the model.
    pub async fn ready(&self, tool: &McpRun) -> Result<(), String> {
        match self {
            Backend::Own(pool) => pool.ready(&tool.server).await,
            Backend::Hub(_) => Ok(()),
        }
    }

    /// Hands a call with arguments, a JSON object, to its server; starts the server first where
    /// that is needed. Whoever drops the future before it is done has sent nothing.
    ///
    /// # Errors
    /// Why nothing of it was sent, for the model.
    pub async fn call(&self, tool: &McpRun, arguments: &str) -> Result<TakenCall, String> {
        match self {
            Backend::Own(pool) => {
                let session = pool.session(&tool.server, &tool.tool).await?;
                let call = session.call(&tool.tool, arguments).await?;
                Ok(TakenCall::Own(session, Box::new(call)))
            }
            Backend::Hub(hub) => hub.call(tool, arguments).await.map(TakenCall::Hub),
        }
    }

    /// Whether a server was found whose tools are not as they were locked.
    pub fn is_blocked(&self) -> bool {
        match self {
            Backend::Own(pool) => pool.is_blocked(),
            Backend::Hub(hub) => hub.is_blocked(),
        }
    }

    /// Ends the servers that this process has started.
    pub async fn close(&self) {
        if let Backend::Own(pool) = self {
            pool.close().await;
        }
    }
}

impl TakenCall {
    /// Waits for the next news of the call. May be dropped while it waits, and called again.
    pub async fn next(&mut self) -> Outcome {
        match self {
            TakenCall::Own(session, call) => session.next(call).await,
            TakenCall::Hub(call) => call.next().await,
        }
    }

    /// Tells the server that nobody waits for the call any more.
    pub async fn cancel(&self, why: &str) {
        match self {
            TakenCall::Own(session, call) => session.cancel(call, why).await,
            TakenCall::Hub(call) => call.cancel(why).await,
        }
    }
}
