//! The shutdown of the service, and the timeouts of connections. Both the server and the requests
//! use them.

use crate::args::LimitArgs;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The state of the service's shutdown. All clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceEnd(Rc<EndingState>);

#[derive(Debug, Default)]
struct EndingState {
    has_begun: Cell<bool>,
    is_cut: Cell<bool>,
    changed: Notify,
}

impl ServiceEnd {
    /// Starts to reject requests for new responses.
    pub(crate) fn begin(&self) {
        self.0.has_begun.set(true);
        self.0.changed.notify_waiters();
    }

    /// Makes open responses end with an error.
    pub(crate) fn cut(&self) {
        self.0.is_cut.set(true);
        self.0.changed.notify_waiters();
    }

    /// Whether [`ServiceEnd::begin`] was called.
    pub(crate) fn has_begun(&self) -> bool {
        self.0.has_begun.get()
    }

    /// Waits for [`ServiceEnd::begin`].
    pub(crate) async fn begun(&self) {
        self.until(|state| state.has_begun.get()).await;
    }

    /// Whether open responses must end now.
    pub(crate) fn is_cut_now(&self) -> bool {
        self.0.is_cut.get()
    }

    /// Waits for [`ServiceEnd::cut`].
    pub(crate) async fn is_cut(&self) {
        self.until(|state| state.is_cut.get()).await;
    }

    async fn until(&self, is_so: impl Fn(&EndingState) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if is_so(&self.0) {
                return;
            }
            changed.await;
        }
    }
}

/// What a connection is currently waiting for.
#[derive(Debug)]
pub(crate) struct ConnectionPhase {
    /// When the head of a request, or its first byte, must have arrived; `None` while a request is
    /// being answered.
    deadline: Cell<Option<Instant>>,
    /// Whether the first byte of a head has not arrived yet.
    is_idle: Cell<bool>,
    /// Whether a complete request has arrived whose response is not complete.
    is_answering: Cell<bool>,
    /// Since when the connection has had no request in progress.
    since: Cell<Instant>,
    /// Whether a request with a valid key has arrived.
    is_known: Cell<bool>,
    header_time: Duration,
    idle_time: Duration,
}

impl ConnectionPhase {
    /// Creates the phase of a newly accepted connection.
    pub(crate) fn new(limits: &LimitArgs) -> ConnectionPhase {
        ConnectionPhase {
            deadline: Cell::new(Some(Instant::now() + limits.header_timeout)),
            is_idle: Cell::new(false),
            is_answering: Cell::new(false),
            since: Cell::new(Instant::now()),
            is_known: Cell::new(false),
            header_time: limits.header_timeout,
            idle_time: limits.connection_timeout,
        }
    }

    /// Records that the head of a request is complete.
    pub(crate) fn begin_request(&self) {
        self.is_idle.set(false);
        self.deadline.set(None);
    }

    /// Records that the client has sent a valid key.
    pub(crate) fn know(&self) {
        self.is_known.set(true);
    }

    /// Returns the connection's rank for being closed to make room for a new one: the connection
    /// with the smallest rank is closed first. Returns `None` while a request is in progress.
    pub(crate) fn rank(&self) -> Option<(bool, Instant)> {
        let is_idle = self.deadline.get().is_some();
        is_idle.then(|| (self.is_known.get(), self.since.get()))
    }

    /// Records that the body of the request is complete.
    pub(crate) fn begin_answer(&self) {
        self.is_answering.set(true);
    }

    /// Whether the next bytes belong to another request.
    pub(crate) fn is_answering(&self) -> bool {
        self.is_answering.get()
    }

    /// Records that the response is complete.
    pub(crate) fn end_request(&self) {
        self.is_answering.set(false);
        self.is_idle.set(true);
        self.since.set(Instant::now());
        self.deadline.set(Some(Instant::now() + self.idle_time));
    }

    /// Records that bytes have arrived.
    pub(crate) fn has_bytes(&self) {
        if self.is_idle.replace(false) {
            self.deadline.set(Some(Instant::now() + self.header_time));
        }
    }

    /// Returns when the connection is closed if nothing arrives; `None` while a request is being
    /// answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }
}
