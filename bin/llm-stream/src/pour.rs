//! One response, from its bytes to its events.

use crate::interrupt::{Stop, Watch};
use crate::out::{Clock, Out};
use crate::source::{Piece, Source, What};
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;
use upstream::{End, Stream};

/// How long to wait. Both are absent on replay, where the recording says what happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The longest silence.
    pub idle: Option<Duration>,
    /// When everything must be over.
    pub deadline: Option<Instant>,
}

/// How a response was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poured {
    /// To its end, or to an error that is written: the stream has ended.
    Ended,
    /// It broke before anything was written; the stream has not ended.
    Broken,
    /// A signal came; the stream has ended as `cancelled`, unless it had not begun.
    Signal(i32),
}

/// Why a wait was over before anything came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Nothing came for too long.
    Idle,
    /// The time for everything has passed.
    Deadline,
    /// Nobody wants it any more.
    Stop(Stop),
}

impl Limits {
    /// Waits for what ends a wait that began now.
    pub async fn over(&self, watch: &Watch) -> Over {
        let idle = self.idle.map(|idle| Instant::now() + idle);
        tokio::select! {
            stop = watch.stop() => Over::Stop(stop),
            () = until(idle) => Over::Idle,
            () = until(self.deadline) => Over::Deadline,
        }
    }

    /// How a stream ends whose wait was over, and the signal if it was one.
    ///
    /// # Errors
    /// [`Failure::Gone`] when the reader left.
    pub fn end(&self, over: Over) -> Result<(End, Option<i32>), Failure> {
        match over {
            Over::Stop(Stop::Gone) => Err(Failure::Gone),
            Over::Stop(Stop::Signal(signal)) => Ok((End::Cancelled, Some(signal))),
            Over::Idle => {
                let idle = self.idle.unwrap_or_default();
                Ok((End::Timeout(format!("nothing came for {idle:?} (--idle-timeout)")), None))
            }
            Over::Deadline => {
                Ok((End::Timeout("the time for the whole answer has passed (--timeout)".to_owned()), None))
            }
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Reads `source` to its end, or to the provider's end mark, and says how it ended. Its events are written under `name` (as JSON);
/// standard output is flushed exactly when the next bytes must be waited for.
///
/// # Errors
/// [`Failure::Gone`] when the reader left, also while nothing comes, and failures of standard output.
pub async fn pour(
    source: &mut Source,
    stream: &mut Stream,
    name: Option<&str>,
    limits: Limits,
    watch: &Watch,
    out: &mut Out,
) -> Result<(Poured, End), Failure> {
    let mut clock = Clock::default();
    loop {
        let next = tokio::select! {
            biased;
            piece = source.next() => Ok(piece),
            // The task that reads the connection gets its turn before this one gives up and waits.
            () = tokio::task::yield_now() => Err(()),
        };
        let next = match next {
            Ok(piece) => Ok(piece),
            Err(()) => {
                out.flush()?;
                tokio::select! {
                    biased;
                    piece = source.next() => Ok(piece),
                    over = limits.over(watch) => Err(over),
                }
            }
        };
        let (piece, signal) = match next {
            Ok(piece) => (piece, watch.signal()),
            Err(over) => {
                let (end, signal) = limits.end(over)?;
                (Piece { at: source.stop(), what: What::End(end) }, signal)
            }
        };
        let at = piece.at;
        clock.set(at, stream.has_started(), out);
        if !out.no_time() {
            let stats = stream.stats();
            stats.duration = at.map(micros).or(stats.duration);
        }
        if !out.no_time() && !stream.has_started() {
            stream.stats().first_event = at.map(micros);
        }
        if let Some(signal) = signal.filter(|_| !stream.has_started()) {
            return Ok((Poured::Signal(signal), End::Cancelled));
        }
        let mut sink = clock.sink(name, out);
        let end = match piece.what {
            _ if signal.is_some() => End::Cancelled,
            What::Bytes(bytes) => {
                stream.push(bytes, &mut sink);
                End::Eof
            }
            What::End(end @ (End::Reset(_) | End::Timeout(_))) if !stream.has_started() => {
                return Ok((Poured::Broken, end));
            }
            What::End(end) => {
                stream.finish(end.clone(), &mut sink);
                end
            }
        };
        if signal.is_some() {
            stream.finish(End::Cancelled, &mut sink);
        }
        drop(sink);
        out.check()?;
        if stream.is_done() {
            return Ok((signal.map_or(Poured::Ended, Poured::Signal), end));
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
