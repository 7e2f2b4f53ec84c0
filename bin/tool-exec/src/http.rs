//! Tools that send an HTTP request: sending one call and turning the response into its answer.

mod sender;

pub(crate) use sender::{Sender, guarded};

use super::progress::ProgressMark;
use super::store::Outputs;
use super::task::{Task, Terms};
use anyhow::Context;
use client::{Body, Error, ErrorKind, Head, PieceContent, TimeLimits};
use sender::SendError;
use std::time::Duration;
use tokio::time::Instant;
use tool::{CallFailure, HttpRequest, HttpRun, MayHaveRun, Status, ToolAnswer};

/// Returns the document at a URL given with `--tools`.
///
/// # Errors
/// If the document cannot be fetched.
pub(crate) fn document(url: &str) -> anyhow::Result<String> {
    let found = super::stream::block_on(async { Ok(client::document(url).await?) })?;
    found.context(NO_DOCUMENT)
}

const NO_DOCUMENT: &str =
    "the server has no document there, check the address (redirects are not followed)";

/// Sends the request of a call, reads the response and returns the answer. Ending the call early
/// closes its connection.
pub(crate) async fn run(
    task: &Task<'_>,
    sender: &Sender,
    http: &HttpRun,
    request: &HttpRequest,
) -> ToolAnswer {
    let id = task.call.idempotency_key();
    let exchange = async {
        let timeout = task.terms.timeout;
        let limits = TimeLimits {
            idle: None,
            deadline: Instant::now().checked_add(timeout),
        };
        match sender
            .send(http, request, &id, task.trace.as_ref(), limits)
            .await
        {
            Ok(response) => {
                let max = limit(&response.head, task.terms.max_output);
                let received = Received::read(response.body, max, task).await;
                answer(&response.head, &received, &task.terms)
            }
            Err(error) => no_answer(&error, timeout),
        }
    };
    tokio::select! {
        biased;
        () = task.handle.stop.notified() => {
            let text = "The request was stopped before its answer was read.";
            CallFailure::may_have_run(text).answer(Status::Cancelled)
        }
        answer = exchange => answer,
    }
}

/// A response body, as far as it was received and kept.
#[derive(Debug, Default)]
struct Received {
    /// The bytes kept, decompressed.
    bytes: Vec<u8>,
    /// The number of bytes received. Reading stops soon after the limit.
    seen: u64,
    /// The error that ended the body early, or `None`.
    lost: Option<Error>,
}

impl Received {
    /// Reads a body to its end, or until it is longer than `max` bytes; the rest of a longer body
    /// is not read. The bytes are reported as progress, with secrets redacted.
    async fn read(mut body: Body, max: usize, task: &Task<'_>) -> Received {
        let mut received = Received::default();
        let mut shown = ProgressMark::default();
        while received.seen <= max as u64 {
            match body.next().await.what {
                PieceContent::Bytes(piece) => {
                    received.seen += piece.len() as u64;
                    let room = max - received.bytes.len();
                    received
                        .bytes
                        .extend_from_slice(&piece[..piece.len().min(room)]);
                    task.show(&mut shown, &received.bytes, true);
                }
                PieceContent::End => break,
                PieceContent::Lost(error) => {
                    received.lost = Some(error);
                    break;
                }
            }
        }
        task.show(&mut shown, &received.bytes, !received.is_whole());
        received
    }

    /// Whether the whole body was received and kept.
    fn is_whole(&self) -> bool {
        !self.was_cut() && self.lost.is_none()
    }

    /// Returns the bytes without an incomplete character at the end of a truncated body.
    fn whole(&self) -> &[u8] {
        match std::str::from_utf8(&self.bytes) {
            Err(e) if e.error_len().is_none() && !self.is_whole() => &self.bytes[..e.valid_up_to()],
            _ => &self.bytes,
        }
    }

    /// Whether more bytes were received than kept.
    fn was_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }
}

// The answer to a call whose request has ended.

/// How much of an error response's body the model gets, in bytes.
const TAIL: usize = 8 * 1024;

/// The longest part of a response header that a message quotes, in bytes.
const LONGEST: usize = 500;

/// Returns the answer to a call that got no response; `timeout` is the call's time limit.
fn no_answer(error: &SendError, timeout: Duration) -> ToolAnswer {
    let (status, failure) = match error {
        SendError::Variable(error) => {
            let text = format!("The request was not sent: {error}. Go on without this tool.");
            (Status::Error, CallFailure::not_run(text))
        }
        SendError::Redirect(error) => (
            Status::Error,
            CallFailure::may_have_run(format!("The request was answered, but {error}.")),
        ),
        SendError::Network {
            error,
            is_sent,
            server,
        } => {
            // The remedy comes first because a screen may show only the start of the message.
            let error_text = match error.kind {
                ErrorKind::Forbidden => {
                    format!("write \"allow\": [{server:?}] in exec.http to permit it ({error})")
                }
                ErrorKind::Exposed => {
                    format!("write \"insecure\": true in exec.http to permit it ({error})")
                }
                _ => error.to_string(),
            };
            match (error.kind, is_sent) {
                (ErrorKind::Deadline, _) => {
                    let text = format!("An answer did not come within {timeout:?}.");
                    (Status::Timeout, CallFailure::may_have_run(text))
                }
                (_, true) => (
                    Status::Error,
                    CallFailure::may_have_run(format!("No answer came: {error_text}.")),
                ),
                (_, false) => (
                    Status::Error,
                    CallFailure::not_run(format!("The request was not sent: {error_text}.")),
                ),
            }
        }
    };
    failure.answer(status)
}

/// Returns how many bytes to read of the body of a response with this head. `max` is the limit of a
/// successful response.
fn limit(head: &Head, max: usize) -> usize {
    if is_success(head) { max } else { max.min(TAIL) }
}

/// Returns the answer for a response.
fn answer(head: &Head, received: &Received, terms: &Terms<'_>) -> ToolAnswer {
    let seen = received.seen;
    let whole = received.whole();
    let answer = terms.readable(if received.is_whole() {
        whole
    } else {
        terms.outputs.settled(whole)
    });
    let body = &answer.output;
    let is_compressed = head
        .header("content-encoding")
        .is_some_and(|name| !name.eq_ignore_ascii_case("identity"));
    let error = match &received.lost {
        Some(error) if error.kind == ErrorKind::Deadline => Some((
            Status::Timeout,
            format!(
                "The answer did not end within {:?}: {seen} bytes came.",
                terms.timeout
            ),
        )),
        Some(error) => Some((
            Status::Error,
            format!("The answer was cut after {seen} bytes: {error}."),
        )),
        None if !is_success(head) => Some((Status::Error, refused(head, terms.outputs))),
        None if received.was_cut() => Some((
            Status::Error,
            format!(
                "The answer is longer than {} bytes, the rest was not read.",
                terms.max_output
            ),
        )),
        None if is_compressed => Some((
            Status::Error,
            "The answer is compressed in a way that tool-exec cannot read.".to_owned(),
        )),
        None => None,
    };
    // A server that accepts a request (2xx) or rejects it (4xx) has reported what it did. After any
    // other response the work may have been done or not.
    let is_answered = matches!(head.status, 200..300 | 400..500) && received.lost.is_none();
    let told = |(status, why)| {
        let ran = if is_answered {
            MayHaveRun::Answered
        } else {
            MayHaveRun::Maybe
        };
        (status, CallFailure { why, ran }.answer(status).output)
    };
    let (status, output) = match error.map(told) {
        None => (Status::Success, body.clone()),
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
    ToolAnswer {
        status,
        output,
        output_bytes: seen,
        truncated: answer.truncated || received.was_cut(),
        ..answer
    }
}

fn is_success(head: &Head) -> bool {
    (200..300).contains(&head.status)
}

/// Returns a sentence about a response that is not a success.
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
