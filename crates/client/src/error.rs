//! Why a response, or the rest of one, was not received.

use std::io;
use std::time::Duration;

/// Why a response, or the rest of one, was not received. The message is a sentence for users and
/// contains no secrets. The remedy depends on the caller's options and on [`Error::kind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    message: String,
}

/// The kinds of [`Error`], distinguished by remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The host name does not resolve to an address.
    UnknownName,
    /// No connection was made within the connect timeout.
    ConnectTimeout,
    /// The host rejected the connection: nothing listens on the port.
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
    /// The connection failed for another reason.
    Connect,
    /// The connection was lost.
    Lost,
    /// No bytes arrived for longer than [`crate::TimeLimits::idle`].
    Idle,
    /// The deadline of [`crate::TimeLimits::deadline`] passed.
    Deadline,
    /// The recording ends in a lost connection.
    RecordedLoss,
    /// The recording ends in a timeout: the response stalled for too long.
    RecordedSilence,
    /// [`crate::ReplayFaults::error_at`] broke the connection.
    Injected,
    /// A file with a response body cannot be read.
    File,
    /// The URL is invalid, or TLS cannot be set up.
    Address,
    /// A [`crate::Guard`] forbids the address.
    Forbidden,
    /// A secret would be sent unencrypted over http to another machine.
    Exposed,
}

impl ErrorKind {
    /// Whether an error of this kind occurs before the first byte of the request is sent. After
    /// that, the server may have acted on the request, whatever the error.
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
    /// Whether the error is a timeout rather than a lost connection.
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

    /// Returns the error for a server at this origin that does not accept a connection.
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
