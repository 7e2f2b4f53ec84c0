//! `GET /v1/sessions/events`: follows everything written to any session of a key from now on.

use super::follow::{FollowBody, Outlet, data};
use super::list::{blocking, open};
use super::{LINES, refused};
use crate::http::headers::accepts_sse;
use crate::http::response::stream_headers;
use crate::http::response::{Content, Refusal, RequestRecord, ResponseBody};
use crate::http::service::{Admitted, Service};
use crate::life::ServiceEnd;
use crate::pipe::EVENT_STREAM;
use crate::sessions::{FollowerPlace, PIECE, Sessions, indexed_sessions, lines};
use event::Raw;
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use store::{Change, SessionId, Store, StoreError};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

impl Service {
    /// Streams the new lines of all sessions of the client's key.
    pub(in crate::http) async fn all_events(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        exchange.begin_answer();
        let sessions = self.all_sessions()?;
        let is_sse = accepts_sse(request.headers());
        let content = if request.method() == Method::HEAD {
            Content::Whole(Bytes::new())
        } else {
            let place = self.follower(sessions, admitted)?;
            let key = self.key_hash(admitted.key);
            // Subscribe before the folder is read, so that no change is missed.
            let news = sessions.news();
            let ends = ends(sessions.store.path(), key.clone()).await?;
            let watching = Watching {
                sessions: Rc::clone(sessions),
                key,
                ends,
                news,
                is_sse,
                keep_alive: self.keep_alive,
                ending: self.ending.clone(),
                _place: place,
            };
            Content::Follow(FollowBody::new(None, |out| watching.run(out)))
        };
        let mut response = Response::new(ResponseBody::new(content));
        stream_headers(
            response.headers_mut(),
            if is_sse { EVENT_STREAM } else { LINES },
        );
        Ok(response)
    }
}

/// The end offsets of a key's sessions.
type Ends = HashMap<SessionId, u64>;

/// Returns the current end offsets of this key's sessions.
async fn ends(folder: &Path, key: Option<String>) -> Result<Ends, Refusal> {
    let folder = folder.to_owned();
    let read = move || -> Result<Ends, Refusal> {
        let scan = open(&folder)?;
        let all = indexed_sessions(&scan).map_err(|error| refused(StoreError::from(error)))?;
        let own = all.iter().filter(|session| session.is_of(key.as_deref()));
        let ends =
            own.filter_map(|session| Some((session.id, scan.stored(session.id).ok()?.bytes)));
        Ok(ends.collect())
    };
    blocking(read).await?
}

/// A client that follows all sessions of its key.
struct Watching {
    sessions: Rc<Sessions>,
    key: Option<String>,
    /// How far each session was sent. A session that is not in the map was created later or belongs
    /// to another key.
    ends: Ends,
    news: Receiver<Change>,
    is_sse: bool,
    keep_alive: Duration,
    ending: ServiceEnd,
    _place: FollowerPlace,
}

impl Watching {
    /// Sends new lines until the service ends.
    async fn run(mut self, out: Rc<Outlet>) -> io::Result<()> {
        loop {
            let next = tokio::select! {
                biased;
                () = self.ending.begun() => return Ok(()),
                next = tokio::time::timeout(self.keep_alive, self.news.recv()) => next,
            };
            match next {
                Ok(Ok(Change::Of(id))) => self.session(id, &out).await,
                Ok(Ok(Change::Any)) => self.fallen_behind(0, &out).await,
                Ok(Err(RecvError::Lagged(count))) => self.fallen_behind(count, &out).await,
                Ok(Err(RecvError::Closed)) => return Ok(()),
                Err(_) => {
                    let sign: &[u8] = if self.is_sse {
                        b": keep-alive\n\n"
                    } else {
                        b"\n"
                    };
                    out.send(sign.to_vec()).await;
                }
            }
        }
    }

    /// Reports that changes were lost, and checks all sessions.
    async fn fallen_behind(&mut self, count: u64, out: &Outlet) {
        // Later changes are relative to what is read here.
        self.news = self.news.resubscribe();
        self.send(&format!("{{\"lagged\":{count}}}"), out).await;
        let now = ends(self.sessions.store.path(), self.key.clone()).await;
        let mut all: Vec<SessionId> = self.ends.keys().copied().collect();
        // If the folder cannot be read now, it is read at the next change.
        let now = now.unwrap_or_default();
        all.extend(now.keys().filter(|id| !self.ends.contains_key(id)));
        for id in all {
            self.session(id, out).await;
        }
    }

    /// Sends the new lines of a session.
    async fn session(&mut self, id: SessionId, out: &Outlet) {
        if !self.ends.contains_key(&id) {
            let is_own = self.sessions.open(id, self.key.as_deref()).is_ok();
            if !is_own {
                return;
            }
            self.ends.insert(id, 0);
        }
        loop {
            let at = self.ends.get(&id).copied().unwrap_or_default();
            let read = match self.sessions.store.read(id, at, PIECE) {
                Ok(read) if read.is_empty() => return,
                Ok(read) => read,
                Err(StoreError::Unknown) => {
                    self.ends.remove(&id);
                    let removed = format!("{{\"session\":\"{id}\",\"removed\":true}}");
                    return self.send(&removed, out).await;
                }
                // The session was truncated by hand, or cannot be read now.
                Err(_) => return,
            };
            let mut behind = at;
            let mut text = Vec::new();
            for (line, place) in lines(&read, at) {
                behind = place.end;
                let event = std::str::from_utf8(line.trim_ascii_end());
                // The rest of a line that was incomplete at the start is not an event.
                if let Some(event) = event.ok().filter(|line| Raw::parse(line).is_ok()) {
                    let line =
                        format!("{{\"session\":\"{id}\",\"offset\":{behind},\"event\":{event}}}");
                    self.write(&line, &mut text);
                }
            }
            self.ends.insert(id, behind);
            if !text.is_empty() {
                out.send(text).await;
            }
        }
    }

    fn write(&self, line: &str, text: &mut Vec<u8>) {
        if self.is_sse {
            data(text, line.as_bytes());
        } else {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
    }

    async fn send(&self, line: &str, out: &Outlet) {
        let mut text = Vec::new();
        self.write(line, &mut text);
        out.send(text).await;
    }
}
