//! The answer to a call whose command has ended.

use super::capture::Capture;
use std::time::Duration;
use tool::{Answer, Status};

/// How much of the standard error of a command that failed the model gets to read, in bytes.
const TAIL: usize = 8 * 1024;

/// Why a command was ended from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Its time was up.
    Timeout,
    /// It wrote more than it may.
    Output,
    /// Its call was cancelled.
    Stopped,
}

/// The answer of a command that has ended with status `code`, under its limits of time and of output in bytes.
pub fn answer(
    code: Option<i32>,
    cause: Option<EndCause>,
    (timeout, max_output): (Duration, usize),
    out: &Capture,
    err: &Capture,
) -> Answer {
    let (mut output, mut replaced) = tool::text(&out.bytes);
    if out.was_cut() {
        output.push_str(&format!("\n[the output was cut after {max_output} bytes]"));
    }
    let (status, head) = match (cause, code) {
        (Some(EndCause::Timeout), _) => {
            (Status::Timeout, format!("The command did not end within {timeout:?} and was ended."))
        }
        (Some(EndCause::Stopped), _) => (Status::Cancelled, "The command was stopped before it was done.".to_owned()),
        (Some(EndCause::Output), _) => {
            (Status::Error, format!("The command wrote more than {max_output} bytes and was ended."))
        }
        (None, Some(0)) => (Status::Success, String::new()),
        (None, Some(code)) => (Status::Error, format!("The command failed with exit status {code}{}.", signal(code))),
        (None, None) => (Status::Error, "The command was ended from outside.".to_owned()),
    };
    if status != Status::Success {
        let (tail, bad) = tool::text(tail(&err.bytes));
        replaced |= bad;
        let part = |name: &str, text: &str| {
            if text.trim().is_empty() { String::new() } else { format!("\n{name}:\n{}", text.trim_end()) }
        };
        output = head + &part("stderr", &tail) + &part("stdout", &output);
    }
    Answer {
        output_bytes: out.seen,
        truncated: out.was_cut() || err.was_cut(),
        replaced,
        exit_code: code.filter(|_| cause.is_none()),
        ..Answer::new(status, output)
    }
}

/// The last lines of an output.
fn tail(bytes: &[u8]) -> &[u8] {
    let Some(from) = bytes.len().checked_sub(TAIL) else { return bytes };
    let end = &bytes[from..];
    let line = end.iter().position(|b| *b == b'\n').map_or(0, |n| n + 1);
    if line < end.len() { &end[line..] } else { end }
}

/// The name of the signal that a status above 128 means, in brackets.
fn signal(code: i32) -> String {
    match signal_hook::low_level::signal_name(code - 128) {
        Some(name) if code > 128 => format!(" ({name})"),
        _ => String::new(),
    }
}
