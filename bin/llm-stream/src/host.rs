//! A turn in this command: its events go to standard output, and a signal or a reader that leaves
//! ends it.

use crate::output::Out;
use crate::watch::Watch;
use ::ask::{Host, Note};
use event::Sink;
use event::payload::Payload;
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;

/// The longest time that events stay in the buffer, and that a reader's leaving goes unnoticed.
const PULSE: Duration = Duration::from_millis(100);

/// Writes the events of one stream after the other. `t` counts from the first bytes of a stream
/// with an event.
pub struct StdoutHost<'o> {
    watch: &'o Watch,
    out: &'o mut Out,
    /// The name of the stream, as JSON.
    name: Option<&'o str>,
    begin: Option<Duration>,
    t: Option<String>,
    /// When [`PULSE`] began.
    pulse: Option<Instant>,
}

impl<'o> StdoutHost<'o> {
    /// `name` (as JSON) is that of every stream that follows.
    pub fn new(watch: &'o Watch, out: &'o mut Out, name: Option<&'o str>) -> StdoutHost<'o> {
        StdoutHost {
            watch,
            out,
            name,
            begin: None,
            t: None,
            pulse: None,
        }
    }
}

impl Host for StdoutHost<'_> {
    /// A signal.
    type Stop = i32;
    type Failure = Failure;

    fn command(&self) -> &'static str {
        "llm-stream"
    }

    fn set_time(&mut self, at: Option<Duration>, has_started: bool) {
        if !has_started {
            self.begin = at;
        }
        let t = at
            .zip(self.begin)
            .filter(|_| self.has_times())
            .map(|(at, begin)| at.saturating_sub(begin));
        self.t = t.map(millis);
    }

    fn has_times(&self) -> bool {
        !self.out.no_time()
    }

    fn sink(&mut self) -> &mut dyn Sink {
        self
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.out.check()
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush()
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now.saturating_duration_since(*self.pulse.get_or_insert(now)) >= PULSE;
        if is_due {
            self.pulse = Some(now);
        }
        is_due
    }

    async fn stop(&self) -> Result<i32, Failure> {
        self.watch.interrupt().await.signal()
    }

    fn stopped(&self, and_reader: bool) -> Option<Result<i32, Failure>> {
        Some(self.watch.seen(and_reader)?.signal())
    }

    fn note(&self, note: Note<'_>) {
        let messages = self.out.messages();
        match note {
            Note::Important(what) => messages.always(what),
            Note::Detail(what) => messages.verbose(what),
            Note::At(what, time) => messages.at(what, time),
            Note::Request(request) => messages.request(request),
        }
    }
}

impl Sink for StdoutHost<'_> {
    fn pass(&mut self) {} // events come from a provider's bytes, not from a line

    fn write(&mut self, choice: u32, event: &Payload<'_>) {
        self.out.write(self.name, choice, self.t.as_deref(), event);
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
        for (micros, text) in [
            (0, "0"),
            (1_500, "1.5"),
            (2_000, "2"),
            (100_000, "100"),
            (7, "0.007"),
        ] {
            assert_eq!(millis(Duration::from_micros(micros)), text);
        }
    }
}
