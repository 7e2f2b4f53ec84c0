//! What was typed, as the values that the service works with.

use super::Args;
use crate::command::CommandArgs;
use crate::upstream::UpstreamArgs;
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
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
    /// Whether warnings and repairs are sent along.
    pub extras: bool,
    /// Whether each request is logged.
    pub access_log: bool,
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

/// The keys that clients may send.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Their SHA-256 hashes; without any no key is needed.
    pub hashes: Vec<[u8; 32]>,
    /// The key that was made at the start, to be printed.
    pub made: Option<String>,
}

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Open connections.
    pub connections: usize,
    /// Open answers of a key.
    pub streams: usize,
    /// Waiting requests of a key.
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

impl Args {
    /// The settings.
    ///
    /// # Errors
    /// One line for options that contradict each other or that would let strangers in, and for files that cannot be read.
    pub fn settings(self) -> Result<Settings> {
        let Args { service, access, limits, upstream, command, .. } = self;
        let listen = match service.unix {
            Some(path) => Listen::Unix(path),
            None => Listen::Tcp(addresses(&service.listen)?),
        };
        let is_local = match &listen {
            Listen::Unix(_) => true,
            Listen::Tcp(all) => all.iter().all(|address| address.ip().to_canonical().is_loopback()),
        };
        if !is_local && access.key_file.is_none() {
            bail!(
                "--listen {}: other machines could ask without a key; write the keys of your clients into a file and name it with --key-file",
                service.listen
            );
        }
        let keys = match &access.key_file {
            Some(path) => Keys { hashes: ::args::file(path, read_keys)?, made: None },
            None if command.command.is_empty() || access.no_key => Keys::default(),
            None => Keys::make()?,
        };
        let origins = access.allow_origins.iter().map(|text| origin(text)).collect::<Result<_>>()?;
        let limits = Limits {
            body: limits.max_body,
            connections: limits.max_connections.max(1),
            streams: usize::try_from(limits.max_streams)?,
            queue: limits.queue,
            header_time: limits.header_timeout,
            body_time: limits.body_timeout,
            connection_time: limits.connection_timeout,
            reader_time: limits.reader_timeout,
            status_time: limits.status_timeout,
        };
        Ok(Settings {
            listen,
            keys,
            hosts: access.allow_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins,
            limits,
            keep_alive: service.keep_alive,
            grace: service.grace,
            extras: service.extras,
            access_log: service.access_log,
            upstream,
            command,
        })
    }
}

impl Keys {
    /// A new key of 128 random bits.
    fn make() -> Result<Keys> {
        let key = random().context("/dev/urandom: no key can be made; give one with --key-file")?;
        let key = key.iter().fold("tp-".to_owned(), |key, byte| key + &format!("{byte:02x}"));
        Ok(Keys { hashes: vec![hash(&key)], made: Some(key) })
    }

    /// The place of `key` in the list. Takes the same time for every key of the same length.
    pub fn find(&self, key: &str) -> Option<usize> {
        let sent = hash(key);
        let mut found = None;
        for (place, known) in self.hashes.iter().enumerate() {
            let difference = known.iter().zip(&sent).fold(0, |all, (a, b)| all | (a ^ b));
            if difference == 0 {
                found = Some(place);
            }
        }
        found
    }

    /// The beginning of a key's hash, by which a log names it.
    pub fn name(&self, place: usize) -> String {
        self.hashes[place].iter().take(4).fold(String::new(), |name, byte| name + &format!("{byte:02x}"))
    }
}

/// 16 random bytes.
pub fn random() -> std::io::Result<[u8; 16]> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// The hashes of the keys of a file: one a line, empty lines and lines with # left out.
fn read_keys(text: &str) -> Result<Vec<[u8; 32]>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<[u8; 32]> = lines
        .map(|key| {
            if key.len() < 16 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!(
                    "a key has at least 16 letters, digits or signs and no space, make one with 'openssl rand -hex 16'"
                );
            }
            Ok(hash(key))
        })
        .collect::<Result<_>>()?;
    if keys.is_empty() {
        bail!("the file has no key, write one a line");
    }
    Ok(keys)
}

fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let found = text.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => bail!("--listen {text}: not an address, write it as 127.0.0.1:8790"),
    }
}

/// An origin as browsers write it.
fn origin(text: &str) -> Result<String> {
    let lower = text.to_ascii_lowercase();
    let host = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']) => Ok(lower),
        _ => bail!("--allow-origin {text}: not an origin, write it as https://chat.example.com, without a path"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_whole_text() {
        let keys =
            Keys { hashes: read_keys("# mine\n\n0123456789abcdef\n  another-key-of-mine \n").unwrap(), made: None };
        assert_eq!(keys.find("0123456789abcdef"), Some(0));
        assert_eq!(keys.find("another-key-of-mine"), Some(1));
        assert_eq!(keys.find("0123456789abcde"), None);
        assert_eq!(keys.find(""), None);
        assert_eq!(keys.name(0).len(), 8);
        for wrong in ["", "# only\n", "short\n", "0123456789abcdef with spaces"] {
            assert!(read_keys(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn keys_that_are_made_differ() {
        let (one, other) = (Keys::make().unwrap(), Keys::make().unwrap());
        assert_ne!(one.made, other.made);
        assert_eq!(one.find(one.made.as_deref().unwrap()), Some(0));
        assert_eq!(one.find(other.made.as_deref().unwrap()), None);
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        assert_eq!(origin("https://Chat.example.com:8443").unwrap(), "https://chat.example.com:8443");
        for wrong in ["*", "null", "chat.example.com", "https://", "https://*", "https://a/b", "ftp://a"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
