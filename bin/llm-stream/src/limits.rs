//! How long an answer may take, and what else ends it from outside.

use crate::interrupt::{Stop, Watch};
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;
use upstream::End;

/// How long to wait. Both are absent on replay, where the recording says what happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The longest silence.
    pub idle: Option<Duration>,
    /// When everything must be over.
    pub deadline: Option<Instant>,
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

    /// The limit that has passed while bytes arrive without a pause, when no wait sees it. With `asks` the system is asked whether
    /// the reader of standard output left, which costs a call.
    pub fn passed(&self, watch: &Watch, asks: bool) -> Option<Over> {
        if let Some(signal) = watch.signal() {
            return Some(Over::Stop(Stop::Signal(signal)));
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Some(Over::Deadline);
        }
        (asks && stdio::reader_gone(Some(Duration::ZERO))).then_some(Over::Stop(Stop::Gone))
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
        let due = now.saturating_duration_since(*self.last.get_or_insert(now)) >= PULSE;
        if due {
            self.last = Some(now);
        }
        due
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
