//! Tools that send a request: how one call is sent, and what its answer is.

mod sender;

use super::call::{Handle, Progress, ProgressMark};
use super::store::{Outputs, Readable};
use client::{Body, Error, ErrorKind, Head, PieceContent, TimeLimits};
use redact::Redactor;
use sender::{SendError, Sender};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;
use tool::{Answer, CallFailure, Exec, HttpRequest, HttpRun, RequestedCall, Status};

// One call as a request: sent, answered, and ended when its time or its room is used up.

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
    /// A runner with these limits; see [`super::call::Runners::new`].
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

// What came of a body, up to a limit.

/// The body of an answer, as much of it as came and is kept.
#[derive(Debug, Default)]
pub struct Received {
    /// The bytes that are kept, decompressed.
    pub bytes: Vec<u8>,
    /// How many came; reading ends soon after the limit.
    pub seen: u64,
    /// Why the rest did not come.
    pub lost: Option<Error>,
}

impl Received {
    /// Reads a body to its end, or until it is longer than `max` bytes. The rest of one that is
    /// longer is not read. What comes is reported to `progress` without secrets.
    pub async fn read(
        mut body: Body,
        max: usize,
        progress: Option<&Progress>,
        redactor: &Redactor,
    ) -> Received {
        let (mut received, mut shown) = (Received::default(), ProgressMark::default());
        while received.seen <= max as u64 {
            match body.next().await.what {
                PieceContent::Bytes(piece) => {
                    received.seen += piece.len() as u64;
                    let room = max - received.bytes.len();
                    received
                        .bytes
                        .extend_from_slice(&piece[..piece.len().min(room)]);
                    received.report(&mut shown, true, progress, redactor);
                }
                PieceContent::End => break,
                PieceContent::Lost(error) => {
                    received.lost = Some(error);
                    break;
                }
            }
        }
        let is_open = !received.is_whole();
        received.report(&mut shown, is_open, progress, redactor);
        received
    }

    fn report(
        &self,
        shown: &mut ProgressMark,
        is_open: bool,
        progress: Option<&Progress>,
        redactor: &Redactor,
    ) {
        if let Some(progress) = progress
            && let Some(text) = shown.more(&self.bytes, is_open, redactor)
        {
            progress.text(&text);
        }
    }

    /// Whether all of the body came, and is kept.
    pub fn is_whole(&self) -> bool {
        !self.was_cut() && self.lost.is_none()
    }

    /// The bytes without a character at their end that is not whole because the rest did not come.
    pub fn whole(&self) -> &[u8] {
        match std::str::from_utf8(&self.bytes) {
            Err(e) if e.error_len().is_none() && !self.is_whole() => &self.bytes[..e.valid_up_to()],
            _ => &self.bytes,
        }
    }

    /// Whether more came than is kept.
    pub fn was_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }
}

// The answer to a call whose request has ended.

/// How much of the body of an error the model gets to read, in bytes.
pub const TAIL: usize = 8 * 1024;

/// How much of a header of the answer a sentence repeats, in bytes.
const LONGEST: usize = 500;

/// The answer where none came, under this time-out.
pub fn no_answer(error: &SendError, timeout: Duration) -> Answer {
    let (status, failure) = match error {
        SendError::Variable(error) => {
            let text = format!("The request was not sent: {error}. Go on without this tool.");
            (Status::Error, CallFailure::NotRun(text))
        }
        SendError::Redirect(error) => (
            Status::Error,
            CallFailure::MayHaveRun(format!("The request was answered, but {error}.")),
        ),
        SendError::Network { error, is_sent } => {
            let remedy = match error.kind {
                ErrorKind::Forbidden => {
                    " (exec.http.allow in the tools file would allow an address, exec.http.insecure a secret)"
                }
                _ => "",
            };
            match (error.kind, is_sent) {
                (ErrorKind::Deadline, _) => {
                    let text = format!("An answer did not come within {timeout:?}.");
                    (Status::Timeout, CallFailure::MayHaveRun(text))
                }
                (_, true) => (
                    Status::Error,
                    CallFailure::MayHaveRun(format!("No answer came: {error}{remedy}.")),
                ),
                (_, false) => (
                    Status::Error,
                    CallFailure::NotRun(format!("The request was not sent: {error}{remedy}.")),
                ),
            }
        }
    };
    failure.answer(status)
}

/// How much of the body of an answer with this head is read, in bytes, where a success may have
/// `max`.
pub fn limit(head: &Head, max: usize) -> usize {
    if is_success(head) { max } else { max.min(TAIL) }
}

/// The answer from what came, under limits of time, of the body, and of what the model reads, both
/// in bytes; `None` is the default of `outputs`.
pub fn answer(
    head: &Head,
    received: &Received,
    (timeout, max, max_result): (Duration, usize, Option<usize>),
    outputs: &Outputs,
) -> Answer {
    let seen = received.seen;
    let Readable {
        text: body,
        truncated,
        replaced,
        binary,
        file,
    } = {
        let whole = received.whole();
        outputs.readable(
            if received.is_whole() {
                whole
            } else {
                outputs.settled(whole)
            },
            max_result,
        )
    };
    let is_compressed = head
        .header("content-encoding")
        .is_some_and(|name| !name.eq_ignore_ascii_case("identity"));
    let error = match &received.lost {
        Some(error) if error.kind == ErrorKind::Deadline => Some((
            Status::Timeout,
            format!("The answer did not end within {timeout:?}: {seen} bytes came."),
        )),
        Some(error) => Some((
            Status::Error,
            format!("The answer was cut after {seen} bytes: {error}."),
        )),
        None if !is_success(head) => Some((Status::Error, refused(head, outputs))),
        None if received.was_cut() => Some((
            Status::Error,
            format!("The answer is longer than {max} bytes, the rest was not read."),
        )),
        None if is_compressed => Some((
            Status::Error,
            "The answer is compressed in a way that tool-exec cannot read.".to_owned(),
        )),
        None => None,
    };
    // A server that accepts a request (2xx) or finds a mistake in it (4xx) has said what it did.
    // Behind every other answer the work may be done or not.
    let is_answered = matches!(head.status, 200..300 | 400..500) && received.lost.is_none();
    let told = |(status, text)| {
        let failure = if is_answered {
            CallFailure::Answered(text)
        } else {
            CallFailure::MayHaveRun(text)
        };
        (status, failure.answer(status).output)
    };
    let (status, output) = match error.map(told) {
        None => (Status::Success, body),
        Some((status, text)) if body.trim().is_empty() => (status, text),
        Some((status, text)) => {
            let cut = if received.was_cut() {
                "\n[the body was cut]"
            } else {
                ""
            };
            (status, format!("{text}\nbody:\n{}{cut}", body.trim_end()))
        }
    };
    Answer {
        output_bytes: seen,
        truncated: truncated || received.was_cut(),
        binary,
        output_file: file,
        replaced,
        ..Answer::new(status, output)
    }
}

fn is_success(head: &Head) -> bool {
    (200..300).contains(&head.status)
}

/// A sentence about an answer that is not a success.
fn refused(head: &Head, outputs: &Outputs) -> String {
    let status = head.status;
    match (client::redirect(head), head.header("retry-after")) {
        (Some(place), _) => {
            let place = outputs.redactor().url(place);
            let place = event::cut(&place, LONGEST);
            format!("The server answered {status}: it redirects to {place}, which is not followed.")
        }
        (None, Some(wait)) => format!(
            "The server answered {status} (Retry-After: {}).",
            event::cut(wait, LONGEST)
        ),
        (None, None) => format!("The server answered {status}."),
    }
}
