//! A response body that is arriving from the network.

use crate::limits::TimedWaits;
use crate::{BodyPiece, Error, PieceContent, TimeLimits};
use api::tape::{Head, TapeEnding, TapeExchange, TapeRead};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// A body from the network, decompressed. It is recorded if a recording was started for it.
#[derive(Debug)]
pub(crate) struct LiveBody {
    response: reqwest::Response,
    sent: Instant,
    waits: TimedWaits,
    /// Bytes that arrived but were not returned yet.
    chunk: Bytes,
    /// The piece returned last.
    piece: Bytes,
    /// When `chunk` arrived.
    at: Duration,
    recording: Option<Box<TapeExchange>>,
    /// The time of the recording's last line.
    last: Duration,
    /// When the body ended or was stopped.
    ended: Option<Duration>,
    /// How many bytes the recording's reads hold.
    kept: usize,
}

impl LiveBody {
    /// Creates the body. `recording` holds the request; the response is added to it.
    pub(super) fn new(
        response: reqwest::Response,
        sent: Instant,
        limits: TimeLimits,
        head: &Head,
        recording: Option<Box<TapeExchange>>,
    ) -> LiveBody {
        let recording = recording.map(|exchange| {
            Box::new(TapeExchange {
                head: Some(head.clone()),
                ..*exchange
            })
        });
        LiveBody {
            response,
            sent,
            waits: TimedWaits::new(limits),
            chunk: Bytes::new(),
            piece: Bytes::new(),
            at: head.after,
            recording,
            last: head.after,
            ended: None,
            kept: 0,
        }
    }

    pub(crate) async fn next(&mut self) -> BodyPiece<'_> {
        self.piece = Bytes::new(); // a stream may be silent for minutes, and there may be thousands
        if !self.chunk.is_empty() {
            return self.next_piece();
        }
        let came = self.waits.wait(self.response.chunk()).await;
        let at = elapsed(self.sent);
        let what = match came.and_then(|chunk| chunk.map_err(|e| Error::from(&e))) {
            Ok(Some(bytes)) => {
                if let Some(exchange) = &mut self.recording {
                    exchange.reads.push(TapeRead {
                        after: at.saturating_sub(self.last),
                        bytes: bytes.to_vec(),
                    });
                    self.last = at;
                    self.kept += bytes.len() + size_of::<TapeRead>();
                }
                (self.chunk, self.at) = (bytes, at);
                return self.next_piece();
            }
            Ok(None) => PieceContent::End,
            Err(error) => PieceContent::Lost(error),
        };
        self.ended = Some(at);
        BodyPiece { at: Some(at), what }
    }

    fn next_piece(&mut self) -> BodyPiece<'_> {
        self.piece = self.chunk.split_to(self.chunk.len().min(PIECE));
        BodyPiece {
            at: Some(self.at),
            what: PieceContent::Bytes(&self.piece),
        }
    }

    /// Returns how many bytes of the body are held in memory for a tape.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    pub(crate) fn stop(&mut self) -> Duration {
        *self.ended.insert(elapsed(self.sent))
    }

    pub(crate) fn recorded(self, error: Option<&Error>) -> Option<Box<TapeExchange>> {
        let after = self
            .ended
            .unwrap_or_else(|| elapsed(self.sent))
            .saturating_sub(self.last);
        if self.ended.is_none() && error.is_none() {
            tokio::spawn(skip_rest(self.response));
        }
        Some(Box::new(TapeExchange {
            end: Some((after, ending(error))),
            ..*self.recording?
        }))
    }
}

/// The most bytes in one piece. The HTTP client reads up to 400 KiB at once; smaller pieces limit
/// how many events a slow reader holds in memory.
const PIECE: usize = 16 << 10;

/// The time limit and the byte limit for reading what follows a provider's end mark.
const REST: (Duration, usize) = (Duration::from_secs(1), 64 << 10);

/// Reads to the end of the body after a provider's end mark. A connection can be reused only if the
/// body was read to its end; otherwise it is closed.
async fn skip_rest(mut response: reqwest::Response) {
    let mut left = REST.1;
    let rest = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(REST.0, rest).await;
}

/// Returns how the response ended, in the form that a tape stores.
pub(super) fn ending(error: Option<&Error>) -> TapeEnding {
    match error {
        None => TapeEnding::Eof,
        Some(error) if error.is_timeout() => TapeEnding::Timeout,
        Some(_) => TapeEnding::Reset,
    }
}

/// Returns the time since `since`, rounded down to the microseconds that a tape stores.
pub(super) fn elapsed(since: Instant) -> Duration {
    Duration::from_micros(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX))
}
