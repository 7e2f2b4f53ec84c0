//! How long things last: the service, and what a connection waits for. The server and the requests
//! both look at them.

use crate::args::LimitArgs;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The end of the service. All clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceEnd(Rc<EndingState>);

#[derive(Debug, Default)]
struct EndingState {
    has_begun: Cell<bool>,
    is_cut: Cell<bool>,
    changed: Notify,
}

impl ServiceEnd {
    /// Refuses requests for answers from now on.
    pub(crate) fn begin(&self) {
        self.0.has_begun.set(true);
        self.0.changed.notify_waiters();
    }

    /// Open answers end with an error.
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

    /// Whether open answers have to end now.
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

/// What a connection waits for.
#[derive(Debug)]
pub(crate) struct ConnectionPhase {
    /// Until when the head of a request, or its first byte, has to come; `None` while a request is
    /// answered.
    deadline: Cell<Option<Instant>>,
    /// Whether the first byte of a head is still to come.
    is_idle: Cell<bool>,
    /// Whether a whole request has come, and its answer is not complete.
    is_answering: Cell<bool>,
    /// Since when no request is under way.
    since: Cell<Instant>,
    /// Whether a request with a key of the service has come.
    is_known: Cell<bool>,
    header_time: Duration,
    idle_time: Duration,
}

impl ConnectionPhase {
    /// The phase of a connection that has just been accepted.
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

    /// The head of a request is complete.
    pub(crate) fn begin_request(&self) {
        self.is_idle.set(false);
        self.deadline.set(None);
    }

    /// The client has sent a key of the service.
    pub(crate) fn know(&self) {
        self.is_known.set(true);
    }

    /// Which connection gives way to another one: of those without a request the smallest; `None`
    /// while a request is under way.
    pub(crate) fn rank(&self) -> Option<(bool, Instant)> {
        let is_idle = self.deadline.get().is_some();
        is_idle.then(|| (self.is_known.get(), self.since.get()))
    }

    /// The body of the request is complete.
    pub(crate) fn begin_answer(&self) {
        self.is_answering.set(true);
    }

    /// Whether the next bytes are those of another request.
    pub(crate) fn is_answering(&self) -> bool {
        self.is_answering.get()
    }

    /// The response is complete.
    pub(crate) fn end_request(&self) {
        self.is_answering.set(false);
        self.is_idle.set(true);
        self.since.set(Instant::now());
        self.deadline.set(Some(Instant::now() + self.idle_time));
    }

    /// Bytes have come.
    pub(crate) fn has_bytes(&self) {
        if self.is_idle.replace(false) {
            self.deadline.set(Some(Instant::now() + self.header_time));
        }
    }

    /// When the connection is closed if nothing changes.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }
}
