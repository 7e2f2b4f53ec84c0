//! A connection with limits on how long its client may take.

use crate::life::ConnectionPhase;
use client::LazyTimer;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// A connection with limits on how long its client may take: for the head of a request, between two
/// requests, and to read what it is sent. A limit that has passed is an error of the connection,
/// which closes it. hyper has a limit on heads too, but counts the time between two requests as a
/// part of it. All clones are the same connection.
pub(super) struct TimedWire<S>(Rc<RefCell<TimedState<S>>>);

struct TimedState<S> {
    wire: S,
    phase: Rc<ConnectionPhase>,
    reader_time: Duration,
    reading: LazyTimer,
    /// When the write that waits for the client fails; `None` if none waits.
    write_deadline: Option<Instant>,
    writing: LazyTimer,
    /// Bytes of further requests, which were read to find out whether the client is still there.
    ahead: Vec<u8>,
    /// There were more of them than are kept, so that none can be answered.
    has_overrun: bool,
}

/// The most bytes that are kept of what a client sends behind a request while that is answered. No
/// client needs many: a request whose repetition may do harm is not to be sent before the answer to
/// another ([RFC 9112, section 9.3.2](https://www.rfc-editor.org/rfc/rfc9112#section-9.3.2)).
const AHEAD: usize = 64 << 10;

impl<S> Clone for TimedWire<S> {
    fn clone(&self) -> Self {
        TimedWire(Rc::clone(&self.0))
    }
}

/// The result of a read or write for which a client took too long.
fn timed_out<T>((): ()) -> io::Result<T> {
    Err(io::ErrorKind::TimedOut.into())
}

impl<S: AsyncRead + Unpin> TimedWire<S> {
    /// A connection that has just been accepted.
    pub(super) fn new(wire: S, phase: Rc<ConnectionPhase>, reader_time: Duration) -> Self {
        TimedWire(Rc::new(RefCell::new(TimedState {
            wire,
            phase,
            reader_time,
            reading: LazyTimer::default(),
            write_deadline: None,
            writing: LazyTimer::default(),
            ahead: Vec::new(),
            has_overrun: false,
        })))
    }

    /// Waits until the client has left in the middle of an answer. hyper looks for that only while
    /// it expects another request. All that the client sends is read: its end is behind it.
    pub(super) async fn left(&self) {
        poll_fn(|cx| self.0.borrow_mut().poll_left(cx)).await;
    }

    /// Waits until the client has sent more behind a request than is kept. Only [`TimedWire::left`]
    /// finds that out, so the two are polled together, in this order.
    pub(super) async fn overrun(&self) {
        poll_fn(|_| {
            if self.0.borrow().has_overrun {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl<S> TimedWire<S> {
    /// Ready with what `take` gives, as soon as no write waits for the client.
    pub(super) fn when_written<T>(&self, take: impl FnOnce() -> Option<T>) -> Poll<T> {
        let is_written = self.0.borrow().write_deadline.is_none();
        let taken = is_written.then(take).flatten();
        taken.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<S: AsyncRead + Unpin> TimedState<S> {
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.phase.is_answering() {
            return Poll::Pending;
        }
        loop {
            let mut block = [MaybeUninit::uninit(); 4096];
            let mut buf = ReadBuf::uninit(&mut block);
            match ready!(Pin::new(&mut self.wire).poll_read(cx, &mut buf)) {
                Ok(()) if buf.filled().is_empty() => return Poll::Ready(()),
                Err(_) => return Poll::Ready(()),
                Ok(()) if self.has_overrun => {}
                Ok(()) if self.ahead.len() + buf.filled().len() > AHEAD => {
                    self.has_overrun = true;
                    self.ahead = Vec::new();
                }
                Ok(()) => {
                    self.ahead.extend_from_slice(buf.filled());
                    // hyper waits for bytes of the wire, and these are not there any more.
                    cx.waker().wake_by_ref();
                }
            }
        }
    }
}

impl<S> TimedState<S> {
    /// The result of a write: an error if nothing could be written for too long.
    fn wrote(
        &mut self,
        result: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.write_deadline = None;
            return result;
        }
        let latest = || Instant::now() + self.reader_time;
        let deadline = *self.write_deadline.get_or_insert_with(latest);
        self.writing.poll(deadline, cx).map(timed_out)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWire<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self.0.borrow_mut();
        let before = buf.filled().len();
        let result = if this.has_overrun {
            // The connection ends with the answer, and nothing more is read of it.
            if this.phase.is_answering() {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            }
        } else if this.ahead.is_empty() {
            Pin::new(&mut this.wire).poll_read(cx, buf)
        } else {
            let count = this.ahead.len().min(buf.remaining());
            buf.put_slice(&this.ahead[..count]);
            this.ahead.drain(..count);
            Poll::Ready(Ok(()))
        };
        if result.is_ready() {
            if buf.filled().len() > before {
                this.phase.has_bytes();
            }
            // A client that sends its head a byte at a time never makes a long wait, so the
            // deadline is looked at here, too.
            return match this.phase.deadline() {
                Some(deadline) if deadline <= Instant::now() => Poll::Ready(timed_out(())),
                _ => result,
            };
        }
        match this.phase.deadline() {
            Some(deadline) => this.reading.poll(deadline, cx).map(timed_out),
            None => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWire<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self.0.borrow_mut();
        let result = Pin::new(&mut this.wire).poll_write(cx, bytes);
        this.wrote(result, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self.0.borrow_mut();
        let result = Pin::new(&mut this.wire).poll_write_vectored(cx, bytes);
        this.wrote(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.borrow().wire.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().wire).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().wire).poll_shutdown(cx)
    }
}
