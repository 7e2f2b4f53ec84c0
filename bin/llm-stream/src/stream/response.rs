//! One response, from its bytes to its events.

use super::lost;
use super::watch::Watch;
use crate::output::{Clock, Out};
use client::{Body, Error, PieceContent};
use event::payload::Millis;
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;
use upstream::{End, Stream};

/// How the reading of a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseEnd {
    /// The stream has ended; the error is written in it, if there was one.
    Ended(Option<Error>),
    /// The connection was lost before anything was written; the stream has not ended.
    Lost(Error),
    /// A signal came; the stream has ended as `cancelled`, unless it had not begun.
    Signal(i32),
}

/// Reads `body` to its end, or to the provider's end mark. Its events are written under `name` (as JSON). Standard output is flushed
/// before a wait for bytes, and ten times a second while they come without a pause.
///
/// # Errors
/// [`Failure::Gone`] when the reader left, also while nothing comes, and failures of standard output.
pub async fn write_events(
    body: &mut Body,
    stream: &mut Stream,
    name: Option<&str>,
    watch: &Watch,
    out: &mut Out,
) -> Result<ResponseEnd, Failure> {
    let mut clock = Clock::default();
    let mut pulse = Pulse::default();
    loop {
        let is_due = pulse.is_due();
        if is_due {
            out.flush()?;
        }
        let at_hand = match watch.seen(is_due) {
            Some(interrupt) => Some(Err(interrupt)),
            None => tokio::select! {
                biased;
                piece = body.next() => Some(Ok(piece)),
                // Lets the task that reads the connection run before this one flushes and waits.
                () = tokio::task::yield_now() => None,
            },
        };
        let next = match at_hand {
            Some(next) => next,
            None => {
                out.flush()?;
                tokio::select! {
                    biased;
                    piece = body.next() => Ok(piece),
                    interrupt = watch.interrupt() => Err(interrupt),
                }
            }
        };
        let (at, what, signal) = match next {
            Ok(piece) => (piece.at, Some(piece.what), watch.signal()),
            Err(interrupt) => (body.stop(), None, Some(interrupt.signal()?)),
        };
        let had_started = stream.has_started();
        clock.set(at, had_started, out);
        if !out.no_time() {
            let stats = stream.stats();
            stats.duration_ms = at.map(millis).or(stats.duration_ms);
            if !had_started {
                stream.stats().first_event_ms = at.map(millis);
            }
        }
        if let Some(signal) = signal.filter(|_| !had_started) {
            return Ok(ResponseEnd::Signal(signal));
        }
        let mut sink = clock.sink(name, out);
        let mut error = None;
        match what.filter(|_| signal.is_none()) {
            None => stream.finish(End::Cancelled, &mut sink),
            Some(PieceContent::Bytes(bytes)) => stream.push(bytes, &mut sink),
            Some(PieceContent::End) => stream.finish(End::Eof, &mut sink),
            Some(PieceContent::Lost(lost)) if !had_started => return Ok(ResponseEnd::Lost(lost)),
            Some(PieceContent::Lost(lost)) => {
                stream.finish(lost::end(&lost), &mut sink);
                error = Some(lost);
            }
        }
        drop(sink);
        out.check()?;
        if stream.has_started() && !had_started {
            out.messages().at("first event", at);
        }
        if stream.is_done() {
            out.messages().at("the stream ended", at);
            return Ok(signal.map_or(ResponseEnd::Ended(error), ResponseEnd::Signal));
        }
    }
}

fn millis(time: Duration) -> Millis {
    Millis { micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX) }
}

/// A clock for what otherwise happens during a wait: flushing, and looking for the reader. Bytes may arrive without a pause.
#[derive(Debug, Default)]
pub struct Pulse {
    last: Option<Instant>,
}

/// The longest time that events stay in the buffer, and that a reader's leaving goes unnoticed.
const PULSE: Duration = Duration::from_millis(100);

impl Pulse {
    /// Whether [`PULSE`] has passed since the last time that it was.
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now.saturating_duration_since(*self.last.get_or_insert(now)) >= PULSE;
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}
