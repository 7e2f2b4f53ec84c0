//! What a connection waits for, and until when.

use crate::args::Limits;
use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// What a connection waits for.
#[derive(Debug)]
pub struct ConnectionPhase {
    /// Until when the head of a request, or its first byte, has to come; `None` while a request is
    /// answered.
    deadline: Cell<Option<Instant>>,
    /// Whether the first byte of a head is still to come.
    is_idle: Cell<bool>,
    /// Whether a whole request has come, and its answer is not complete.
    is_answering: Cell<bool>,
    header_time: Duration,
    idle_time: Duration,
}

impl ConnectionPhase {
    /// The phase of a connection that has just been accepted.
    pub fn new(limits: &Limits) -> ConnectionPhase {
        let deadline = Cell::new(Some(Instant::now() + limits.header_time));
        let (header_time, idle_time) = (limits.header_time, limits.connection_time);
        let (is_idle, is_answering) = (Cell::new(false), Cell::new(false));
        ConnectionPhase {
            deadline,
            is_idle,
            is_answering,
            header_time,
            idle_time,
        }
    }

    /// The head of a request is complete.
    pub fn begin_request(&self) {
        self.is_idle.set(false);
        self.deadline.set(None);
    }

    /// The body of the request is complete.
    pub fn begin_answer(&self) {
        self.is_answering.set(true);
    }

    /// Whether the next bytes are those of another request.
    pub fn is_answering(&self) -> bool {
        self.is_answering.get()
    }

    /// The response is complete.
    pub fn end_request(&self) {
        self.is_answering.set(false);
        self.is_idle.set(true);
        self.deadline.set(Some(Instant::now() + self.idle_time));
    }

    /// Bytes have come.
    pub fn has_bytes(&self) {
        if self.is_idle.replace(false) {
            self.deadline.set(Some(Instant::now() + self.header_time));
        }
    }

    /// When the connection is closed if nothing changes.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }
}
