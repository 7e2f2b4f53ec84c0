//! A timer for a deadline that moves with each event.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for a deadline that each event moves. It is armed again only when it fires before the
/// deadline, because arming it costs more than to look at an event: a stream of hundreds of events
/// a second arms it once.
#[derive(Debug, Default)]
pub struct LazyTimer(Option<Pin<Box<Sleep>>>);

impl LazyTimer {
    /// Whether `deadline` has passed; wakes the task at the deadline, or before it.
    pub fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = (self.0).get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if deadline <= sleep.deadline() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}
