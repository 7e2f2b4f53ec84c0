//! How long an answer may take.

use crate::Error;
use std::future::{Future, pending};
use std::time::Duration;
use tokio::time::Instant;

/// How long to wait for an answer and its pieces. No limits are the default, as a recording wants
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeLimits {
    /// The longest silence.
    pub idle: Option<Duration>,
    /// When everything must be over.
    pub deadline: Option<Instant>,
}

impl TimeLimits {
    /// Waits for `work`. `Err` when a limit passes first, or when the deadline has passed already:
    /// bytes that arrive without a pause never make a wait.
    pub(crate) async fn wait<T>(self, work: impl Future<Output = T>) -> Result<T, Error> {
        if self.is_over() {
            return Err(Error::deadline());
        }
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = until(self.deadline) => Err(Error::deadline()),
            silence = silence(self.idle) => Err(Error::idle(silence)),
        }
    }

    /// Waits for `time`, such as the pause before the next attempt.
    ///
    /// # Errors
    /// When the deadline passes first.
    pub async fn sleep(self, time: Duration) -> Result<(), Error> {
        TimeLimits { idle: None, ..self }
            .wait(tokio::time::sleep(time))
            .await
    }

    /// Whether the deadline has passed.
    pub fn is_over(self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => pending().await,
    }
}

async fn silence(longest: Option<Duration>) -> Duration {
    match longest {
        Some(time) => {
            tokio::time::sleep(time).await;
            time
        }
        None => pending().await,
    }
}
