//! `GET /v1/sessions/{id}/events`: the lines of a session, starting at any byte.

use super::durable;
use super::follow::{FollowBody, Following, LineForm};
use super::{LINES, refused};
use crate::http::headers::accepts_sse;
use crate::http::query::Query;
use crate::http::refusals::too_many_followers;
use crate::http::response::stream_headers;
use crate::http::response::{Content, Refusal, RequestRecord, ResponseBody, no_content};
use crate::http::service::{Admitted, Service};
use crate::pipe::EVENT_STREAM;
use crate::sessions::{LiveSession, PIECE, SessionReader, Sessions};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use std::io;
use std::rc::Rc;
use store::{SessionId, Store};

/// Where to start reading a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// At this byte.
    Byte(u64),
    /// At the current end.
    Now,
}

/// How the response continues at the current end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Live {
    /// The response ends there.
    No,
    /// If there are no lines, the response waits for the next ones.
    LongPoll,
    /// The response also contains all later lines, in this form.
    Follow(LineForm),
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EventsQuery {
    from: From,
    live: Live,
    cursor: Option<u64>,
}

impl EventsQuery {
    /// Parses the query and the headers.
    ///
    /// # Errors
    /// 400 for an invalid offset or form.
    fn read(query: Query<'_>, headers: &HeaderMap) -> Result<EventsQuery, Refusal> {
        let wrong = |message: String| Refusal::new(400, "invalid_request_error", message);
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let cursor = query.get("cursor").and_then(|cursor| cursor.parse().ok());
        let offsets: Vec<&str> = query.all("offset").collect();
        let live = match query.get("live") {
            None if accepts_sse(headers) => Live::Follow(LineForm::Events),
            None => Live::No,
            Some("ndjson") => Live::Follow(LineForm::Lines),
            Some("long-poll") => Live::LongPoll,
            Some("sse") => Live::Follow(LineForm::Durable(cursor)),
            Some(other) => {
                let other = event::cut(other, 40);
                return Err(wrong(format!(
                    "live={other}: unknown, use live=ndjson, live=sse or live=long-poll"
                )));
            }
        };
        // A browser reconnects with the same URL, which contains the offset of its first
        // connection.
        let last = text("last-event-id").filter(|_| live == Live::Follow(LineForm::Events));
        let from = match (last, &offsets[..]) {
            (Some(last), _) => offset(last).map(From::Byte),
            (None, []) if matches!(live, Live::LongPoll | Live::Follow(LineForm::Durable(_))) => {
                return Err(wrong(
                    "offset is missing: offset=-1 is the beginning, offset=now the end".to_owned(),
                ));
            }
            (None, [] | ["-1"]) => Some(From::Byte(0)),
            (None, ["now"]) => Some(From::Now),
            (None, [typed]) => offset(typed).map(From::Byte),
            (None, _) => None,
        };
        let from = from.ok_or_else(|| {
            let typed = last.unwrap_or_else(|| offsets.first().copied().unwrap_or_default());
            let typed = event::cut(typed, 40);
            wrong(format!(
                "offset {typed}: not one offset, use a number of bytes, -1 for the beginning or now for the end"
            ))
        })?;
        Ok(EventsQuery { from, live, cursor })
    }
}

/// Parses a text of digits. Returns `None` for any other text.
fn offset(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A session to read, and the client's request.
struct Reading<'r> {
    sessions: &'r Rc<Sessions>,
    session: Rc<LiveSession>,
    query: EventsQuery,
    /// The offset of the first byte.
    start: u64,
    /// The current end of the session.
    end: u64,
    headers: &'r HeaderMap,
}

impl Service {
    /// Returns the lines of a session.
    pub(in crate::http) async fn session_events(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        exchange.begin_answer();
        let (sessions, session) = self.session(request.uri().path(), admitted)?;
        let query = EventsQuery::read(Query::of(request.uri()), request.headers())?;
        let end = sessions.store.end(session.id).map_err(refused)?;
        let start = match query.from {
            From::Byte(start) => start,
            From::Now => end,
        };
        if start > end {
            let message = format!("offset {start}: the session ends at byte {end}");
            return Err(Refusal::new(400, "offset_behind_end", message));
        }
        let reading = Reading {
            sessions,
            session,
            query,
            start,
            end,
            headers: request.headers(),
        };
        if request.method() == Method::HEAD {
            let mut response = lines(Content::Whole(Bytes::new()), "no-store");
            durable::headers(response.headers_mut(), end, false);
            return Ok(response);
        }
        match query.live {
            Live::No => Ok(reading.at_hand(query.from == From::Now)),
            Live::LongPoll => self.long_poll(reading, admitted).await,
            Live::Follow(form) => self.follow(&reading, form, admitted),
        }
    }

    /// Returns the available lines, or waits for the next ones.
    async fn long_poll(
        self: &Rc<Self>,
        mut reading: Reading<'_>,
        admitted: &Admitted,
    ) -> Result<Response<ResponseBody>, Refusal> {
        if reading.start == reading.end {
            let _place = self.follower(reading.sessions, admitted)?;
            let mut reader = SessionReader::new(reading.sessions, &reading.session, reading.start);
            tokio::select! {
                biased;
                next = reader.next() => { next.map_err(refused)?; }
                () = self.ending.begun() => {}
                () = tokio::time::sleep(self.limits.poll_time) => {}
            }
            reading.end = reader.offset;
        }
        let mut response = if reading.start == reading.end {
            let mut response = no_content();
            durable::headers(response.headers_mut(), reading.end, true);
            response
        } else {
            reading.at_hand(false)
        };
        let cursor = durable::cursor(reading.query.cursor);
        response
            .headers_mut()
            .insert("stream-cursor", HeaderValue::from(cursor));
        Ok(response)
    }

    /// Streams the available lines and all later ones.
    fn follow(
        self: &Rc<Self>,
        reading: &Reading<'_>,
        form: LineForm,
        admitted: &Admitted,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let id = reading.session.id;
        if form == LineForm::Events && !is_line_end(reading.sessions, id, reading.start)? {
            let message = format!(
                "offset {}: no line ends there; an event has the offset behind its line as its id",
                reading.start
            );
            return Err(Refusal::new(400, "not_a_line_end", message));
        }
        let following = Following {
            reader: SessionReader::new(reading.sessions, &reading.session, reading.start),
            _place: self.follower(reading.sessions, admitted)?,
            form,
            keep_alive: self.keep_alive,
            most: matches!(form, LineForm::Durable(_)).then_some(self.limits.poll_time * STREAM),
            ending: self.ending.clone(),
        };
        let body = FollowBody::new(None, |out| following.run(out));
        let mut response = lines(Content::Follow(body), "no-cache");
        let kind = match form {
            LineForm::Lines => LINES,
            LineForm::Events => EVENT_STREAM,
            // Clients of Durable Streams compare the whole value.
            LineForm::Durable(_) => "text/event-stream",
        };
        stream_headers(response.headers_mut(), kind);
        Ok(response)
    }

    /// Takes a follower's place.
    pub(super) fn follower(
        &self,
        sessions: &Rc<Sessions>,
        admitted: &Admitted,
    ) -> Result<crate::sessions::FollowerPlace, Refusal> {
        let key = self.key_hash(admitted.key);
        Sessions::follower(sessions, key.as_deref()).ok_or_else(too_many_followers)
    }
}

/// The duration of a Durable Streams stream, as a multiple of a long poll's wait: a minute.
const STREAM: u32 = 3;

impl Reading<'_> {
    /// Returns the lines up to the end. `is_now` means that the client asked for the end itself;
    /// such a response must not be cached.
    fn at_hand(&self, is_now: bool) -> Response<ResponseBody> {
        let (start, end, id) = (self.start, self.end, self.session.id);
        let tag = format!("\"{id}:{start}:{end}\"");
        let known = self.headers.get("if-none-match");
        let is_known = known
            .and_then(|known| known.to_str().ok())
            .is_some_and(|known| known.split(',').any(|known| known.trim() == tag));
        let mut response = if is_known && !is_now {
            let mut response = lines(Content::Whole(Bytes::new()), CACHED);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let sessions = Rc::clone(self.sessions);
            let body = FollowBody::new(Some(end - start), move |out| async move {
                let mut at = start;
                while at < end {
                    let read = sessions.store.read(id, at, PIECE);
                    let mut bytes = read.map_err(io::Error::other)?;
                    let rest = usize::try_from(end - at).unwrap_or(usize::MAX);
                    bytes.truncate(rest);
                    if bytes.is_empty() {
                        return Err(io::Error::other("the session was cut"));
                    }
                    at += bytes.len() as u64;
                    out.send(bytes).await;
                }
                Ok(())
            });
            lines(
                Content::Follow(body),
                if is_now { "no-store" } else { CACHED },
            )
        };
        durable::headers(response.headers_mut(), end, true);
        if let Some(tag) = HeaderValue::from_str(&tag).ok().filter(|_| !is_now) {
            response.headers_mut().insert("etag", tag);
        }
        response
    }
}

/// A cache must revalidate a response with its tag before reuse, since the next one may be longer.
const CACHED: &str = "private, no-cache";

/// Returns a response of lines.
fn lines(content: Content, cache: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new(content));
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(LINES));
    headers.insert("cache-control", HeaderValue::from_static(cache));
    let policy = HeaderValue::from_static("same-origin");
    headers.insert("cross-origin-resource-policy", policy);
    response
}

/// Whether a line ends before this offset.
fn is_line_end(sessions: &Sessions, id: SessionId, offset: u64) -> Result<bool, Refusal> {
    let Some(before) = offset.checked_sub(1) else {
        return Ok(true);
    };
    let bytes = sessions.store.read(id, before, 1).map_err(refused)?;
    Ok(bytes.first() == Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, headers: &[(&'static str, &str)]) -> Result<EventsQuery, String> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        EventsQuery::read(Query(query), &headers).map_err(|refusal| refusal.failure.message)
    }

    #[test]
    fn what_a_query_asks_for() {
        let sse = [("accept", "text/event-stream")];
        let last = [sse[0], ("last-event-id", "12")];
        let own = Live::Follow(LineForm::Events);
        let durable = |cursor| Live::Follow(LineForm::Durable(cursor));
        for (query, headers, from, live) in [
            ("", &[][..], From::Byte(0), Live::No),
            ("offset=-1", &[], From::Byte(0), Live::No),
            ("offset=now&x=y", &[], From::Now, Live::No),
            ("offset=00000000000000000017", &[], From::Byte(17), Live::No),
            (
                "live=ndjson",
                &[],
                From::Byte(0),
                Live::Follow(LineForm::Lines),
            ),
            (
                "offset=3&live=long-poll",
                &[],
                From::Byte(3),
                Live::LongPoll,
            ),
            ("offset=3&live=sse", &[], From::Byte(3), durable(None)),
            (
                "offset=3&live=sse&cursor=7",
                &sse,
                From::Byte(3),
                durable(Some(7)),
            ),
            ("", &sse, From::Byte(0), own),
            ("offset=now", &sse, From::Now, own),
            ("offset=3", &last, From::Byte(12), own),
            ("offset=3&live=sse", &last, From::Byte(3), durable(None)),
        ] {
            let query_read = read(query, headers).unwrap();
            assert_eq!((query_read.from, query_read.live), (from, live), "{query}");
        }
        for wrong in [
            "offset=",
            "offset=1&offset=2",
            "offset=1,2",
            "offset=%31",
            "offset=+1",
            "offset=-2",
            "offset=99999999999999999999",
            "offset=Now",
            "live=",
            "live=SSE",
            "live=sse",
            "live=long-poll",
        ] {
            assert!(read(wrong, &[]).is_err(), "{wrong}");
        }
        for last in ["", "x", "-1", "now", "\u{e9}"] {
            assert!(
                read("", &[sse[0], ("last-event-id", last)]).is_err(),
                "{last}"
            );
        }
    }
}
