//! What was typed, as the values that the service works with.

use super::keys::Keys;
use crate::command::CommandArgs;
use crate::http::PassedPaths;
use crate::log::LogTarget;
use crate::upstream::UpstreamArgs;
use anyhow::{Result, bail};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// What the service works with.
#[derive(Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: Listen,
    /// The keys that clients may send.
    pub keys: Keys,
    /// Names of this server besides those of the loopback device, in lower case.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask, in lower case.
    pub origins: Vec<String>,
    /// What clients may take.
    pub limits: Limits,
    /// How often an idle stream gets a sign of life.
    pub keep_alive: Duration,
    /// How long open answers may go on after a signal.
    pub grace: Duration,
    /// The paths that are passed to the provider as they are.
    pub passed: PassedPaths,
    /// Whether warnings and repairs are sent along.
    pub extras: bool,
    /// Where requests are logged, if anywhere.
    pub log: Option<LogTarget>,
    /// The options of the provider.
    pub upstream: UpstreamArgs,
    /// The options of the command.
    pub command: CommandArgs,
}

/// Where to listen.
#[derive(Clone, Debug)]
pub enum Listen {
    /// Addresses of one name; the first one that works is taken.
    Tcp(Vec<SocketAddr>),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes that are kept of one answer.
    pub answer: usize,
    /// Bytes that all requests and answers keep.
    pub memory: usize,
    /// Open connections.
    pub connections: usize,
    /// Open answers of a key.
    pub streams: usize,
    /// Requests of a key that wait for a place.
    pub queue: usize,
    /// The time for the head of a request.
    pub header_time: Duration,
    /// The time for its body.
    pub body_time: Duration,
    /// The time between two requests.
    pub connection_time: Duration,
    /// The time in which a client takes nothing.
    pub reader_time: Duration,
    /// The time that a status waits for content.
    pub status_time: Duration,
}

/// The addresses of `HOST:PORT`.
///
/// # Errors
/// One line for a text that is not an address, and for a name that is not known.
pub fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let found = text.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => bail!("--listen {text}: not an address, write it as 127.0.0.1:8790"),
    }
}

/// An origin as browsers write it, in lower case.
///
/// # Errors
/// One line for a text that is not a scheme and a host.
pub fn origin(text: &str) -> Result<String> {
    let lower = text.to_ascii_lowercase();
    let host = lower
        .strip_prefix("http://")
        .or_else(|| lower.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']) => {
            Ok(lower)
        }
        _ => bail!(
            "--allow-origin {text}: not an origin, write it as https://chat.example.com, without a path"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        assert_eq!(
            origin("https://Chat.example.com:8443").unwrap(),
            "https://chat.example.com:8443"
        );
        for wrong in [
            "*",
            "null",
            "chat.example.com",
            "https://",
            "https://*",
            "https://a/b",
            "ftp://a",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
