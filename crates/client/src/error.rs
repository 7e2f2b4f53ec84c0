//! Why an answer, or the rest of it, did not come.

use crate::guard::ForbiddenAddress;
use std::error::Error as StdError;
use std::io;
use std::time::Duration;

/// Why an answer, or the rest of it, did not come. Its text is a sentence for people without any
/// secret; what to do about it depends on the caller's options and on [`Error::kind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of error it is.
    pub kind: ErrorKind,
    message: String,
}

/// The kinds of an [`Error`] that have different remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The host has no address.
    UnknownName,
    /// No connection within the connect time-out.
    ConnectTimeout,
    /// The host is there, and nothing listens at the port.
    Refused,
    /// The network or the host cannot be reached.
    Unreachable,
    /// The server at an https address speaks plain HTTP.
    PlainHttp,
    /// The server's certificate is invalid: for another name, expired, or from an unknown
    /// authority.
    Certificate,
    /// TLS failed for another reason.
    Tls,
    /// The server at an http address may speak TLS.
    MaybeTls,
    /// No connection, for another reason.
    Connect,
    /// The connection was lost.
    Lost,
    /// Nothing came for longer than [`crate::TimeLimits::idle`].
    Idle,
    /// The time of [`crate::TimeLimits::deadline`] passed.
    Deadline,
    /// The connection was lost when this was recorded.
    RecordedLoss,
    /// The answer stopped for too long when this was recorded.
    RecordedSilence,
    /// [`crate::ReplayFaults::error_at`] broke the connection.
    Injected,
    /// A file with a body cannot be read.
    File,
    /// The URL cannot be used, or TLS cannot be set up.
    Address,
    /// A [`crate::Guard`] forbids the address.
    Forbidden,
    /// A secret would go over http to another machine.
    Exposed,
}

impl ErrorKind {
    /// Whether an error of this kind comes before the first byte of a request is sent. After that
    /// the server may have acted, whatever the error is.
    pub fn is_before_sending(self) -> bool {
        use ErrorKind::*;
        matches!(
            self,
            Address
                | Certificate
                | Connect
                | ConnectTimeout
                | Exposed
                | Forbidden
                | PlainHttp
                | Refused
                | Tls
                | UnknownName
                | Unreachable
        )
    }
}

impl Error {
    /// Whether it is a time that passed, rather than a loss.
    pub fn is_timeout(&self) -> bool {
        use ErrorKind::*;
        matches!(
            self.kind,
            ConnectTimeout | Idle | Deadline | RecordedSilence
        )
    }

    pub(crate) fn idle(time: Duration) -> Error {
        Error::new(ErrorKind::Idle, format!("nothing came for {time:?}"))
    }

    pub(crate) fn deadline() -> Error {
        Error::new(
            ErrorKind::Deadline,
            "the time for the whole answer has passed",
        )
    }

    pub(crate) fn address(message: &str) -> Error {
        Error::new(ErrorKind::Address, message)
    }

    /// The server at this origin does not take a connection.
    pub(crate) fn connect(server: &str, error: &io::Error) -> Error {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => ErrorKind::Refused,
            io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                ErrorKind::Unreachable
            }
            _ => ErrorKind::Connect,
        };
        Error::new(kind, format!("no connection to {server}: {error}"))
    }

    pub(crate) fn forbidden(error: &ForbiddenAddress) -> Error {
        let kind = match error {
            ForbiddenAddress::Exposed(_) => ErrorKind::Exposed,
            _ => ErrorKind::Forbidden,
        };
        Error::new(kind, error.to_string())
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { kind, message }
    }
}

impl From<&reqwest::Error> for Error {
    fn from(e: &reqwest::Error) -> Error {
        if let Some(forbidden) = find::<ForbiddenAddress>(e) {
            return Error::forbidden(forbidden);
        }
        let texts: Vec<String> = chain(e).map(ToString::to_string).collect();
        let has = |words: &str| texts.iter().any(|text| text.contains(words));
        let server = e
            .url()
            .map_or_else(|| "the server".to_owned(), |url| shown(url.clone()));
        let is_plain = e.url().is_some_and(|url| url.scheme() == "http");
        let last = texts.last().map_or("for an unknown reason", String::as_str);
        let (kind, message) = match (e.is_timeout(), e.is_connect()) {
            // Only while it connects: a connection that was open can end by a time-out of the
            // system after the request was sent.
            (true, true) => (
                ErrorKind::ConnectTimeout,
                format!("no connection to {server} in time"),
            ),
            (_, true) => {
                let (kind, reason) = if has("dns error") || has("failed to lookup address") {
                    (
                        ErrorKind::UnknownName,
                        format!("the name cannot be resolved ({last})"),
                    )
                } else if let Some(tls) = find::<rustls::Error>(e) {
                    (of_tls(tls), format!("TLS failed ({tls})"))
                } else {
                    (of_connection(e, is_plain), last.to_owned())
                };
                (kind, format!("no connection to {server}: {reason}"))
            }
            _ if is_plain && has("invalid HTTP") => (
                ErrorKind::MaybeTls,
                format!("{server} answers with something else than HTTP: {last}"),
            ),
            // A server that speaks TLS waits for a greeting and closes the connection.
            _ if is_plain && has("before message completed") => (
                ErrorKind::MaybeTls,
                format!("the connection to {server} was lost before the answer: {last}"),
            ),
            _ => (
                ErrorKind::Lost,
                format!("the connection to {server} was lost: {last}"),
            ),
        };
        Error { kind, message }
    }
}

/// A URL without its user, password and query, which may hold a key.
fn shown(mut url: reqwest::Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    // Both fail for a URL that cannot have a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

fn of_tls(error: &rustls::Error) -> ErrorKind {
    match error {
        rustls::Error::InvalidMessage(_) => ErrorKind::PlainHttp,
        rustls::Error::InvalidCertificate(_) => ErrorKind::Certificate,
        _ => ErrorKind::Tls,
    }
}

fn of_connection(e: &reqwest::Error, is_plain: bool) -> ErrorKind {
    match chain(e)
        .filter_map(|inner| inner.downcast_ref::<io::Error>())
        .last()
        .map(io::Error::kind)
    {
        Some(io::ErrorKind::ConnectionRefused) => ErrorKind::Refused,
        Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
            ErrorKind::Unreachable
        }
        _ if is_plain => ErrorKind::MaybeTls,
        _ => ErrorKind::Connect,
    }
}

fn find<T: StdError + 'static>(e: &reqwest::Error) -> Option<&T> {
    chain(e).find_map(|inner| inner.downcast_ref())
}

/// Every error in the chain, with those inside an [`io::Error`], which [`StdError::source`] does
/// not show.
pub(crate) fn chain(e: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(e.source(), |inner: &&(dyn StdError + 'static)| match inner
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(carried) => Some(carried),
        None => (*inner).source(),
    })
}
