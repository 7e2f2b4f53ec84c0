//! Replaces `network.rs` in a build without the feature `network`. Making a [`Network`] fails,
//! so its methods are never called.

use crate::{BodyPiece, Error, Proxy, Response, Route, TimeLimits};
use api::Request;
use api::tape::TapeExchange;
use bytes::Bytes;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use url::Url;

/// A way to one server, which this build cannot make.
#[derive(Clone, Debug)]
pub struct Network(Infallible);

/// This build cannot ask the server of this origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} cannot be asked, this build has no network; build it with the feature \"network\" (on by \
     default)"
)]
pub struct NetworkError(String);

impl NetworkError {
    /// `url` may hold a secret in its path or query, which the message leaves out.
    fn new(url: &str) -> NetworkError {
        let url = Url::parse(url);
        NetworkError(url.map_or_else(
            |_| "the server".to_owned(),
            |url| url.origin().ascii_serialization(),
        ))
    }
}

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Error {
        Error::address(&error.to_string())
    }
}

/// Addresses that may be connected to.
#[derive(Clone, Debug)]
pub struct Guard;

impl Guard {
    /// Allows nothing, since nothing is connected to.
    pub fn new(_: impl Fn(&str, SocketAddr) -> bool + Send + Sync + 'static) -> Guard {
        Guard
    }

    /// The same.
    #[must_use]
    pub fn only_loopback(self) -> Guard {
        self
    }
}

/// Fails.
///
/// # Errors
/// [`NetworkError`], always.
pub async fn document(url: &str) -> Result<Option<String>, Error> {
    Err(NetworkError::new(url).into())
}

impl Network {
    /// Fails.
    ///
    /// # Errors
    /// [`NetworkError`], always.
    pub fn new(route: &Route, _: Duration) -> Result<Network, NetworkError> {
        Err(NetworkError::new(&route.url))
    }

    /// Fails.
    ///
    /// # Errors
    /// [`NetworkError`], always.
    pub fn guarded(url: &str, _: Guard, _: Duration, _: Option<&Proxy>) -> Result<Network, Error> {
        Err(NetworkError::new(url).into())
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Never called: no [`Network`] exists in this build.
    pub async fn send(
        &self,
        _: Request,
        _: TimeLimits,
        _: Option<Box<TapeExchange>>,
    ) -> Result<Response, (Error, Option<Box<TapeExchange>>)> {
        match self.0 {}
    }

    /// Sends a request with any bytes in place of its body.
    ///
    /// # Errors
    /// Never called: no [`Network`] exists in this build.
    pub async fn send_bytes(&self, _: Request, _: Bytes, _: TimeLimits) -> Result<Response, Error> {
        match self.0 {}
    }

    /// Sends a request whose answer is small.
    ///
    /// # Errors
    /// Never called: no [`Network`] exists in this build.
    pub async fn ask(&self, _: &Request, _: usize) -> Result<Option<String>, Error> {
        match self.0 {}
    }
}

/// A body that the network brings.
#[derive(Debug)]
pub(crate) enum LiveBody {}

impl LiveBody {
    pub(crate) async fn next(&mut self) -> BodyPiece<'_> {
        match *self {}
    }

    pub(crate) fn kept(&self) -> usize {
        match *self {}
    }

    pub(crate) fn stop(&mut self) -> Duration {
        match *self {}
    }

    pub(crate) fn recorded(self, _: Option<&Error>) -> Option<Box<TapeExchange>> {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_named_with_the_way_to_it_and_without_a_secret() {
        let url = "https://user:secret@h.example:8443/secret?key=secret";
        let refused = "https://h.example:8443 cannot be asked, this build has no network; build it with the feature \"network\" (on by default)";
        let network = Network::new(&Route::of(url), Duration::ZERO);
        assert_eq!(network.map(drop).unwrap_err().to_string(), refused);
        let guard = Guard::new(|_, _| true).only_loopback();
        let guarded = Network::guarded(url, guard, Duration::ZERO, None).map(drop);
        let error = guarded.unwrap_err();
        assert_eq!(error.to_string(), refused);
        assert!(error.kind.is_before_sending());
    }
}
