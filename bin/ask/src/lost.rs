//! An error of the network in the words of this command: with the option that helps.

use client::{Error, ErrorKind};
use upstream::End;

/// A sentence for people: what happened, and what to do about it.
pub fn sentence(error: &Error) -> String {
    let remedy = match error.kind {
        ErrorKind::ConnectTimeout => " (--connect-timeout); check the address in --base-url and the network",
        ErrorKind::UnknownName => "; check the name in --base-url, and the network",
        ErrorKind::Refused => "; start the server, or correct the port in --base-url",
        ErrorKind::Unreachable => "; check the network",
        ErrorKind::PlainHttp => "; if the server speaks plain HTTP, write http:// in --base-url",
        ErrorKind::Certificate => {
            "; check the name in --base-url and the clock, and name a private authority's certificates with SSL_CERT_FILE"
        }
        ErrorKind::Tls => "; check that the port in --base-url speaks TLS",
        ErrorKind::MaybeTls => "; if the server speaks TLS, write https:// in --base-url",
        ErrorKind::Connect => "; check --base-url",
        ErrorKind::Idle => " (--idle-timeout)",
        ErrorKind::Deadline => " (--timeout)",
        ErrorKind::Injected => " by --error-at",
        _ => "",
    };
    format!("{error}{remedy}")
}

/// The end of a stream whose bytes were lost by `error`.
pub fn end(error: &Error) -> End {
    if error.is_timeout() { End::Timeout(sentence(error)) } else { End::Reset(sentence(error)) }
}
