//! One response, from its bytes to its events.

use crate::interrupt::Watch;
use crate::limits::{Limits, Pulse};
use crate::out::{Clock, Out};
use crate::source::{Piece, Source, What};
use std::time::Duration;
use stdio::Failure;
use upstream::{End, Stream};

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

/// Reads `source` to its end, or to the provider's end mark, and says how it ended. Its events are written under `name` (as JSON);
/// standard output is flushed when the next bytes must be waited for, and now and then while they come without a pause.
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
    let mut pulse = Pulse::default();
    loop {
        let due = pulse.is_due();
        if due {
            out.flush()?;
        }
        let next = match limits.passed(watch, due) {
            Some(over) => Err(Some(over)),
            None => tokio::select! {
                biased;
                piece = source.next() => Ok(piece),
                // The task that reads the connection gets its turn before this one gives up and waits.
                () = tokio::task::yield_now() => Err(None),
            },
        };
        let next = match next {
            Ok(piece) => Ok(piece),
            Err(Some(over)) => Err(over),
            Err(None) => {
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
        let has_started = stream.has_started();
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
        if stream.has_started() && !has_started {
            out.verbose().at("first event", at);
        }
        if stream.is_done() {
            out.verbose().at("the stream ended", at);
            return Ok((signal.map_or(Poured::Ended, Poured::Signal), end));
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
