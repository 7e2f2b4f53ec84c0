//! Time limits for a response.

use crate::Error;
use std::future::{Future, pending};
use std::time::Duration;
use tokio::time::Instant;

/// How long to wait for a response and its pieces. The default has no limits, which suits
/// recordings.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeLimits {
    /// The longest time without new bytes.
    pub idle: Option<Duration>,
    /// When the response must be complete.
    pub deadline: Option<Instant>,
}

impl TimeLimits {
    /// Waits for `work`.
    ///
    /// # Errors
    /// If a limit passes first, or if the deadline has already passed: a stream that always has
    /// bytes ready would otherwise never reach a wait.
    pub async fn wait<T>(self, work: impl Future<Output = T>) -> Result<T, Error> {
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

    /// Sleeps for `time`, such as before the next attempt.
    ///
    /// # Errors
    /// If the deadline passes first.
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
