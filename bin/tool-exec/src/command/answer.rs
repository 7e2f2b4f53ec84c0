//! The answer to a call whose command has ended.

use super::supervisor::Ended;
use crate::task::Terms;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncReadExt};
use tool::{CallStep, ProgressLines, Status, ToolAnswer};

/// How much of a failed command's standard error the model gets, in bytes.
const TAIL: usize = 8 * 1024;

/// Why tool-exec ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndCause {
    /// The command exceeded its time limit.
    Timeout,
    /// The command exceeded its output limit.
    Output,
    /// The call was cancelled.
    Stopped,
}

/// Returns the answer for a command that has ended. `cause` is why tool-exec ended it, or `None` if
/// it ended by itself.
pub(super) fn answer(
    terms: &Terms<'_>,
    ended: &Ended,
    cause: Option<EndCause>,
    out: &Capture,
    err: &Capture,
) -> ToolAnswer {
    let Terms {
        timeout,
        max_output,
        outputs,
        ..
    } = *terms;
    let code = ended.status;
    // The first cause counts. The supervisor reports a timeout.
    let cause = cause.or(ended.is_timeout.then_some(EndCause::Timeout));
    let unread = [("output", out), ("standard error", err)]
        .into_iter()
        .find_map(|(name, capture)| Some((name, capture.failure.as_ref()?)));
    let was_ended = cause.is_some();
    // How much of an output is used. A command that was ended may have been in the middle of a
    // secret.
    let settled = |capture: &'_ Capture| {
        if capture.was_cut() || was_ended {
            outputs.settled(&capture.bytes).len()
        } else {
            capture.bytes.len()
        }
    };
    let mut answer = terms.readable(&out.bytes[..settled(out)]);
    let output = &mut answer.output;
    if out.was_cut() {
        output.push_str(&format!("\n[the output was cut after {max_output} bytes]"));
    }
    let (status, mut head) = match (cause, code) {
        (Some(EndCause::Timeout), _) => (
            Status::Timeout,
            format!("The command did not end within {timeout:?} and was ended."),
        ),
        (Some(EndCause::Stopped), _) => (
            Status::Cancelled,
            "The command was stopped before it was done.".to_owned(),
        ),
        (Some(EndCause::Output), _) => (
            Status::Error,
            format!("The command wrote more than {max_output} bytes and was ended."),
        ),
        (None, Some(0)) if unread.is_some() || !ended.left.is_empty() => (
            Status::Error,
            "The command ended with exit status 0.".to_owned(),
        ),
        (None, Some(0)) => (Status::Success, String::new()),
        (None, Some(code)) => (
            Status::Error,
            format!(
                "The command failed with exit status {code}{}.",
                signal(code)
            ),
        ),
        (None, None) => (
            Status::Error,
            "The command was ended from outside.".to_owned(),
        ),
    };
    if ended.is_out_of_memory && status != Status::Success {
        head += " Its processes used more memory than they may (exec.limits.memory).";
    }
    if let Some((name, why)) = unread {
        head += &format!(" Its {name} could not be read to the end: {why}.");
    }
    if !ended.left.is_empty() {
        let pids: Vec<String> = ended.left.iter().map(i32::to_string).collect();
        head += &format!(
            " Some of its processes could not be ended (PIDs {}).",
            pids.join(", ")
        );
    }
    if status != Status::Success {
        let (tail, bad) = tool::text(tail(&outputs.redacted(&err.bytes[..settled(err)])));
        answer.replaced |= bad;
        let part = |name: &str, text: &str| {
            if text.trim().is_empty() {
                String::new()
            } else {
                format!("\n{name}:\n{}", text.trim_end())
            }
        };
        *output = head + &part("stderr", &tail) + &part("stdout", output);
    }
    ToolAnswer {
        status,
        output_bytes: out.seen,
        truncated: answer.truncated || out.was_cut() || err.was_cut(),
        exit_code: code.filter(|_| cause.is_none()),
        ..answer
    }
}

/// Returns the last lines of an output.
fn tail(bytes: &[u8]) -> &[u8] {
    let Some(from) = bytes.len().checked_sub(TAIL) else {
        return bytes;
    };
    let end = &bytes[from..];
    let line = end.iter().position(|b| *b == b'\n').map_or(0, |n| n + 1);
    if line < end.len() { &end[line..] } else { end }
}

/// Returns the name of the signal that a status above 128 stands for, in parentheses.
fn signal(code: i32) -> String {
    match signal_hook::low_level::signal_name(code - 128) {
        Some(name) if code > 128 => format!(" ({name})"),
        _ => String::new(),
    }
}

// The output of a command while it is being read.

/// One output of a command.
pub(super) struct Capture {
    pipe: Option<Pin<Box<dyn AsyncRead>>>,
    /// The bytes kept.
    pub bytes: Vec<u8>,
    /// How many bytes were received.
    pub seen: u64,
    /// The error that ended reading early, or `None`.
    pub failure: Option<std::io::Error>,
    /// The latest progress report, until it is taken.
    pub report: Option<CallStep>,
    /// Extracts progress reports. `None` if the output cannot contain any.
    reports: Option<ProgressLines>,
    max: usize,
}

impl Capture {
    /// Captures at most `max` bytes of `pipe`.
    pub(super) fn new(pipe: impl AsyncRead + 'static, max: usize) -> Self {
        Capture {
            pipe: Some(Box::pin(pipe)),
            bytes: Vec::new(),
            seen: 0,
            failure: None,
            report: None,
            reports: None,
            max,
        }
    }

    /// Like [`Capture::new`], but extracts the lines that report progress.
    pub(super) fn with_reports(pipe: impl AsyncRead + 'static, max: usize) -> Self {
        Capture {
            reports: Some(ProgressLines::default()),
            ..Capture::new(pipe, max)
        }
    }

    /// Whether more output may follow.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once. Returns true if the command has exceeded its output limit; its output is then no
    /// longer read.
    pub(super) async fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.read_buf(&mut self.bytes).await {
            Ok(0) => self.pipe = None,
            Ok(n) => self.seen += n as u64,
            Err(e) => (self.pipe, self.failure) = (None, Some(e)),
        }
        if let Some(reports) = &mut self.reports {
            let (taken, report) = reports.take(&mut self.bytes, self.pipe.is_none());
            self.seen -= taken as u64;
            self.report = report.or(self.report.take());
        }
        let is_over = self.bytes.len() > self.max;
        if is_over {
            self.bytes.truncate(self.max);
            self.pipe = None;
        }
        is_over
    }

    /// Whether more bytes were received than kept.
    pub(super) fn was_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, ReadBuf};

    /// An output that fails to be read. The flag is whether its only bytes were already read.
    struct Broken(bool);

    impl AsyncRead for Broken {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Ready(Err(std::io::Error::other("it is broken")));
            }
            into.put_slice(b"half");
            Poll::Ready(Ok(()))
        }
    }

    fn of(ended: &Ended, out: &Capture) -> ToolAnswer {
        let none = Capture::new(tokio::io::empty(), 9);
        let outputs = crate::store::Outputs::new(redact::Redactor::default(), 1000, 0);
        let terms = Terms {
            timeout: std::time::Duration::from_secs(1),
            max_output: 1000,
            max_result: None,
            outputs: &outputs,
        };
        answer(&terms, ended, None, out, &none)
    }

    #[test]
    fn an_output_that_cannot_be_read_is_no_success() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let done = Ended {
            status: Some(0),
            ..Ended::default()
        };
        let mut out = Capture::new(Broken(false), 1000);
        while out.is_open() {
            runtime.block_on(out.read());
        }
        let answer = of(&done, &out);
        assert_eq!(answer.status, Status::Error);
        assert!(
            answer
                .output
                .contains("could not be read to the end: it is broken")
                && answer.output.contains("half")
        );
        let whole = Capture::new(tokio::io::empty(), 9);
        assert_eq!(of(&done, &whole).status, Status::Success);
    }

    #[test]
    fn what_could_not_be_ended_is_in_every_answer() {
        let whole = Capture::new(tokio::io::empty(), 9);
        for (status, is_timeout) in [
            (Some(0), false),
            (Some(3), false),
            (None, true),
            (None, false),
        ] {
            let answer = of(
                &Ended {
                    status,
                    is_timeout,
                    left: vec![7, 8],
                    ..Ended::default()
                },
                &whole,
            );
            assert!(
                answer.status != Status::Success
                    && answer.output.contains("could not be ended (PIDs 7, 8)")
            );
        }
    }
}
