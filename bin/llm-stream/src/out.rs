//! Standard output, as a stream's events see it.

use crate::args::Args;
use crate::verbose::Verbose;
use event::payload::{self, Payload};
use event::{Kind, Scanner, Sink};
use std::time::Duration;
use stdio::{Errors, Failure, Output};

/// Where all events go. The first failure is kept, and nothing is written after it.
#[derive(Debug)]
pub struct Out {
    stdout: Output,
    no_time: bool,
    verbose: Verbose,
    failed: Option<Failure>,
    errors: Errors,
}

impl Out {
    pub fn new(args: &Args) -> Out {
        let (no_time, verbose) = (args.common.no_time, Verbose::new(args));
        Out { stdout: Output::new(), no_time, verbose, failed: None, errors: Errors::passed("llm-stream") }
    }

    /// Whether times are left out.
    pub fn no_time(&self) -> bool {
        self.no_time
    }

    /// What happens beside the events is reported here.
    pub fn verbose(&self) -> Verbose {
        self.verbose
    }

    /// Whether an `error` event was written.
    pub fn has_error(&self) -> bool {
        self.errors.any()
    }

    /// Writes everything out that waits.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.check()?;
        self.stdout.flush()
    }

    /// Tells a failure of an earlier write.
    ///
    /// # Errors
    /// That failure.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes a text that is no event, and everything before it.
    ///
    /// # Errors
    /// As [`Out::flush`].
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.stdout.put(text.as_bytes())?;
        self.stdout.put(b"\n")?;
        self.flush()
    }

    /// Writes an event that belongs to no stream.
    pub fn event(&mut self, event: &dyn Payload) {
        self.write(None, 0, None, event);
    }

    fn write(&mut self, stream: Option<&str>, choice: u32, t: Option<&str>, event: &dyn Payload) {
        if self.failed.is_none() {
            let buffer = self.stdout.buffer();
            let start = buffer.len();
            payload::line(buffer, event, stream, choice, t);
            if event.kind() == Kind::Error {
                report(&mut self.errors, &buffer[start..]);
            }
            buffer.push(b'\n');
            self.failed = self.stdout.spill().err();
        }
    }
}

/// Reports the `error` event that was written.
#[cold]
fn report(errors: &mut Errors, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    match Scanner::default().read(&line) {
        Ok(event) => errors.report(&event),
        Err(_) => errors.count(),
    }
}

/// The clock of one stream: `t` counts from the bytes that began it.
#[derive(Debug, Default)]
pub struct Clock {
    begin: Option<Duration>,
    t: Option<String>,
}

impl Clock {
    /// What is written from now on came `at` this time since the request.
    pub fn set(&mut self, at: Option<Duration>, started: bool, out: &Out) {
        if !started {
            self.begin = at;
        }
        let t = at.zip(self.begin).filter(|_| !out.no_time()).map(|(at, begin)| at.saturating_sub(begin));
        self.t = t.map(millis);
    }

    /// A sink for the events of the stream `name` (as JSON) at this time.
    pub fn sink<'o>(&'o self, name: Option<&'o str>, out: &'o mut Out) -> impl Sink + 'o {
        Here { out, name, t: self.t.as_deref() }
    }
}

struct Here<'o> {
    out: &'o mut Out,
    name: Option<&'o str>,
    t: Option<&'o str>,
}

impl Sink for Here<'_> {
    fn pass(&mut self) {} // no line is at hand: these events come from a provider's bytes

    fn line(&mut self, _json: &str) {} // a stream is events and nothing else

    fn write(&mut self, choice: u32, event: &dyn Payload) {
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
