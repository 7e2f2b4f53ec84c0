//! Runs calls of tools of servers.

use super::answer::{answer, failure};
use super::backend::Backend;
use super::listener::Step;
use super::session::Outcome;
use crate::call::{Handle, Progress};
use crate::store::Outputs;
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;
use tool::{Answer, CallFailure, Exec, McpRun, Status};

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
