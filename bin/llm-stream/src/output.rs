//! Standard output and standard error: events, and messages for people.

use api::Request;
use event::payload::{self, Payload};
use event::{Event, Kind};
use redact::Redactor;
use std::cell::RefCell;
use std::fmt::Display;
use std::time::Duration;
use stdio::{Errors, Failure, Output};

/// The destination of all events, which turns share that run at the same time. After a failure
/// nothing is written until [`Out::check`] or [`Out::flush`] has returned that failure.
#[derive(Debug)]
pub(crate) struct Out {
    no_time: bool,
    messages: Messages,
    written: RefCell<Written>,
}

#[derive(Debug)]
struct Written {
    stdout: Output,
    failed: Option<Failure>,
    errors: Errors,
}

impl Out {
    /// Creates the destination; `no_time` omits times from the events.
    pub(crate) fn new(no_time: bool, messages: Messages) -> Out {
        Out {
            no_time,
            messages,
            written: RefCell::new(Written {
                stdout: Output::new(),
                failed: None,
                errors: Errors::passed("llm-stream"),
            }),
        }
    }

    /// Whether times are omitted.
    pub(crate) fn no_time(&self) -> bool {
        self.no_time
    }

    /// Returns the destination of messages for people.
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Whether an `error` event was written.
    pub(crate) fn has_error(&self) -> bool {
        self.written.borrow().errors.any()
    }

    /// Flushes standard output.
    ///
    /// # Errors
    /// Returns the first failure since the last call.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        self.check()?;
        self.written.borrow_mut().stdout.flush()
    }

    /// Checks the writes so far.
    ///
    /// # Errors
    /// Returns the first failure since the last call.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.written.borrow_mut().failed.take().map_or(Ok(()), Err)
    }

    /// Writes text that is not an event, and flushes.
    ///
    /// # Errors
    /// Fails like [`Out::flush`].
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let stdout = &mut self.written.borrow_mut().stdout;
        stdout.put(text.as_bytes())?;
        stdout.put(b"\n")?;
        stdout.flush()
    }

    /// Writes an event outside any stream.
    pub(crate) fn event<'e>(&self, event: impl Into<Payload<'e>>) {
        self.write(None, 0, None, &event.into());
    }

    /// Writes an event of the stream `stream` (as JSON) and of `choice`, at time `t`.
    pub(crate) fn write(
        &self,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
        event: &Payload<'_>,
    ) {
        let Written {
            stdout,
            failed,
            errors,
        } = &mut *self.written.borrow_mut();
        if failed.is_none() {
            let buffer = stdout.buffer();
            payload::line(buffer, event, stream, choice, t);
            buffer.push(b'\n');
            if event.kind() == Kind::Error {
                errors.report(&Event::of(event, None, choice, None));
            }
            *failed = stdout.spill().err();
        }
    }
}

/// Writes messages for people to standard error, with secrets removed.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    is_verbose: bool,
    no_time: bool,
    redactor: Redactor,
}

impl Messages {
    /// Creates the writer; `is_verbose` is `--verbose`, `no_time` omits times.
    pub(crate) fn new(is_verbose: bool, no_time: bool, redactor: Redactor) -> Messages {
        Messages {
            is_verbose,
            no_time,
            redactor,
        }
    }

    /// Prints a message regardless of `--verbose`.
    pub(crate) fn always(&self, what: impl Display) {
        stdio::message("llm-stream", &self.redactor.text(&what.to_string()));
    }

    /// Prints a message with `--verbose`.
    pub(crate) fn verbose(&self, what: impl Display) {
        if self.is_verbose {
            self.always(what);
        }
    }

    /// Prints a message with `--verbose`, with the time since the request was sent.
    pub(crate) fn at(&self, what: impl Display, time: Option<Duration>) {
        match time.filter(|_| !self.no_time) {
            Some(time) => self.verbose(format_args!("{what} after {}", short(time))),
            None => self.verbose(what),
        }
    }

    /// Returns a request's method and URL, with secrets removed.
    pub(crate) fn line(&self, request: &Request) -> String {
        format!("{} {}", request.method, self.redactor.url(&request.url))
    }
}

/// Formats a duration for people.
fn short(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (61_240, "61.2 s"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }
}
