//! Follows a session of a service over HTTP. After a lost connection, the next request asks for the
//! bytes that were not received.

mod address;

use super::{BLOCK, Piece, Source};
use crate::args::ServiceArgs;
use anyhow::{Result, anyhow, bail};
use client::{
    AddressError, AttemptTrouble, Body, ErrorKind, Head, Network, PieceContent, Request, Response,
    Route, TimeLimits, Wait,
};
use redact::Redactor;
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime};
use stdio::{Failure, Filter, StopSignals};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// The environment variable with the key of the service.
const KEY: &str = "TC_SERVE_KEY";

/// The timeout for connecting to the service.
const CONNECT: Duration = Duration::from_secs(10);

/// The request is sent again after this time without bytes. A session that does not grow sends
/// nothing, and neither does a connection that was lost without notice, as while the machine slept,
/// or in a router.
const SILENCE: Duration = Duration::from_secs(30);

/// Minimum time per connection, including the pause after it, for a service that closes one
/// connection after the other ([`Pace`]).
const PACE: Duration = Duration::from_millis(250);

/// How many connections in a row may be shorter than [`PACE`]: a service that restarts, or a proxy,
/// closes some.
const SHORT: u32 = 8;

/// Maximum bytes read of an error response.
const REFUSAL: usize = 64 * 1024;

/// A session of a service.
pub(super) struct Session {
    link: Link,
    /// Becomes readable when a signal should stop the command.
    signals: UnixStream,
    runtime: Runtime,
}

impl Session {
    /// Prepares to follow the session at the URL `pasted`, without sending anything.
    ///
    /// # Errors
    /// Fails with one line if the URL or the key is unusable.
    pub(super) fn open(pasted: &str, args: &ServiceArgs, filter: &Filter) -> Result<Session> {
        let link = Link::new(pasted, args)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::limit("the network cannot be used"))?;
        let signals = StopSignals::of(filter)?;
        let entered = runtime.enter();
        let signals = signals
            .as_fd()
            .try_clone_to_owned()
            .and_then(|signals| UnixStream::from_std(signals.into()))
            .map_err(Failure::limit("signals cannot be watched"))?;
        drop(entered);
        Ok(Session {
            link,
            signals,
            runtime,
        })
    }
}

impl Source for Session {
    fn next(&mut self) -> Result<Piece<'_>> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = self.signals.readable() => Ok(Piece::Stopped),
                piece = self.link.next() => piece,
            }
        })
    }
}

/// Returns the key of the service, from the file or the environment.
fn key(args: &ServiceArgs) -> Result<Option<String>> {
    let Some(file) = &args.key_file else {
        let key = std::env::var(KEY).unwrap_or_default();
        return usable(&key, KEY);
    };
    // The format of the file from which tc-serve reads its keys.
    let first = ::args::file(file, |text| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .ok_or_else(|| anyhow!("the file has no key, write it on a line of its own"))
    })?;
    usable(&first, &file.display().to_string())
}

/// Returns a key that can be sent; `None` for an empty one. `origin` names its source in messages.
fn usable(key: &str, origin: &str) -> Result<Option<String>> {
    let key = key.trim();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("the key in {origin} holds spaces or control characters, put the key alone there");
    }
    Ok((!key.is_empty()).then(|| key.to_owned()))
}

/// The lines of a session, received through one request after another.
struct Link {
    network: Network,
    /// The URL of the events.
    url: String,
    key: Option<String>,
    /// Removes the key from a server's messages.
    redactor: Redactor,
    body: Option<Body>,
    /// The number of bytes of the session received so far.
    offset: u64,
    lines: HeldLines,
    /// How long to wait before the next attempt.
    pause: Option<Duration>,
    /// The number of failed requests since the last byte.
    failed: u32,
    pace: Pace,
    /// Whether the service has begun to send the session.
    has_begun: bool,
    /// Whether a wait since the last byte was reported.
    has_reported_wait: bool,
    /// Whether the session was removed.
    is_over: bool,
    /// [`SILENCE`], except in tests.
    silence: Duration,
}

impl Link {
    fn new(pasted: &str, args: &ServiceArgs) -> Result<Link> {
        let url = address::events(pasted)?;
        let key = key(args)?;
        let route = Route::of(&url);
        let link = Link {
            network: Network::new(&route, CONNECT)?,
            url,
            redactor: Redactor::new(key.clone()),
            key,
            body: None,
            offset: 0,
            lines: HeldLines::default(),
            pause: None,
            failed: 0,
            pace: Pace::default(),
            has_begun: false,
            has_reported_wait: false,
            is_over: false,
            silence: SILENCE,
        };
        match route.check(&link.request(), |_| false) {
            Err(AddressError::Exposed(_)) if args.allow_insecure => {}
            Err(e @ AddressError::Exposed(_)) => bail!("{e}, or --allow-insecure"),
            checked => checked?,
        }
        Ok(link)
    }

    async fn next(&mut self) -> Result<Piece<'_>> {
        loop {
            if self.is_over {
                return Ok(match self.lines.last() {
                    Some(rest) => Piece::Lines(rest),
                    None => Piece::End("the session was removed"),
                });
            }
            let Some(body) = &mut self.body else {
                if let Some(time) = self.pause.take() {
                    tokio::time::sleep(time).await;
                }
                match self.connect().await? {
                    Some(piece) => return Ok(piece),
                    None => continue,
                }
            };
            let lost = match body.next().await.what {
                PieceContent::Bytes(bytes) => {
                    self.offset += bytes.len() as u64;
                    (self.failed, self.has_reported_wait) = (0, false);
                    match self.lines.push(bytes) {
                        true => return Ok(Piece::Lines(&self.lines.whole)),
                        false => continue,
                    }
                }
                PieceContent::End => None,
                PieceContent::Lost(error) => Some(error),
            };
            self.body = None;
            self.pause = self.pace.pause();
            match lost {
                Some(error) if error.kind == ErrorKind::Idle => {
                    (self.failed, self.has_reported_wait) = (0, false);
                }
                // Services that restart, and proxies, close connections: retry at once.
                _ if self.failed == 0 => self.failed = 1,
                lost => {
                    let trouble = lost.map(AttemptTrouble::Lost);
                    if let Some(piece) = self.wait(trouble.as_ref())? {
                        return Ok(piece);
                    }
                }
            }
        }
    }

    /// Returns the request for the bytes that were not received yet.
    fn request(&self) -> Request {
        let mut headers = vec![("accept".to_owned(), LINES.to_owned())];
        if let Some(key) = &self.key {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        Request {
            method: "GET",
            url: format!("{}?offset={}&live=ndjson", self.url, self.offset),
            headers,
            body: String::new(),
        }
    }

    /// Requests the bytes that were not received yet. Returns a piece to report.
    async fn connect(&mut self) -> Result<Option<Piece<'static>>> {
        let limits = TimeLimits {
            idle: Some(self.silence),
            deadline: None,
        };
        match self.network.send(self.request(), limits, None).await {
            Ok(Response { head, body }) if head.status == 200 => {
                let kind = head.header("content-type").unwrap_or("no media type");
                if kind.split(';').next() != Some(LINES) {
                    bail!(
                        "{}: the answer is {kind}, not the lines of a session ({LINES}); check \
                         that the address is one of tc-serve",
                        self.url
                    );
                }
                self.has_begun = true;
                self.pace.begun = Instant::now();
                self.body = Some(body);
                Ok(None)
            }
            Ok(Response { head, body }) => {
                let text = self.redactor.text(&refusal(body).await).into_owned();
                self.refused(head, text)
            }
            // Only a service that has responded before may be restarting.
            Err((error, _)) if !self.has_begun && self.failed == 0 => {
                let remedy = match error.kind {
                    ErrorKind::Refused => "; start tc-serve, or correct the port",
                    ErrorKind::MaybeTls => "; if the server speaks TLS, write https://",
                    ErrorKind::PlainHttp => "; if the server speaks plain HTTP, write http://",
                    _ => "; check the address and the network",
                };
                bail!("{error}{remedy}");
            }
            Err((error, _)) => self.wait(Some(&AttemptTrouble::Lost(error))),
        }
    }

    /// Decides what to do after an error response.
    fn refused(&mut self, head: Head, text: String) -> Result<Option<Piece<'static>>> {
        let status = head.status;
        let is_behind = status == 400 && text.contains("offset_behind_end");
        let place = head.header("location").unwrap_or("nowhere");
        let place = self.redactor.url(place);
        let trouble = AttemptTrouble::Refused(head, text);
        let why = trouble.message();
        let remedy = match status {
            404 | 410 if self.has_begun => {
                self.is_over = true;
                return Ok(None);
            }
            400 if is_behind && self.offset > 0 => {
                self.offset = 0;
                self.lines = HeldLines::default();
                let text = "the session was truncated; continuing from its beginning";
                return Ok(Some(Piece::Restart("session_truncated", text.to_owned())));
            }
            300..400 => bail!(
                "{}: redirected to {place}, which is not followed; if it is right, give that address",
                self.url
            ),
            401 if self.key.is_none() => {
                format!("; export the key as {KEY}, or put it into a file for --key-file")
            }
            401 => format!("; check the key in {KEY} or --key-file"),
            404 => "; GET /v1/sessions lists the sessions of a key".to_owned(),
            _ if trouble.may_pass() => return self.wait(Some(&trouble)),
            _ => String::new(),
        };
        bail!("{}: {why}{remedy}", self.url)
    }

    /// Sets the pause before the next request. Returns a report of the pause if it is long and the
    /// first since the last byte.
    fn wait(&mut self, trouble: Option<&AttemptTrouble>) -> Result<Option<Piece<'static>>> {
        self.failed = self.failed.saturating_add(1);
        let wait = match trouble {
            Some(trouble) => trouble.wait(self.failed),
            None => Some(Wait::new(self.failed, |_| None, SystemTime::now(), 0.0)),
        };
        let why = trouble.map_or("the service ends each answer at once".into(), |trouble| {
            trouble.message()
        });
        let Some(wait) = wait.filter(Wait::is_granted) else {
            bail!(
                "{}: {why}; the service asks for a long wait, follow it again later",
                self.url
            );
        };
        self.pause = Some(wait.time);
        if !wait.is_announced() || std::mem::replace(&mut self.has_reported_wait, true) {
            return Ok(None);
        }
        Ok(Some(Piece::Waiting(format!(
            "{why}; waiting for the service"
        ))))
    }
}

/// Limits how fast connections that received bytes follow each other. Without it, a service could
/// make this command reconnect for every line.
#[derive(Debug)]
struct Pace {
    /// The start of the last connection.
    begun: Instant,
    /// The number of short connections in a row.
    short: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            begun: Instant::now(),
            short: 0,
        }
    }
}

impl Pace {
    /// Returns the pause after a connection that has just ended.
    fn pause(&mut self) -> Option<Duration> {
        self.pause_after(self.begun.elapsed())
    }

    /// Returns the pause after a connection that lasted `time`.
    fn pause_after(&mut self, time: Duration) -> Option<Duration> {
        let rest = PACE.checked_sub(time).filter(|rest| !rest.is_zero());
        self.short = rest.map_or(0, |_| self.short.saturating_add(1));
        rest.filter(|_| self.short > SHORT)
    }
}

/// The media type of a session's lines.
const LINES: &str = "application/x-ndjson";

/// Reads the beginning of the body of an error response.
async fn refusal(mut body: Body) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < REFUSAL
        && let PieceContent::Bytes(more) = body.next().await.what
    {
        bytes.extend_from_slice(more);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Joins pieces of bytes into complete lines.
#[derive(Debug, Default)]
struct HeldLines {
    /// The lines returned by the last call.
    whole: Vec<u8>,
    /// The incomplete next line.
    rest: Vec<u8>,
}

impl HeldLines {
    /// Appends bytes. Returns whether `whole` now has lines, or a part of a line longer than
    /// [`BLOCK`].
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.whole.clear();
        let feed = bytes.iter().rposition(|byte| *byte == b'\n');
        let end = match feed {
            Some(feed) => feed + 1,
            None if self.rest.len() + bytes.len() >= BLOCK => bytes.len(),
            None => 0,
        };
        if end > 0 {
            self.whole.append(&mut self.rest);
            self.whole.extend_from_slice(&bytes[..end]);
        }
        self.rest.extend_from_slice(&bytes[end..]);
        end > 0
    }

    /// Returns the last line if it has no line feed.
    fn last(&mut self) -> Option<&[u8]> {
        self.whole = std::mem::take(&mut self.rest);
        (!self.whole.is_empty()).then_some(&self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use testkit::Server;

    fn link(server: &Server) -> Link {
        let args = ServiceArgs {
            key_file: None,
            allow_insecure: false,
        };
        Link::new(&server.at("/3fa90000000000000000000000000001"), &args).unwrap()
    }

    #[test]
    fn connections_that_end_at_once_do_not_follow_each_other_at_once() {
        let mut pace = Pace::default();
        let ms = Duration::from_millis;
        let pauses: Duration = (0..100).filter_map(|_| pace.pause_after(ms(1))).sum();
        assert_eq!(pauses, ms(249) * (100 - SHORT));
        // A long connection resets the count: the service works.
        assert_eq!(pace.pause_after(PACE), None);
        assert_eq!(pace.pause_after(ms(0)), None);
    }

    #[test]
    fn a_session_that_is_cut_at_every_byte_is_whole() {
        const SESSION: &str = "one\ntw\u{f6}\n\nfour\n";
        let server = Server::answering(|number, request, stream| {
            let offset = format!("?offset={number}&");
            assert!(request.path().contains(&offset), "{}", request.path());
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {LINES}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(SESSION.as_bytes().get(number..=number).unwrap_or_default());
            false
        });
        let mut link = link(&server);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut all = Vec::new();
        while all.len() < SESSION.len() {
            match runtime.block_on(link.next()).unwrap() {
                Piece::Lines(lines) => all.extend_from_slice(lines),
                other => panic!("{other:?}"),
            }
            link.pace.short = 0;
        }
        assert_eq!(all, SESSION.as_bytes());
    }

    #[test]
    fn a_silent_connection_is_replaced_without_a_report() {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {LINES}\r\n\r\n");
        let server = Server::answering(move |number, _, stream| {
            let lines = ["one\ntw", "", "o\n"][number];
            let sent = stream.write_all(format!("{head}{lines}").as_bytes());
            sent.is_ok()
        });
        let mut link = link(&server);
        link.silence = Duration::from_millis(500);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        for line in ["one\n", "two\n"] {
            let piece = runtime.block_on(link.next()).unwrap();
            assert_eq!(piece, Piece::Lines(line.as_bytes()));
        }
        let asked = server.asked();
        let paths: Vec<&str> = asked.iter().map(|request| request.path()).collect();
        let path = "/v1/sessions/3fa90000000000000000000000000001/events";
        let expected = [0, 6, 6].map(|offset| format!("{path}?offset={offset}&live=ndjson"));
        assert_eq!(paths, expected);
    }
}
