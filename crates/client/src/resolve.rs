//! Host names as addresses.

use crate::thread;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::ToSocketAddrs;
use tokio::sync::oneshot;

/// Asks the system, in a thread of its own for each name: the HTTP client's own resolver panics where the system has no more threads.
#[derive(Debug)]
pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (send, receive) = oneshot::channel();
        let started = thread::start(move || {
            let _ = send.send((name.as_str(), 0).to_socket_addrs()); // fails when the request was dropped
        });
        Box::pin(async move {
            started?;
            Ok(Box::new(receive.await??) as Addrs)
        })
    }
}
