//! A body that is read from sessions as the client consumes it, and the forms in which a session's
//! lines are sent.

use super::durable;
use crate::life::ServiceEnd;
use crate::sessions::{FollowerPlace, SessionReader, lines};
use hyper::body::Bytes;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A body that a future writes piece by piece. The future continues once the client has taken the
/// previous piece; dropping the body ends it.
pub(crate) struct FollowBody {
    work: Pin<Box<dyn Future<Output = io::Result<()>>>>,
    outlet: Rc<Outlet>,
    ended: Option<io::Result<()>>,
    /// How many bytes are still to come; `None` if unknown.
    pub length: Option<u64>,
}

/// The buffer into which the future of a [`FollowBody`] writes.
#[derive(Default)]
pub(super) struct Outlet(RefCell<Vec<u8>>);

impl Outlet {
    /// Sends bytes, and waits until they are taken.
    pub(super) async fn send(&self, bytes: Vec<u8>) {
        *self.0.borrow_mut() = bytes;
        // The consumer of the bytes polls the future again, so the future needs no waker.
        poll_fn(|_| match self.0.borrow().is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

impl FollowBody {
    /// Creates the body that `work` writes into the outlet. An error from `work` breaks the
    /// connection.
    pub(super) fn new<W>(length: Option<u64>, work: impl FnOnce(Rc<Outlet>) -> W) -> FollowBody
    where
        W: Future<Output = io::Result<()>> + 'static,
    {
        let outlet = Rc::<Outlet>::default();
        FollowBody {
            work: Box::pin(work(Rc::clone(&outlet))),
            outlet,
            ended: None,
            length,
        }
    }

    /// Returns the next bytes, or `None` after the last.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.ended.is_none()
            && let Poll::Ready(ended) = self.work.as_mut().poll(cx)
        {
            self.ended = Some(ended);
        }
        let bytes = self.outlet.0.take();
        if !bytes.is_empty() {
            self.length = self
                .length
                .map(|length| length.saturating_sub(bytes.len() as u64));
            return Poll::Ready(Ok(Some(bytes.into())));
        }
        match self.ended.replace(Ok(())) {
            Some(Ok(())) => Poll::Ready(Ok(None)),
            Some(Err(error)) => Poll::Ready(Err(error)),
            None => {
                self.ended = None;
                Poll::Pending
            }
        }
    }
}

/// The form in which followed lines are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineForm {
    /// The lines unchanged.
    Lines,
    /// Server-sent events: each line, with the offset after it as the id.
    Events,
    /// Server-sent events of Durable Streams. The value is the cursor that the client sent.
    Durable(Option<u64>),
}

/// A session that is being followed, and how.
pub(super) struct Following {
    /// Reads from the first requested offset on.
    pub reader: SessionReader,
    /// The client's place among the followers.
    pub _place: FollowerPlace,
    /// The form of the lines.
    pub form: LineForm,
    /// How often to send a keep-alive during a pause.
    pub keep_alive: Duration,
    /// After this time the response ends at the next pause; `None` means no limit.
    pub most: Option<Duration>,
    /// The end of the service, which also ends the response.
    pub ending: ServiceEnd,
}

impl Following {
    /// Sends available and new lines until the session is removed, the service ends, or the time is
    /// over.
    pub(super) async fn run(mut self, out: Rc<Outlet>) -> io::Result<()> {
        let last = self.most.map(|most| Instant::now() + most);
        let mut offset = self.reader.offset;
        // Removing a session ends its stream.
        let Ok(mut lines) = self.reader.at_hand() else {
            return Ok(());
        };
        let mut is_new = true;
        loop {
            let behind = offset + lines.len() as u64;
            let Ok(next) = self.reader.at_hand() else {
                return Ok(());
            };
            let is_end = next.is_empty();
            if !lines.is_empty() || is_new {
                let bytes = self.form.write(offset, &lines, is_end);
                drop(lines);
                if !bytes.is_empty() {
                    out.send(bytes).await;
                }
            }
            is_new = false;
            offset = behind;
            lines = match is_end {
                false => next,
                true => match self.wait(last, &out).await {
                    Some(lines) => lines,
                    None => return Ok(()),
                },
            };
        }
    }

    /// Returns the next lines, or `None` at the end of the response.
    async fn wait(&mut self, last: Option<Instant>, out: &Outlet) -> Option<Vec<u8>> {
        loop {
            let alive = Instant::now() + self.keep_alive;
            let until = last.map_or(alive, |last| last.min(alive));
            let next = tokio::select! {
                biased;
                () = self.ending.begun() => return None,
                next = timeout_at(until, self.reader.next()) => next,
            };
            match next {
                Ok(lines) => return lines.ok(),
                Err(_) if last.is_some_and(|last| last <= Instant::now()) => return None,
                // In plain lines, a keep-alive would change the bytes.
                Err(_) if self.form == LineForm::Lines => {}
                Err(_) => out.send(b": keep-alive\n\n".to_vec()).await,
            }
        }
    }
}

impl LineForm {
    /// Returns what the client gets for the lines in `bytes`, which start at `offset`. `is_end` is
    /// true if there are currently no more lines.
    fn write(self, offset: u64, bytes: &[u8], is_end: bool) -> Vec<u8> {
        match self {
            LineForm::Lines => bytes.to_vec(),
            LineForm::Events => {
                let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4);
                for (line, place) in lines(bytes, offset) {
                    out.extend_from_slice(format!("id: {}\n", place.end).as_bytes());
                    data(&mut out, line.trim_ascii_end());
                }
                out
            }
            LineForm::Durable(cursor) => {
                let mut out = Vec::with_capacity(bytes.len() + 128);
                if !bytes.is_empty() {
                    out.extend_from_slice(b"event: data\n");
                    data(&mut out, bytes);
                }
                let behind = offset + bytes.len() as u64;
                durable::control(&mut out, behind, cursor, is_end);
                out
            }
        }
    }
}

/// Appends the data of a server-sent event. Each line of the data gets its own field
/// (<https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>),
/// and bytes that are not UTF-8 are replaced, since the stream must be UTF-8.
pub(super) fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => text,
    };
    for line in text.split('\n') {
        out.extend_from_slice(b"data:");
        // The parser strips one space after the colon.
        if line.starts_with(' ') {
            out.push(b' ');
        }
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}
