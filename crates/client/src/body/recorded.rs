//! A recorded body in memory, played at a chosen speed.

use super::piece::{BodyPiece, PieceContent};
use crate::{Recording, Speed};
use std::time::Duration;
use tokio::time::Instant;

/// A recorded body in memory, played at a chosen speed.
#[derive(Debug)]
pub(crate) struct RecordedBody {
    recording: Recording,
    speed: Speed,
    begin: Instant,
    next: usize,
    /// All stalls so far, which count as time of the stream.
    stalled: Duration,
    /// When the next read is due, once a wait for it began.
    due: Option<Instant>,
}

impl RecordedBody {
    /// A body whose request is sent now.
    pub(crate) fn new(recording: Recording, speed: Speed) -> RecordedBody {
        RecordedBody {
            recording,
            speed,
            begin: Instant::now(),
            next: 0,
            stalled: Duration::ZERO,
            due: None,
        }
    }

    pub(crate) async fn next(&mut self) -> BodyPiece<'_> {
        let read = self.recording.reads.get(self.next);
        let (at, stall) = read.map_or((self.recording.ended, Duration::ZERO), |read| {
            (read.at, read.stall)
        });
        if self.due.is_none() {
            let due = self.due(at);
            if !stall.is_zero() {
                self.stalled += stall;
                self.due = Some(due.unwrap_or_else(Instant::now) + stall);
            } else {
                self.due = due;
            }
        }
        if let Some(due) = self.due {
            tokio::time::sleep_until(due).await;
        }
        self.due = None;
        let at = at.map(|at| at + self.stalled);
        self.next += 1;
        let what = match (
            self.recording.reads.get(self.next - 1),
            &self.recording.error,
        ) {
            (Some(read), _) => PieceContent::Bytes(&read.bytes),
            (None, Some(error)) => PieceContent::Lost(error.clone()),
            (None, None) => PieceContent::End,
        };
        BodyPiece { at, what }
    }

    fn due(&self, at: Option<Duration>) -> Option<Instant> {
        match (self.speed, at) {
            (Speed::Times(times), Some(at)) => Some(self.begin + at.div_f64(times) + self.stalled),
            _ => None,
        }
    }
}
