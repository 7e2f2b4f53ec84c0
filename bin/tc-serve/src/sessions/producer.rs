//! Produces one response: its events are appended to the session's file, from which all clients
//! read.

use super::{LEFT, LiveSession, Outline, ResponseId, ResponseOutline, Sessions, line, status_of};
use crate::budget::NoRoom;
use crate::panics::{self, Panicked, caught};
use crate::pipe::Pipe;
use crate::tools::next_lines;
use api::FailedAnswer;
use event::Event;
use event::payload::{
    Cancel, Error, FinishReason, Payload, ResponseEnd, ResponseStatus, StreamEnd,
};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use store::{Lease, Store, StoreError};
use tokio::sync::Notify;
use trace::TraceContext;

/// A response in progress.
pub(crate) struct RunningResponse {
    /// The id of the response.
    pub id: ResponseId,
    /// The hash of the client's key; `None` if no key is required.
    pub key: Option<String>,
    /// The pipe that produces the response's lines.
    pipe: RefCell<Rc<Pipe>>,
    /// The name of the client's protocol.
    pub front: &'static str,
    /// Whether the response continues when its clients leave.
    pub is_background: bool,
    /// Whether the session is removed once the response has ended and no client reads it.
    pub is_temporary: bool,
    /// The `Idempotency-Key` of the request.
    pub idempotency: Option<String>,
    /// The hash of the request's body.
    pub body_hash: String,
    /// The span of the response; `None` if it is not traced.
    pub trace: Option<TraceContext>,
    /// How many clients wait for the response.
    clients: Cell<usize>,
    /// Who cancelled the response; `None` if no one has.
    cancelled: RefCell<Option<String>>,
    /// Notified when the response is cancelled or has ended.
    changed: Notify,
    has_ended: Cell<bool>,
    /// Why the lines could not be written; `None` if there was no such failure.
    failure: RefCell<Option<FailedAnswer>>,
}

impl RunningResponse {
    /// Creates the response `id` for the client whose key has this hash, requested in the protocol
    /// `front` and produced by `pipe`. `idempotency` and `body_hash` identify repeated requests of
    /// a client.
    pub(crate) fn new(
        id: ResponseId,
        key: Option<String>,
        front: &'static str,
        pipe: Rc<Pipe>,
    ) -> RunningResponse {
        RunningResponse {
            id,
            key,
            pipe: RefCell::new(pipe),
            front,
            is_background: false,
            is_temporary: false,
            idempotency: None,
            body_hash: String::new(),
            trace: None,
            clients: Cell::new(0),
            cancelled: RefCell::default(),
            changed: Notify::new(),
            has_ended: Cell::new(false),
            failure: RefCell::default(),
        }
    }

    /// Returns the pipe that produces the response's lines.
    pub(crate) fn pipe(&self) -> Rc<Pipe> {
        Rc::clone(&self.pipe.borrow())
    }

    /// Sets the pipe that produces the lines of the next turn.
    pub(crate) fn set_pipe(&self, pipe: &Rc<Pipe>) {
        *self.pipe.borrow_mut() = Rc::clone(pipe);
    }

    /// Cancels the response. The session names the first one who cancels it. Does nothing if the
    /// response has ended.
    pub(crate) fn cancel(&self, by: &str) {
        if !self.has_ended.get() {
            self.cancelled
                .borrow_mut()
                .get_or_insert_with(|| by.to_owned());
            self.changed.notify_waiters();
        }
    }

    /// Whether the response was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.borrow().is_some()
    }

    /// Waits until the response is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.until(RunningResponse::is_cancelled).await;
    }

    /// Waits until the response has ended and is completely written to the session.
    pub(crate) async fn ended(&self) {
        self.until(|running| running.has_ended.get()).await;
    }

    /// Returns why the lines could not be written, if the response ended for that reason.
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

/// A client that waits for a response. When the last client leaves, a response that is not in the
/// background is cancelled.
pub(crate) struct WaitingClient {
    sessions: Rc<Sessions>,
    running: Rc<RunningResponse>,
    /// Whether the response is cancelled if this client is the last to leave.
    cancels: bool,
}

impl WaitingClient {
    /// Adds a client to the response.
    pub(crate) fn new(sessions: &Rc<Sessions>, running: &Rc<RunningResponse>) -> WaitingClient {
        running.clients.set(running.clients.get() + 1);
        WaitingClient {
            sessions: Rc::clone(sessions),
            running: Rc::clone(running),
            cancels: true,
        }
    }
}

impl WaitingClient {
    /// Removes a client that has received all it will get, without cancelling the response. The
    /// client's stream may have ended as failed because it cannot retract what it sent, while the
    /// response itself may still complete.
    pub(crate) fn leave_served(mut self) {
        self.cancels = false;
    }
}

impl Drop for WaitingClient {
    fn drop(&mut self) {
        let WaitingClient {
            sessions, running, ..
        } = self;
        let left = running.clients.get() - 1;
        running.clients.set(left);
        if left == 0 && self.cancels && !running.is_background {
            running.cancel(LEFT);
        }
        if left == 0 {
            sessions.clean_up(running);
        }
    }
}

impl Sessions {
    /// Removes a session that was written for only one response, once no one needs it.
    fn clean_up(&self, running: &RunningResponse) {
        if running.is_temporary && running.has_ended.get() && running.clients.get() == 0 {
            // If someone is answering a call of the session, the removal fails and the session
            // stays.
            let _ = self.remove(running.id.session, running.key.as_deref());
        }
    }
}

/// Appends a response to a session.
pub(crate) struct SessionWriter {
    sessions: Rc<Sessions>,
    /// The session.
    pub session: Rc<LiveSession>,
    /// The session's lease; `None` while another process writes on behalf of this one.
    lease: Option<Lease>,
    /// The offset of the session's end, as far as this writer knows.
    pub end: u64,
}

/// How long to wait before trying again to take a lease. Needed because the system reports a file
/// as closed before it releases the lock.
const RETRY: Duration = Duration::from_millis(20);

impl SessionWriter {
    /// Creates a writer that holds the lease of the session, which ends at `end`.
    pub(crate) fn new(
        sessions: &Rc<Sessions>,
        session: &Rc<LiveSession>,
        lease: Lease,
        end: u64,
    ) -> SessionWriter {
        session.own();
        SessionWriter {
            sessions: Rc::clone(sessions),
            session: Rc::clone(session),
            lease: Some(lease),
            end,
        }
    }

    /// The sessions.
    pub(crate) fn sessions(&self) -> Rc<Sessions> {
        Rc::clone(&self.sessions)
    }

    /// Releases the lease so that another process can write to the session.
    pub(crate) fn hand_over(&mut self) {
        self.lease = None;
        self.session.is_own.set(false);
    }

    /// Creates a writer without the lease, which another process holds.
    pub(crate) fn waiting(sessions: &Rc<Sessions>, session: &Rc<LiveSession>) -> SessionWriter {
        SessionWriter {
            sessions: Rc::clone(sessions),
            session: Rc::clone(session),
            lease: None,
            end: 0,
        }
    }

    /// Takes the lease back once no one else holds it.
    ///
    /// # Errors
    /// As [`Store::lease`].
    pub(crate) async fn take_back(&mut self) -> Result<(), StoreError> {
        while self.lease.is_none() {
            match self.sessions.store.lease(self.session.id) {
                Ok((lease, end)) => {
                    let before = std::mem::replace(&mut self.end, end);
                    self.lease = Some(lease);
                    self.session.own();
                    // 0 means that the writer has only waited for the session and never knew its
                    // end.
                    if before > 0 && end > before {
                        let id = self.session.id;
                        self.sessions.count_appended(id, before..end).await;
                    }
                }
                Err(StoreError::Busy) => tokio::time::sleep(RETRY).await,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the outline of the session. A long unread part is read on another thread.
    ///
    /// # Errors
    /// As [`Sessions::outline`].
    pub(crate) async fn outline(&self) -> Result<Rc<Outline>, StoreError> {
        self.sessions.read_ahead(self.session.id).await?;
        self.outline_now()
    }

    /// Does the same on this thread, for callers that check every change and so have little to
    /// read.
    ///
    /// # Errors
    /// As [`Sessions::outline`].
    pub(crate) fn outline_now(&self) -> Result<Rc<Outline>, StoreError> {
        self.sessions.outline(self.session.id)
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// As [`Store::append`]; [`StoreError::Busy`] while another process writes.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let lease = self.lease.as_mut().ok_or(StoreError::Busy)?;
        let begin = self.end;
        self.end = self.sessions.store.append(lease, begin, lines)?;
        self.sessions.metrics.appended(lines.len() as u64);
        self.session.appended(begin, lines);
        Ok(())
    }

    /// Appends the messages that users sent in the meantime.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn take_in(&mut self) -> Result<(), StoreError> {
        let said = self.session.take_put_off();
        self.append(&said)
    }

    /// Appends an event.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn event(&mut self, payload: &Payload<'_>) -> Result<(), StoreError> {
        self.append(&line(payload))
    }

    /// Ends a response that was left unfinished by a service that was killed or ran out of disk
    /// space. If its output is complete, only the end line is missing and appended.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn end_left(&mut self, left: &ResponseOutline) -> Result<(), StoreError> {
        match left.reason.filter(|_| !left.is_open) {
            Some(
                reason @ (FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter),
            ) => self.end_response(&left.id, status_of(Some(reason))),
            _ => self.interrupt(&left.id),
        }
    }

    /// Ends a response that was cut off when a service stopped. What a client has seen cannot be
    /// retracted, and the rest will not be written.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn interrupt(&mut self, id: &str) -> Result<(), StoreError> {
        self.cut_turn()?;
        self.end_response(id, ResponseStatus::Interrupted)
    }

    /// Ends a turn that was cut off when the service stopped.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn cut_turn(&mut self) -> Result<(), StoreError> {
        self.fail(
            INTERRUPTED,
            "the service was stopped before the answer had ended",
        )
    }

    /// Appends an error that ends the response.
    ///
    /// # Errors
    /// As [`SessionWriter::append`].
    pub(crate) fn fail(&mut self, code: &str, message: &str) -> Result<(), StoreError> {
        let error = Error {
            retryable: true,
            status: Some(500),
            ..Error::new("tc-serve", code, message)
        };
        self.event(&error.into())?;
        self.event(&stream_end(FinishReason::Error).into())
    }

    fn end_response(&mut self, id: &str, status: ResponseStatus) -> Result<(), StoreError> {
        let end = ResponseEnd {
            id: id.into(),
            status: status.name().into(),
            timestamp: Some(store::now()),
            ..ResponseEnd::default()
        };
        self.event(&end.into())?;
        if let (Some(traces), Some(id)) = (&self.sessions.traces, ResponseId::of(id)) {
            let file = self.sessions.store.path_of(id.session);
            traces.response(&file, id, self.end);
        }
        Ok(())
    }

    /// Releases the session for other writers. The returned future waits until all appended lines
    /// are on disk.
    fn release(mut self) -> impl Future<Output = ()> + use<> {
        let file = self.lease.take().map(Lease::release);
        async {
            if let Some(Ok(file)) = file {
                // If the disk fails now, the next append reports it.
                let _ = tokio::task::spawn_blocking(move || file.sync_data()).await;
            }
        }
    }
}

impl Drop for SessionWriter {
    fn drop(&mut self) {
        self.session.is_own.set(false);
    }
}

/// The error code of a response that was cut off when a service stopped.
pub(crate) const INTERRUPTED: &str = "interrupted";

fn stream_end(finish_reason: FinishReason) -> StreamEnd<'static> {
    StreamEnd {
        finish_reason,
        ..StreamEnd::default()
    }
}

/// How producing a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// The response is complete.
    Whole,
    /// The response failed, and the session contains the error.
    Failed,
    /// The response failed because of a bug, which is not in the session yet.
    Panicked,
    /// The service is stopping, and resumes the response after a restart.
    Left,
}

/// Runs `make` until the response has ended, is cancelled, or its session cannot be written. Then
/// writes the end of the response to the session.
pub(crate) async fn produce(
    running: Rc<RunningResponse>,
    mut writer: SessionWriter,
    make: impl AsyncFnOnce(&RunningResponse, &mut SessionWriter) -> Result<Made, StoreError>,
) {
    let sessions = writer.sessions();
    let _open = sessions.metrics.open(running.front);
    let producers = sessions.producers.clone();
    producers.send_modify(|count| *count += 1);
    let made = tokio::select! {
        biased;
        () = running.cancelled() => Ok(Made::Failed),
        made = caught(make(&running, &mut writer)) => match made {
            Ok(made) => made,
            Err(Panicked) => Ok(Made::Panicked),
        },
    };
    let ended = async {
        let mut made = made?;
        if made == Made::Panicked {
            writer.take_back().await?;
            writer.fail(panics::CODE, panics::MESSAGE)?;
            made = Made::Failed;
        }
        end(&running, &mut writer, made).await.map(|()| made)
    };
    let ended = ended.await;
    if running.is_background && !matches!(ended, Ok(Made::Left)) {
        sessions.forget_left(running.id.session);
    }
    if let Err(error) = ended {
        *running.failure.borrow_mut() = Some(not_written(&error));
    }
    let session = Rc::clone(&writer.session);
    // A client that has seen the end may continue at once, and must find the session free to write.
    let on_disk = writer.release();
    session.running.take();
    running.has_ended.set(true);
    running.changed.notify_waiters();
    session.notify();
    sessions.clean_up(&running);
    on_disk.await;
    producers.send_modify(|count| *count -= 1);
}

/// Writes the end of a response.
async fn end(
    running: &RunningResponse,
    writer: &mut SessionWriter,
    made: Made,
) -> Result<(), StoreError> {
    let id = running.id.to_string();
    let by = running.cancelled.borrow().clone();
    if let Some(by) = by {
        let is_own = writer.lease.is_some();
        writer.take_back().await?;
        writer.event(&cancelled(&id, &by).into())?;
        let end = stream_end(FinishReason::Cancelled);
        if is_own {
            let pipe = running.pipe();
            push(&pipe, &end.into());
            pipe.finish();
            writer.append(&pipe.take())?;
        } else if writer
            .outline()
            .await?
            .responses
            .last()
            .is_none_or(|last| last.is_open || last.reason != Some(FinishReason::Cancelled))
        {
            // The turn may have ended before its calls did, so the response is still open.
            writer.event(&end.into())?;
        }
    } else if made == Made::Left {
        return Ok(());
    }
    let status = match made {
        _ if running.is_cancelled() => ResponseStatus::Cancelled,
        Made::Failed | Made::Panicked => ResponseStatus::Failed,
        Made::Whole | Made::Left => match running.pipe().reason() {
            // The service was killed after the last turn, or the request only answered calls.
            None => match writer
                .outline()
                .await?
                .active()
                .and_then(|left| left.reason)
            {
                None => ResponseStatus::Completed,
                reason => status_of(reason),
            },
            reason => status_of(reason),
        },
    };
    writer.end_response(&id, status)?;
    writer.take_in()
}

/// Produces a response from what `work` pushes into its pipe.
///
/// # Errors
/// As [`SessionWriter::append`].
pub(crate) async fn one_turn(
    running: &RunningResponse,
    writer: &mut SessionWriter,
    work: impl Future<Output = ()>,
) -> Result<Made, StoreError> {
    let pipe = running.pipe();
    let mut work = pin!(work);
    loop {
        let (lines, is_done) = next_lines(work.as_mut(), &pipe).await;
        writer.append(&lines)?;
        if is_done {
            return Ok(Made::Whole);
        }
        // Yield, since the source may never have to wait.
        tokio::task::yield_now().await;
    }
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

/// Returns the failure of a response whose session cannot be written, or does not fit the memory
/// budget.
pub(crate) fn not_written(error: &StoreError) -> FailedAnswer {
    if let StoreError::Io(error) = error
        && let Some(no_room) = error
            .get_ref()
            .and_then(|error| error.downcast_ref::<NoRoom>())
    {
        return no_room.failure();
    }
    FailedAnswer {
        status: 507,
        code: "session_not_written".to_owned(),
        message: format!("the session cannot be written: {error}"),
        ..FailedAnswer::default()
    }
}
