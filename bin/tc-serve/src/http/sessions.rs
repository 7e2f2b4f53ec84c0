//! The sessions of a client's key: a list of them, one of them, and the lines of one or of all as
//! they are written.

mod all;
mod durable;
mod events;
mod follow;
mod list;

pub(crate) use follow::FollowBody;

use super::response::{Refusal, ResponseBody};
use super::service::{Admitted, Service};
use crate::route::session_of;
use crate::sessions::{LiveSession, Sessions, not_written};
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use std::rc::Rc;
use store::{SessionId, StoreError};

/// The media type of lines.
const LINES: &str = "application/x-ndjson; charset=utf-8";

impl Service {
    /// The sessions.
    ///
    /// # Errors
    /// 404 where the service keeps none.
    pub(super) fn all_sessions(&self) -> Result<&Rc<Sessions>, Refusal> {
        self.sessions.as_ref().ok_or_else(|| {
            let message = "this service keeps no sessions; start it with --sessions DIR";
            Refusal::new(404, "sessions_not_kept", message)
        })
    }

    /// The session whose path this is.
    ///
    /// # Errors
    /// 404 for one that the client's key does not have, whether another key has it or not.
    pub(super) fn session(
        &self,
        path: &str,
        admitted: &Admitted,
    ) -> Result<(&Rc<Sessions>, Rc<LiveSession>), Refusal> {
        let sessions = self.all_sessions()?;
        let id = session_of(path).and_then(SessionId::of);
        let key = self.key_hash(admitted.key);
        let open = |id| sessions.open(id, key.as_deref()).map_err(stored);
        Ok((sessions, open(id.ok_or_else(unknown)?)?))
    }

    /// Removes a session.
    pub(super) fn remove_session(
        &self,
        path: &str,
        admitted: &Admitted,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (sessions, session) = self.session(path, admitted)?;
        if let Some(running) = &*session.running.borrow() {
            let message = format!(
                "the response {} is being made for this session; cancel it, or wait for its end",
                running.id
            );
            return Err(Refusal::new(409, "session_busy", message));
        }
        let key = self.key_hash(admitted.key);
        sessions
            .remove(session.id, key.as_deref())
            .map_err(stored)?;
        let content = super::response::Content::Whole(Bytes::new());
        let mut response = Response::new(ResponseBody::new(content));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert("cache-control", HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

/// The refusal of an id that is not one of the client's sessions.
fn unknown() -> Refusal {
    let message = "there is no such session; GET /v1/sessions lists those of your key";
    Refusal::new(404, "session_not_found", message)
}

/// The refusal where the store does not do what it is asked.
fn stored(error: StoreError) -> Refusal {
    match error {
        StoreError::Unknown => unknown(),
        StoreError::Busy => Refusal::new(
            409,
            "session_busy",
            "somebody writes to this session; wait until the answer has ended",
        ),
        StoreError::Moved(end) => {
            let message = format!("the session ends at byte {end}");
            Refusal::new(400, "offset_behind_end", message)
        }
        other => not_written(&other).into(),
    }
}

/// The refusal of one follower too many.
fn too_many_followers() -> Refusal {
    let message = "too many clients of this key follow sessions; close some, follow all sessions with one GET /v1/sessions/events, or raise --max-followers";
    Refusal::full(429, "too_many_followers", message)
}

/// The refusal of one session too many.
pub(super) fn too_many_sessions() -> Refusal {
    let message = "this key has as many sessions as --max-sessions allows; remove some with DELETE /v1/sessions/ID, send store: false, or let --retain remove old ones";
    Refusal::full(429, "too_many_sessions", message)
}

/// The refusal of a request to a session that may not become longer.
pub(super) fn session_too_long() -> Refusal {
    let message = "this session is as long as --max-session allows; begin another";
    Refusal::new(413, "session_too_long", message)
}
