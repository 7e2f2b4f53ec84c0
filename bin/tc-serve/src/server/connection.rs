//! The connections of clients.

use super::ending::Ending;
use super::listener::{Accepted, Listener};
use super::phase::ConnectionPhase;
use super::timed::TimedWire;
use crate::args::Limits;
use crate::http::Service;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

/// The longest head of a request, in bytes.
const HEAD: usize = 32 << 10;

/// What a connection that is one too many gets.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The connections that are open.
pub struct Connections {
    service: Rc<Service>,
    limits: Limits,
    ending: Ending,
    open: JoinSet<()>,
}

impl Connections {
    /// Connections to `service`.
    pub fn new(service: Rc<Service>, limits: Limits, ending: Ending) -> Connections {
        Connections {
            service,
            limits,
            ending,
            open: JoinSet::new(),
        }
    }

    /// Accepts connections for ever.
    pub async fn accept(&mut self, listener: &Listener) {
        loop {
            while self.open.try_join_next().is_some() {}
            match listener.accept().await {
                Ok(accepted) if self.open.len() < self.limits.connections => self.serve(accepted),
                Ok(accepted) => {
                    while self.open.try_join_next().is_some() {}
                    if self.open.len() < self.limits.connections {
                        self.serve(accepted);
                    } else {
                        refuse(accepted).await;
                    }
                }
                // Out of descriptors: the client waits in the system's queue until a connection has
                // been closed. Any other error is that of a client that has left.
                Err(e) if is_exhausted(&e) => {
                    tokio::select! {
                        _ = self.open.join_next(), if !self.open.is_empty() => {}
                        () = tokio::time::sleep(Duration::from_millis(100)) => {}
                    }
                }
                Err(_) => {}
            }
        }
    }

    fn serve(&mut self, accepted: Accepted) {
        let (service, ending, limits) =
            (Rc::clone(&self.service), self.ending.clone(), self.limits);
        self.open.spawn_local(async move {
            let phase = Rc::new(ConnectionPhase::new(&limits));
            let Accepted { wire, local } = accepted;
            let wire = TimedWire::new(wire, Rc::clone(&phase), limits.reader_time);
            let answer = service_fn(|request| {
                let (service, phase) = (Rc::clone(&service), Rc::clone(&phase));
                async move { service.answer(request, phase, local).await }
            });
            let mut builder = http1::Builder::new();
            // `TimedWire` has the limits on time. A client that closes its side has left.
            builder
                .header_read_timeout(None)
                .half_close(false)
                .max_buf_size(64 << 10)
                .max_header_size(HEAD);
            let mut connection = pin!(builder.serve_connection(TokioIo::new(wire.clone()), answer));
            let mut is_last = false;
            loop {
                // An error here means that the client broke HTTP or has left. hyper has sent what
                // can still be sent, so the error is dropped.
                tokio::select! {
                    biased;
                    _ = connection.as_mut() => return,
                    () = wire.left() => return,
                    () = wire.overrun(), if !is_last => {}
                    () = ending.begun(), if !is_last => {}
                }
                connection.as_mut().graceful_shutdown();
                is_last = true;
            }
        });
    }

    /// Waits until all connections are closed.
    pub async fn wait(&mut self) {
        while self.open.join_next().await.is_some() {}
    }

    /// Closes all connections.
    pub async fn close(&mut self) {
        self.open.shutdown().await;
    }
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

/// Whether the system, or this process, has no descriptor or no memory left.
fn is_exhausted(e: &std::io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(e).is_some_and(|errno| exhausted.contains(&errno))
}
