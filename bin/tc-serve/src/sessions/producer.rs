//! One response while it is made: its events go into the session's file, whoever reads them there.

use super::{LiveSession, ResponseId, Sessions, line};
use crate::pipe::Pipe;
use api::FailedAnswer;
use event::Event;
use event::payload::{
    Cancel, Error, FinishReason, Payload, ResponseEnd, ResponseStatus, StreamEnd,
};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use store::{Lease, Store, StoreError};
use tokio::sync::Notify;

/// One response while it is made.
pub(crate) struct RunningResponse {
    /// Its id.
    pub id: ResponseId,
    /// The hash of the key of the client that asked.
    pub key: Option<String>,
    /// The pipe that makes its lines.
    pub pipe: Rc<Pipe>,
    /// Whether it goes on when its clients leave.
    pub is_background: bool,
    /// The `Idempotency-Key` of its request.
    pub idempotency: Option<String>,
    /// The hash of its request's body.
    pub body_hash: String,
    /// How many clients wait for it.
    clients: Cell<usize>,
    /// Who cancelled it.
    cancelled: RefCell<Option<String>>,
    /// Somebody has cancelled it, or it has ended.
    changed: Notify,
    has_ended: Cell<bool>,
    /// Why its lines could not be written.
    failure: RefCell<Option<FailedAnswer>>,
}

impl RunningResponse {
    /// A response that begins: `id` of the client whose key has this hash, made by `pipe`. Clients
    /// that send their request again are known by `idempotency` and `body_hash`.
    pub(crate) fn new(id: ResponseId, key: Option<String>, pipe: Rc<Pipe>) -> RunningResponse {
        RunningResponse {
            id,
            key,
            pipe,
            is_background: false,
            idempotency: None,
            body_hash: String::new(),
            clients: Cell::new(0),
            cancelled: RefCell::default(),
            changed: Notify::new(),
            has_ended: Cell::new(false),
            failure: RefCell::default(),
        }
    }

    /// Cancels it; the first to do so is named in the session. A response that has ended stays as it
    /// is.
    pub(crate) fn cancel(&self, by: &str) {
        if !self.has_ended.get() {
            self.cancelled
                .borrow_mut()
                .get_or_insert_with(|| by.to_owned());
            self.changed.notify_waiters();
        }
    }

    /// Whether somebody has cancelled it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.borrow().is_some()
    }

    /// Waits until it has ended, and all of it is in the session.
    pub(crate) async fn ended(&self) {
        self.until(|running| running.has_ended.get()).await;
    }

    /// Why its lines could not be written, once it has ended so.
    pub(crate) fn failure(&self) -> Option<FailedAnswer> {
        self.failure.borrow().clone()
    }

    async fn until(&self, is_so: impl Fn(&RunningResponse) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }
}

/// A client that waits for a response. When the last one leaves, a response that is not in the
/// background is cancelled.
pub(crate) struct WaitingClient(Rc<RunningResponse>);

impl WaitingClient {
    /// One more client.
    pub(crate) fn new(running: &Rc<RunningResponse>) -> WaitingClient {
        running.clients.set(running.clients.get() + 1);
        WaitingClient(Rc::clone(running))
    }
}

impl Drop for WaitingClient {
    fn drop(&mut self) {
        let left = self.0.clients.get() - 1;
        self.0.clients.set(left);
        if left == 0 && !self.0.is_background {
            self.0.cancel(LEFT);
        }
    }
}

/// Who cancels a response whose last client has left.
pub(crate) const LEFT: &str = "disconnect";

/// A session that a response is written to.
pub(crate) struct SessionWriter {
    sessions: Rc<Sessions>,
    session: Rc<LiveSession>,
    lease: Lease,
    /// The offset of the end.
    pub end: u64,
}

impl SessionWriter {
    /// A writer that holds the lease of the session, which ends at `end`.
    pub(crate) fn new(
        sessions: &Rc<Sessions>,
        session: &Rc<LiveSession>,
        lease: Lease,
        end: u64,
    ) -> SessionWriter {
        SessionWriter {
            sessions: Rc::clone(sessions),
            session: Rc::clone(session),
            lease,
            end,
        }
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// See [`Store::append`]; and a session that would become longer than it may.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let store = &self.sessions.store;
        self.end = store.append(&mut self.lease, self.end, lines)?;
        // The system tells, too, but later.
        self.session.changed.notify_waiters();
        Ok(())
    }

    /// Appends an event.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn event(&mut self, payload: &Payload<'_>) -> Result<(), StoreError> {
        self.append(&line(payload))
    }

    /// Ends a response that was cut when a service ended: what a client has seen of it cannot be
    /// taken back, and nobody writes the rest.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn interrupt(&mut self, id: &str) -> Result<(), StoreError> {
        let message = "the service was stopped before the answer had ended";
        let error = Error {
            retryable: true,
            status: Some(500),
            ..Error::new("tc-serve", INTERRUPTED, message)
        };
        self.event(&error.into())?;
        self.event(&stream_end(FinishReason::Error).into())?;
        self.end_response(id, ResponseStatus::Interrupted)
    }

    fn end_response(&mut self, id: &str, status: ResponseStatus) -> Result<(), StoreError> {
        let end = ResponseEnd {
            id: id.into(),
            status: status.name().into(),
            timestamp: Some(store::now()),
        };
        self.event(&end.into())
    }

    /// Waits until all that was appended is on disk.
    async fn sync(&self) {
        let Ok(file) = self.lease.file() else { return };
        // A disk that fails now fails the next append, too.
        let _ = tokio::task::spawn_blocking(move || file.sync_data()).await;
    }
}

/// The code of the error in a response that was cut when a service ended.
pub(crate) const INTERRUPTED: &str = "interrupted";

fn stream_end(finish_reason: FinishReason) -> StreamEnd<'static> {
    StreamEnd {
        finish_reason,
        ..StreamEnd::default()
    }
}

/// Appends what `work` pushes into the pipe of `running` to the session, until it ends, somebody
/// cancels it, or the session cannot be written.
pub(crate) async fn produce(
    running: Rc<RunningResponse>,
    mut writer: SessionWriter,
    work: impl Future<Output = ()>,
) {
    let id = running.id.to_string();
    let producers = writer.sessions.producers.clone();
    producers.send_modify(|count| *count += 1);
    let written = tokio::select! {
        biased;
        () = running.until(RunningResponse::is_cancelled) => Ok(()),
        written = drive(&running.pipe, &mut writer, work) => written,
    };
    let written = written.and_then(|()| {
        let by = running.cancelled.borrow().clone();
        if let Some(by) = by {
            writer.event(&cancelled(&id, &by).into())?;
            push(&running.pipe, &stream_end(FinishReason::Cancelled).into());
        }
        running.pipe.finish();
        writer.append(&running.pipe.take())?;
        writer.end_response(&id, status(&running))
    });
    if let Err(error) = written {
        *running.failure.borrow_mut() = Some(not_written(&error));
    } else {
        writer.sync().await;
    }
    let session = Rc::clone(&writer.session);
    // The next request finds a session that nobody writes.
    drop(writer);
    session.running.take();
    running.has_ended.set(true);
    running.changed.notify_waiters();
    session.changed.notify_waiters();
    producers.send_modify(|count| *count -= 1);
}

fn push(pipe: &Pipe, payload: &Payload<'_>) {
    pipe.push(&Event::of(payload, None, 0, None));
}

fn cancelled<'a>(id: &'a str, by: &'a str) -> Cancel<'a> {
    Cancel {
        id: Some(id.into()),
        by: by.into(),
        ..Cancel::default()
    }
}

/// How a response ended.
fn status(running: &RunningResponse) -> ResponseStatus {
    match running.pipe.reason() {
        _ if running.is_cancelled() => ResponseStatus::Cancelled,
        Some(FinishReason::Stop | FinishReason::ToolCalls) => ResponseStatus::Completed,
        Some(FinishReason::Length | FinishReason::ContentFilter) => ResponseStatus::Incomplete,
        Some(FinishReason::Cancelled) => ResponseStatus::Cancelled,
        Some(FinishReason::Error | FinishReason::Cut) | None => ResponseStatus::Failed,
    }
}

/// The failure of an answer that could not be written down.
pub(crate) fn not_written(error: &StoreError) -> FailedAnswer {
    FailedAnswer {
        status: 507,
        code: "session_not_written".to_owned(),
        message: format!("the session cannot be written: {error}"),
        ..FailedAnswer::default()
    }
}

/// Polls `work`, and appends what it has pushed, until it ends.
///
/// # Errors
/// As [`SessionWriter::append`].
async fn drive(
    pipe: &Pipe,
    writer: &mut SessionWriter,
    work: impl Future<Output = ()>,
) -> Result<(), StoreError> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let is_done = work.as_mut().poll(cx).is_ready();
        let lines = pipe.take();
        if let Err(error) = writer.append(&lines) {
            return Poll::Ready(Err(error));
        }
        if is_done {
            return Poll::Ready(Ok(()));
        }
        if !lines.is_empty() {
            // The work may wait for room, and then nothing else wakes it.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}
