//! Host names as addresses that a [`Guard`] allows.

use crate::guard::Guard;
use crate::resolve::in_thread;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::sync::Arc;

/// Looks up the one host that a connection is for and checks all of its addresses. The client
/// connects to what this returns and asks nobody again, so a name that changes its address after
/// the check gains nothing.
#[derive(Debug)]
pub(crate) struct GuardedResolver {
    /// What is checked.
    pub guard: Guard,
    /// The port of the connection.
    pub port: u16,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, port, name) = (self.guard.clone(), self.port, name.as_str().to_owned());
        Box::pin(async move {
            let mut addresses = in_thread(Arc::clone(&guard.lookup), name.clone()).await?;
            addresses
                .iter_mut()
                .for_each(|address| address.set_port(port));
            guard.check(&name, &addresses)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
