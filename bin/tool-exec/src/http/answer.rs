//! The answer to a call whose request has ended.

use super::received::Received;
use super::sender::SendError;
use crate::store::{Outputs, Readable};
use client::{ErrorKind, Head};
use std::time::Duration;
use tool::{Answer, CallFailure, Status};

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
