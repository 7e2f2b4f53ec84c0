//! Why an answer, or the rest of it, did not come.

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

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { kind, message }
    }
}
