//! The connections of clients.

use super::listener::{Accepted, Listener, Wire};
use super::timed::TimedWire;
use crate::args::LimitArgs;
use crate::http::{ResponseBody, Service};
use crate::life::{ConnectionPhase, ServiceEnd};
use hyper::Version;
use hyper::body::Body as _;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::task::{AbortHandle, JoinSet};

/// The longest head of a request, in bytes.
const HEAD: usize = 32 << 10;

/// What a connection that is one too many gets.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The connections that are open.
pub(super) struct Connections {
    service: Rc<Service>,
    limits: LimitArgs,
    ending: ServiceEnd,
    open: JoinSet<()>,
    /// Those that are open, and some that have ended.
    list: Vec<OpenConnection>,
}

/// One connection.
struct OpenConnection {
    task: AbortHandle,
    phase: Rc<ConnectionPhase>,
}

impl Connections {
    /// Connections to `service`.
    pub(super) fn new(service: Rc<Service>, limits: LimitArgs, ending: ServiceEnd) -> Connections {
        Connections {
            service,
            limits,
            ending,
            open: JoinSet::new(),
            list: Vec::new(),
        }
    }

    /// Accepts connections for ever.
    pub(super) async fn accept(&mut self, listener: &Listener) {
        loop {
            match listener.accept().await {
                Ok(accepted) => {
                    while self.open.try_join_next().is_some() {}
                    if self.has_room() {
                        self.serve(accepted);
                    } else {
                        refuse(accepted).await;
                    }
                }
                // Out of descriptors: the client waits in the system's queue until a connection has
                // been closed. Any other error is that of a client that has left.
                Err(e) if is_full(&e) => {
                    tokio::select! {
                        _ = self.open.join_next(), if !self.open.is_empty() => {}
                        () = tokio::time::sleep(Duration::from_millis(100)) => {}
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Whether one more connection may be open. Where all places are taken, a connection without a
    /// request gives way: those of clients that have sent no key first, then the one that has waited
    /// for the longest time. So nobody who sends nothing keeps others out.
    fn has_room(&mut self) -> bool {
        let most = self.limits.max_connections.max(1);
        if self.list.len() < most {
            return true;
        }
        self.list.retain(|open| !open.task.is_finished());
        if self.list.len() < most {
            return true;
        }
        let ranks = self.list.iter().enumerate();
        let ranks = ranks.filter_map(|(at, open)| Some((open.phase.rank()?, at)));
        let Some((_, at)) = ranks.min() else {
            return false;
        };
        self.list.swap_remove(at).task.abort();
        true
    }

    fn serve(&mut self, accepted: Accepted) {
        let service = Rc::clone(&self.service);
        let ending = self.ending.clone();
        let limits = self.limits;
        // While the service is being stopped a connection gets one response.
        let is_late = ending.has_begun();
        let phase = Rc::new(ConnectionPhase::new(&limits));
        let own = Rc::clone(&phase);
        let task = self.open.spawn_local(async move {
            let phase = own;
            let Accepted { wire, local } = accepted;
            let wire = TimedWire::new(wire, Rc::clone(&phase), limits.reader_timeout);
            let long = Rc::new(RefCell::new(None));
            let answer = service_fn(|request| {
                let service = Rc::clone(&service);
                let phase = Rc::clone(&phase);
                let long = Rc::clone(&long);
                let has_chunks = request.version() == Version::HTTP_11;
                // hyper keeps the future's memory as long as the connection; this box is gone once
                // the head of the answer is there.
                async move {
                    let answered = Box::pin(service.answer(request, phase, local)).await;
                    answered.map(|mut response| {
                        if has_chunks && response.body().is_long() {
                            *long.borrow_mut() = Some(response.body_mut().take());
                            let close = HeaderValue::from_static("close");
                            response.headers_mut().insert("connection", close);
                        }
                        response
                    })
                }
            });
            let mut builder = http1::Builder::new();
            // `TimedWire` has the limits on time. A client that closes its side has left.
            builder
                .header_read_timeout(None)
                .half_close(false)
                .keep_alive(!is_late)
                .max_buf_size(64 << 10)
                .max_header_size(HEAD);
            let connection = builder.serve_connection(TokioIo::new(wire.clone()), answer);
            let mut connection = Box::pin(connection);
            let mut is_last = is_late;
            let body = loop {
                // An error here means that the client broke HTTP or has left. hyper has sent what
                // can still be sent, so the error is dropped.
                tokio::select! {
                    biased;
                    _ = connection.as_mut() => return,
                    () = wire.left() => return,
                    body = poll_fn(|_| wire.when_written(|| long.take())) => break body,
                    () = wire.overrun(), if !is_last => {}
                    () = ending.begun(), if !is_last => {}
                }
                connection.as_mut().graceful_shutdown();
                is_last = true;
            };
            // Most of the memory of a follower is in the two buffers of hyper.
            drop(connection);
            // A client that does not take the rest has left.
            let _ = send_chunks(wire, body).await;
        });
        self.list.push(OpenConnection { task, phase });
    }

    /// Waits until all connections are closed.
    pub(super) async fn wait(&mut self) {
        while self.open.join_next().await.is_some() {}
    }

    /// Closes all connections.
    pub(super) async fn close(&mut self) {
        self.open.shutdown().await;
    }
}

/// Sends the body of a response whose head says that it comes in chunks, and closes the connection.
/// Source of the format: [RFC 9112, section 7.1](https://www.rfc-editor.org/rfc/rfc9112#section-7.1).
async fn send_chunks(mut wire: TimedWire<Box<dyn Wire>>, mut body: ResponseBody) -> io::Result<()> {
    loop {
        let next = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let bytes = tokio::select! {
            biased;
            () = wire.left() => return Ok(()),
            next = next => next.transpose()?,
        };
        let bytes = bytes.and_then(|frame| frame.into_data().ok());
        let bytes = bytes.unwrap_or_default();
        // What is sent once may be long, and a follower waits for hours: nothing is kept of it.
        let mut chunk = Vec::with_capacity(bytes.len() + 16);
        // An empty chunk is the end.
        write!(chunk, "{:x}\r\n", bytes.len())?;
        chunk.extend_from_slice(&bytes);
        chunk.extend_from_slice(b"\r\n");
        wire.write_all(&chunk).await?;
        if bytes.is_empty() {
            return wire.shutdown().await;
        }
    }
}

/// Whether the system has no more descriptors or memory.
fn is_full(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NFILE | Errno::MFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

/// Answers a connection that is one too many, as far as that takes no wait.
async fn refuse(accepted: Accepted) {
    let mut wire = accepted.wire;
    // A new connection has room for this, so that nobody waits here.
    let _ = tokio::time::timeout(Duration::ZERO, async {
        wire.write_all(BUSY).await?;
        wire.shutdown().await
    })
    .await;
}
