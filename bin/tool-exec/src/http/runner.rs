//! One call as a request: sent, answered, and ended when its time or its room is used up.

use super::answer::{answer, limit, no_answer};
use super::received::Received;
use super::sender::Sender;
use crate::call::{Handle, Progress};
use crate::store::Outputs;
use client::TimeLimits;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;
use tool::{Answer, CallFailure, Exec, HttpRequest, HttpRun, RequestedCall, Status};

/// Sends the requests of one tools file.
#[derive(Debug)]
pub struct HttpRunner {
    sender: Sender,
    /// How long a call may take, unless its tool has a limit of its own.
    timeout: Duration,
    /// How long the body of an answer may be in bytes, likewise.
    max_output: usize,
    /// Makes bodies readable.
    outputs: Rc<Outputs>,
}

impl HttpRunner {
    /// A runner with these limits; see [`crate::call::Runners::new`].
    pub fn new(timeout: Duration, max_output: usize, outputs: Rc<Outputs>) -> Self {
        HttpRunner {
            sender: Sender::default(),
            timeout,
            max_output,
            outputs,
        }
    }

    /// Sends the request of a call, reads the answer and returns it; `handle` ends it early: then
    /// the connection is closed. With `progress` the body is reported as it comes.
    pub async fn run(
        &self,
        exec: &Exec,
        http: &HttpRun,
        request: &HttpRequest,
        call: &RequestedCall,
        handle: &Handle,
        progress: Option<Progress>,
    ) -> Answer {
        let id = call.idempotency_key();
        tokio::select! {
            biased;
            () = handle.stop.notified() => {
                let text = "The request was stopped before its answer was read.";
                CallFailure::MayHaveRun(text.to_owned()).answer(Status::Cancelled)
            }
            answer = self.exchange(exec, http, request, &id, progress) => answer,
        }
    }

    async fn exchange(
        &self,
        exec: &Exec,
        http: &HttpRun,
        request: &HttpRequest,
        id: &str,
        progress: Option<Progress>,
    ) -> Answer {
        let timeout = exec.timeout.unwrap_or(self.timeout);
        let max = exec.max_output.unwrap_or(self.max_output);
        let limits = TimeLimits {
            idle: None,
            deadline: Instant::now().checked_add(timeout),
        };
        match self.sender.send(http, request, id, limits).await {
            Ok(response) => {
                let received = Received::read(
                    response.body,
                    limit(&response.head, max),
                    progress.as_ref(),
                    self.outputs.redactor(),
                )
                .await;
                answer(
                    &response.head,
                    &received,
                    (timeout, max, exec.max_result),
                    &self.outputs,
                )
            }
            Err(error) => no_answer(&error, timeout),
        }
    }
}
