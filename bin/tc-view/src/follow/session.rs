//! A session of a service, followed over HTTP from byte to byte: a lost connection goes on at the
//! offset of the last byte that came.

use super::{BLOCK, Piece, Source, address};
use crate::args::ServiceArgs;
use anyhow::{Result, anyhow, bail};
use client::{
    AddressError, AttemptTrouble, Body, ErrorKind, Head, Network, PieceContent, Request, Response,
    Route, TimeLimits, Wait,
};
use redact::Redactor;
use std::time::{Duration, SystemTime};
use stdio::Failure;
use tokio::runtime::{Builder, Runtime};

/// The variable that holds the key of the service.
pub(super) const KEY: &str = "TC_SERVE_KEY";

/// The longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// After this silence the same bytes are asked for anew. The lines of a session have no signs of
/// life between them, and after a machine has slept, or a router has forgotten it, a connection may
/// be silent for ever.
const SILENCE: Duration = Duration::from_secs(30);

/// How many bytes of a refusal are read.
const REFUSAL: usize = 64 * 1024;

/// A session of a service.
pub(super) struct Session {
    runtime: Runtime,
    link: Link,
}

impl Session {
    /// Prepares to follow the session that `pasted` names; nothing is sent yet.
    ///
    /// # Errors
    /// One line for an address or a key that cannot be used.
    pub(super) fn open(pasted: &str, args: &ServiceArgs) -> Result<Session> {
        let url = address::events(pasted)?;
        let key = key(args)?;
        let route = Route::of(&url);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::limit("the network cannot be used"))?;
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
            was_there: false,
            has_begun: false,
            is_missed: false,
            is_over: false,
        };
        match route.check(&link.request(), |_| false) {
            Err(AddressError::Exposed(_)) if args.allow_insecure => {}
            Err(e @ AddressError::Exposed(_)) => bail!("{e}, or --allow-insecure"),
            checked => checked?,
        }
        Ok(Session { runtime, link })
    }
}

impl Source for Session {
    fn next(&mut self) -> Result<Piece<'_>> {
        self.runtime.block_on(self.link.next())
    }
}

/// The key for the service, from the file or the environment.
fn key(args: &ServiceArgs) -> Result<Option<String>> {
    let Some(file) = &args.key_file else {
        let key = std::env::var(KEY).unwrap_or_default();
        return usable(&key, KEY);
    };
    // The form of the file that tc-serve reads its keys from.
    let first = ::args::file(file, |text| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .ok_or_else(|| anyhow!("the file has no key, write it on a line of its own"))
    })?;
    usable(&first, &file.display().to_string())
}

/// A key that can be sent; `None` for an empty one.
fn usable(key: &str, origin: &str) -> Result<Option<String>> {
    let key = key.trim();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("the key in {origin} holds spaces or control characters, put the key alone there");
    }
    Ok((!key.is_empty()).then(|| key.to_owned()))
}

/// The lines of a session, over as many answers as it takes.
struct Link {
    network: Network,
    /// The address of the events.
    url: String,
    key: Option<String>,
    /// Takes the key out of what a server answers.
    redactor: Redactor,
    body: Option<Body>,
    /// How many bytes of the session have come.
    offset: u64,
    lines: HeldLines,
    /// How long to wait before the next attempt.
    pause: Option<Duration>,
    /// How many attempts in a row brought no bytes.
    failed: u32,
    /// Whether the service has answered: from then on it is waited for.
    was_there: bool,
    /// Whether the session was there.
    has_begun: bool,
    /// Whether the wait for the service was reported.
    is_missed: bool,
    /// Whether the session was removed.
    is_over: bool,
}

impl Link {
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
                    (self.failed, self.is_missed) = (0, false);
                    match self.lines.push(bytes) {
                        true => return Ok(Piece::Lines(&self.lines.whole)),
                        false => continue,
                    }
                }
                PieceContent::End => None,
                PieceContent::Lost(error) => Some(error),
            };
            self.body = None;
            match lost {
                Some(error) if error.kind == ErrorKind::Idle => {
                    (self.failed, self.is_missed) = (0, false);
                }
                // Most likely the service is there, and so is the rest.
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

    /// The request for what has not come yet.
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

    /// Asks for what has not come yet. Returns what is to be reported.
    async fn connect(&mut self) -> Result<Option<Piece<'static>>> {
        let limits = TimeLimits {
            idle: Some(SILENCE),
            deadline: None,
        };
        match self.network.send(self.request(), limits, None).await {
            Ok(Response { head, body }) if head.status == 200 => {
                let kind = head.header("content-type").unwrap_or("no media type");
                if kind.split(';').next() != Some(LINES) {
                    bail!(
                        "{}: the answer is {kind}, not the lines of a session ({LINES}); check that the address is one of tc-serve",
                        self.url
                    );
                }
                (self.was_there, self.has_begun) = (true, true);
                self.body = Some(body);
                Ok(None)
            }
            Ok(Response { head, body }) => {
                let text = self.redactor.text(&refusal(body).await).into_owned();
                self.refused(head, text)
            }
            Err((error, _)) if !self.was_there => {
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

    /// What follows from an answer that is not a success.
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
                let text = "the session has become shorter, what follows is from its beginning";
                return Ok(Some(Piece::Anew("session_truncated", text.to_owned())));
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
            _ if trouble.may_pass() => {
                self.was_there = true;
                return self.wait(Some(&trouble));
            }
            _ => String::new(),
        };
        bail!("{}: {why}{remedy}", self.url)
    }

    /// Waits before the next attempt. Returns the report of that, where the wait is long and the
    /// first of its kind.
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
        if !wait.is_announced() || std::mem::replace(&mut self.is_missed, true) {
            return Ok(None);
        }
        Ok(Some(Piece::Waiting(format!(
            "{why}; waiting for the service"
        ))))
    }
}

/// The media type of the lines of a session.
const LINES: &str = "application/x-ndjson";

/// The beginning of the body of a refusal.
async fn refusal(mut body: Body) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < REFUSAL
        && let PieceContent::Bytes(more) = body.next().await.what
    {
        bytes.extend_from_slice(more);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes that come in any pieces, as whole lines.
#[derive(Debug, Default)]
struct HeldLines {
    /// What was returned last.
    whole: Vec<u8>,
    /// The beginning of the line that has not come to its end.
    rest: Vec<u8>,
}

impl HeldLines {
    /// Takes the next bytes. Returns whether `whole` has lines now, or a part of a line that is
    /// longer than a block.
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

    /// The rest, if there is one: the last line, without a line feed.
    fn last(&mut self) -> Option<&[u8]> {
        self.whole = std::mem::take(&mut self.rest);
        (!self.whole.is_empty()).then_some(&self.whole)
    }
}
