//! Time limits for a response.

use crate::{Error, LazyTimer};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, ready};
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
        TimedWaits::new(self).wait(work).await
    }

    /// Whether the deadline has passed.
    pub fn is_over(self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }
}

/// The waits for the pieces of one response, which share a timer.
#[derive(Debug)]
pub(crate) struct TimedWaits {
    limits: TimeLimits,
    /// When the current wait began; `None` if nothing is waited for.
    since: Option<Instant>,
    timer: LazyTimer,
}

impl TimedWaits {
    /// Creates the state before the first wait.
    pub(crate) fn new(limits: TimeLimits) -> TimedWaits {
        TimedWaits {
            limits,
            since: None,
            timer: LazyTimer::default(),
        }
    }

    /// Does the same as [`TimeLimits::wait`]. A wait that was dropped goes on with the next call.
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        if self.limits.is_over() {
            return Err(Error::deadline());
        }
        let mut work = pin!(work);
        let ended = poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll_over(cx).map(Err),
        });
        let ended = ended.await;
        self.since = None;
        ended
    }

    /// Returns which limit of the current wait has passed.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        let TimeLimits { idle, deadline } = self.limits;
        let silent = idle.map(|idle| (*self.since.get_or_insert_with(Instant::now) + idle, idle));
        let first = silent.map(|(silent, _)| silent);
        let first = first.into_iter().chain(deadline).min();
        let Some(first) = first else {
            return Poll::Pending;
        };
        ready!(self.timer.poll(first, cx));
        Poll::Ready(match silent {
            Some((silent, idle)) if deadline.is_none_or(|deadline| silent < deadline) => {
                Error::idle(idle)
            }
            _ => Error::deadline(),
        })
    }
}
