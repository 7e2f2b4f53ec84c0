//! Host names as addresses.

use crate::thread;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Looks up the addresses of a name, with port 0. It may block.
pub(crate) type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Asks the system.
pub(crate) fn system() -> Lookup {
    Arc::new(|name| Ok((name, 0).to_socket_addrs()?.collect()))
}

/// Asks in a thread of its own for each name: the HTTP client's own resolver panics where the
/// system has no more threads.
pub(crate) async fn in_thread(
    lookup: Lookup,
    name: String,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let (send, receive) = oneshot::channel();
    thread::start(move || {
        let _ = send.send(lookup(&name)); // fails when the request was dropped
    })?;
    Ok(receive.await??)
}

/// Asks the system.
#[derive(Debug)]
pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        Box::pin(async move { Ok(Box::new(in_thread(system(), name).await?.into_iter()) as Addrs) })
    }
}
