//! Refusals of requests about a session.

use super::response::Refusal;
use crate::sessions::{PlaceError, not_written};
use store::StoreError;

/// What a request refers to, so that a refusal can say what was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A session.
    Session,
    /// A response.
    Response,
    /// The response that the request continues from.
    PreviousResponse,
    /// A conversation.
    Conversation,
}

impl Named {
    /// Returns the refusal for something that does not exist or belongs to another key.
    pub(super) fn unknown(self) -> Refusal {
        let (what, code, member) = match self {
            Named::Session => ("session", "session_not_found", None),
            Named::Response => ("response", "response_not_found", None),
            Named::PreviousResponse => {
                let member = "previous_response_id";
                ("response", "previous_response_not_found", Some(member))
            }
            Named::Conversation => {
                let member = "conversation";
                ("conversation", "conversation_not_found", Some(member))
            }
        };
        let message = format!("no such {what} is stored here for your key");
        let mut refusal = Refusal::new(404, code, message);
        refusal.failure.param = member.map(Into::into);
        refusal
    }

    /// Returns the refusal for a session or response that cannot be read or written.
    pub(super) fn refuse(self, error: impl Into<PlaceError>) -> Refusal {
        match error.into() {
            PlaceError::Unknown => self.unknown(),
            PlaceError::Busy(running) => {
                let by = running.map_or_else(
                    || "another process".to_owned(),
                    |id| format!("the response resp_{id}"),
                );
                let message = format!("{by} is writing to the session; wait for it, or cancel it");
                Refusal::new(409, "session_busy", message)
            }
            PlaceError::TooMany => {
                let message = "this key has reached --max-sessions; remove some with DELETE \
                    /v1/sessions/ID, send store: false, or let --retain remove old ones";
                Refusal::full(429, "too_many_sessions", message)
            }
            PlaceError::TooLong => {
                let message = "this session has reached --max-session; begin another";
                Refusal::new(413, "session_too_long", message)
            }
            PlaceError::Store(StoreError::Moved(end)) => {
                let message = format!("the session ends at byte {end}");
                Refusal::new(400, "offset_behind_end", message)
            }
            PlaceError::Store(error) => not_written(&error).into(),
        }
    }
}

/// Returns the refusal for a key that has too many followers.
pub(super) fn too_many_followers() -> Refusal {
    let message = "too many clients of this key follow sessions; close some, follow all \
        sessions with one GET /v1/sessions/events, or raise --max-followers";
    Refusal::full(429, "too_many_followers", message)
}

/// Returns the refusal for an invalid member, parameter or header of the request.
pub(super) fn member(name: &str, why: &str) -> Refusal {
    let mut refusal = Refusal::new(400, "invalid_request_error", format!("{name}: {why}"));
    refusal.failure.param = Some(name.into());
    refusal
}

/// Returns the refusal for an answer whose hash does not match the pending call with this id. It
/// does not reveal the right hash, since whoever answers must have seen the call.
pub(super) fn other_call() -> Refusal {
    let message = "the pending call with this id has another hash; check it again in its session";
    Refusal::new(409, "hash_differs", message)
}
