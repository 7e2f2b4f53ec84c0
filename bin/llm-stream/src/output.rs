//! Standard output and standard error: events, and lines for people.

mod messages;

pub use messages::Messages;

use event::payload::{self, Payload};
use event::{Event, Kind};
use stdio::{Errors, Failure, Output};

/// Where all events go. The first failure is kept, and nothing is written after it.
#[derive(Debug)]
pub struct Out {
    stdout: Output,
    no_time: bool,
    messages: Messages,
    failed: Option<Failure>,
    errors: Errors,
}

impl Out {
    /// `no_time` leaves times out of the events.
    pub fn new(no_time: bool, messages: Messages) -> Out {
        Out {
            stdout: Output::new(),
            no_time,
            messages,
            failed: None,
            errors: Errors::passed("llm-stream"),
        }
    }

    /// Whether times are left out.
    pub fn no_time(&self) -> bool {
        self.no_time
    }

    /// Where lines for people go.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Whether an `error` event was written.
    pub fn has_error(&self) -> bool {
        self.errors.any()
    }

    /// Flushes.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.check()?;
        self.stdout.flush()
    }

    /// Checks the writes so far.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes a text that is not an event, and flushes.
    ///
    /// # Errors
    /// As [`Out::flush`].
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.stdout.put(text.as_bytes())?;
        self.stdout.put(b"\n")?;
        self.flush()
    }

    /// Writes an event that belongs to no stream.
    pub fn event<'e>(&mut self, event: impl Into<Payload<'e>>) {
        self.write(None, 0, None, &event.into());
    }

    /// Writes an event of the stream `stream` (as JSON) and of `choice`, at the time `t`.
    pub fn write(
        &mut self,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
        event: &Payload<'_>,
    ) {
        if self.failed.is_none() {
            let buffer = self.stdout.buffer();
            payload::line(buffer, event, stream, choice, t);
            buffer.push(b'\n');
            if event.kind() == Kind::Error {
                self.errors.report(&Event::of(event, None, choice, None));
            }
            self.failed = self.stdout.spill().err();
        }
    }
}
