//! Standard output and standard error: events, and lines for people.

mod messages;

pub use messages::Messages;

use event::payload::{self, Payload};
use event::{Event, Kind, Sink};
use std::time::Duration;
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
        Out { stdout: Output::new(), no_time, messages, failed: None, errors: Errors::passed("llm-stream") }
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

    fn write(&mut self, stream: Option<&str>, choice: u32, t: Option<&str>, event: &Payload<'_>) {
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

/// The clock of one stream: `t` counts from the first bytes with an event.
#[derive(Debug, Default)]
pub struct Clock {
    begin: Option<Duration>,
    t: Option<String>,
}

impl Clock {
    /// Sets the time of what is written from now on, which came `at` this time after the request. `has_started` claims that the stream
    /// has an event.
    pub fn set(&mut self, at: Option<Duration>, has_started: bool, out: &Out) {
        if !has_started {
            self.begin = at;
        }
        let t = at.zip(self.begin).filter(|_| !out.no_time()).map(|(at, begin)| at.saturating_sub(begin));
        self.t = t.map(millis);
    }

    /// A sink for the events of the stream `name` (as JSON) at this time.
    pub fn sink<'o>(&'o self, name: Option<&'o str>, out: &'o mut Out) -> impl Sink + 'o {
        StreamSink { out, name, t: self.t.as_deref() }
    }
}

struct StreamSink<'o> {
    out: &'o mut Out,
    name: Option<&'o str>,
    t: Option<&'o str>,
}

impl Sink for StreamSink<'_> {
    fn pass(&mut self) {} // events come from a provider's bytes, not from a line

    fn line(&mut self, _json: &str) {} // a stream consists of events

    fn write(&mut self, choice: u32, event: &Payload<'_>) {
        self.out.write(self.name, choice, self.t, event);
    }
}

/// Milliseconds with at most three decimals.
fn millis(time: Duration) -> String {
    let micros = time.as_micros();
    let text = format!("{}.{:03}", micros / 1000, micros % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_at_most_three_decimals() {
        for (micros, text) in [(0, "0"), (1_500, "1.5"), (2_000, "2"), (100_000, "100"), (7, "0.007")] {
            assert_eq!(millis(Duration::from_micros(micros)), text);
        }
    }
}
