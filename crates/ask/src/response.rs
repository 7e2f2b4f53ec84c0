//! Converts the bytes of one response into events.

use super::host::{Host, Note};
use super::trouble;
use api::{End, Stream};
use client::{Body, Error, PieceContent};
use event::payload::Millis;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How reading a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseEnd<S> {
    /// The stream has ended. An error, if any, was already written to the stream.
    Ended(Option<Error>),
    /// The connection was lost before any event was written. The stream has not ended.
    Lost(Error),
    /// The host stopped the turn. The stream has ended as `cancelled` if it had begun.
    Stopped(S),
}

/// Reads `body` to its end, or to the provider's end mark, and writes its events. Events are
/// flushed before each wait for bytes, and whenever the host reports that a flush is due while
/// bytes arrive without a pause.
///
/// # Errors
/// The host's failures, including those that occur during a wait.
pub async fn write_events<H: Host>(
    body: &mut Body,
    stream: &mut Stream,
    host: &mut H,
) -> Result<ResponseEnd<H::Stop>, H::Failure> {
    let body_is_live = body.is_live();
    loop {
        let is_due = host.is_due();
        if is_due {
            host.flush().await?;
        }
        let at_hand = match host.stopped(is_due) {
            Some(stop) => Some(Err(stop)),
            // Everything is flushed, so this task may as well wait.
            None if is_due => None,
            None => tokio::select! {
                biased;
                piece = body.next() => Some(Ok(piece)),
                // Let the task that reads the connection run before this task flushes and waits.
                () = tokio::task::yield_now() => None,
            },
        };
        let next = match at_hand {
            Some(next) => next,
            None => {
                if !is_due {
                    host.flush().await?;
                }
                tokio::select! {
                    biased;
                    piece = body.next() => Ok(piece),
                    stop = host.stop() => Err(stop),
                }
            }
        };
        let (at, what, stop) = match next {
            Ok(piece) => (piece.at, Some(piece.what), host.stopped(false).transpose()?),
            Err(stop) => (body.stop(), None, Some(stop?)),
        };
        let had_started = stream.has_started();
        host.set_time(at, had_started);
        if host.has_times() {
            let stats = stream.stats();
            stats.duration_ms = at.map(millis).or(stats.duration_ms);
            if !had_started {
                stream.stats().first_event_ms = at.map(millis);
                if body_is_live {
                    stream.set_timestamp(now());
                }
            }
        }
        let stop = match stop {
            Some(stop) if !had_started => return Ok(ResponseEnd::Stopped(stop)),
            stop => stop,
        };
        let mut error = None;
        match what.filter(|_| stop.is_none()) {
            None => stream.finish(End::Cancelled, host.sink()),
            Some(PieceContent::Bytes(bytes)) => {
                stream.push(bytes, host.sink());
                host.set_kept(stream.kept() + body.kept());
                if let Some((api, id)) = stream.id().filter(|_| !stream.has_started()) {
                    host.set_id(api, id);
                }
            }
            Some(PieceContent::End) => stream.finish(End::Eof, host.sink()),
            Some(PieceContent::Lost(lost)) if !had_started => return Ok(ResponseEnd::Lost(lost)),
            Some(PieceContent::Lost(lost)) => {
                stream.finish(trouble::end(&lost, stream.server()), host.sink());
                error = Some(lost);
            }
        }
        host.check()?;
        if stream.has_started() && !had_started {
            host.note(Note::At("first event", at));
        }
        if stream.is_done() {
            host.note(Note::At("the stream ended", at));
            return Ok(stop.map_or(ResponseEnd::Ended(error), ResponseEnd::Stopped));
        }
    }
}

/// Returns the time since 1970 in milliseconds.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

fn millis(time: Duration) -> Millis {
    Millis {
        micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
    }
}
