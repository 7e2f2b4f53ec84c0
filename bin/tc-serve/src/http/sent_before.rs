//! Detects a request that its client has sent before, by its `Idempotency-Key` or by the SDKs'
//! retry header.

use super::kept_request::KeptRequest;
use super::refusals::Named;
use super::response::Refusal;
use crate::sessions::{
    Outline, ResponseId, ResponseOutline, RunningResponse, Sessions, WantedPlace, id_of_name,
};
use std::rc::Rc;
use store::{SessionId, StoreError};

/// Whether a request was sent before, and the state of its response.
pub(super) enum SentBefore {
    /// Its response is in progress.
    Running(Rc<RunningResponse>),
    /// Its response has ended.
    Ended(ResponseId),
    /// The request is new; this is the place it asks for.
    No(WantedPlace),
}

/// The header that has the same value in each attempt of one request. OpenAI's SDKs send it with
/// `POST`.
pub(super) const IDEMPOTENCY: &str = "idempotency-key";

/// The header in which OpenAI's and Anthropic's SDKs count earlier attempts of a request.
const RETRIES: &str = "x-stainless-retry-count";

/// Finds the response to an earlier attempt of the same request: one with the same
/// `Idempotency-Key`, or, while the response is in progress, one with the same body and a retry
/// count.
///
/// # Errors
/// 400 if the request names both a response and a conversation, and 409 for a key that was used
/// with another body.
pub(super) fn sent_before(
    sessions: &Rc<Sessions>,
    asked: &KeptRequest<'_>,
    key: Option<&str>,
) -> Result<SentBefore, Refusal> {
    let hash = asked.body_hash();
    let name = asked.header(IDEMPOTENCY).filter(|name| !name.is_empty());
    let is_retry = asked.header(RETRIES).is_some_and(|count| count != "0");
    let is_same = |running: &Rc<RunningResponse>| {
        running.key.as_deref() == key
            && !running.is_cancelled()
            && match (name, &running.idempotency) {
                (Some(name), Some(known)) => name == known,
                _ => is_retry && running.body_hash == hash,
            }
    };
    if let Some(running) = sessions.running().into_iter().find(is_same) {
        return match running.body_hash == hash {
            true => Ok(SentBefore::Running(running)),
            false => Err(other_body()),
        };
    }
    let mut place = asked.place(sessions, key)?;
    let Some(name) = name else {
        return Ok(SentBefore::No(place));
    };
    let asked_as = |session| Asked {
        session,
        key,
        name,
        hash: &hash,
    };
    if let Some(session) = place.wanted.session()
        && let Found::Answer(id) = asked_as(session).look(sessions)?
    {
        return Ok(SentBefore::Ended(id));
    }
    // A session created by such a request gets an id derived from the key, so that the next attempt
    // finds it.
    for tries in 0_u64.. {
        place.new = id_of_name(key, "idempotency", &format!("{tries} {name}"));
        match asked_as(place.new).look(sessions)? {
            Found::NoSession => break,
            Found::NoAnswer => {}
            Found::Answer(id) => return Ok(SentBefore::Ended(id)),
        }
    }
    Ok(SentBefore::No(place))
}

/// A request with an `Idempotency-Key`, and a session that may contain its response.
struct Asked<'a> {
    session: SessionId,
    /// The hash of the client's key.
    key: Option<&'a str>,
    /// The `Idempotency-Key`.
    name: &'a str,
    /// The hash of the body.
    hash: &'a str,
}

/// What a session contains for a request.
enum Found {
    /// No session has this id.
    NoSession,
    /// The session contains no response to the request.
    NoAnswer,
    /// The session contains this response.
    Answer(ResponseId),
}

impl Asked<'_> {
    /// Looks for the response in the session. A response that its client has left, or that failed
    /// before any of it was sent, is ignored, because the client is retrying to get one.
    ///
    /// # Errors
    /// 409 for a key that was used with another body, and while another process produces the
    /// response.
    fn look(&self, sessions: &Rc<Sessions>) -> Result<Found, Refusal> {
        let opened = sessions.open(self.session, self.key);
        let known = opened.and_then(|_| sessions.outline(self.session));
        let mut outline = match known {
            Err(StoreError::Unknown) => return Ok(Found::NoSession),
            known => known.map_err(|error| Named::Response.refuse(error))?,
        };
        if self
            .find(&outline)
            .is_some_and(|found| found.status.is_none())
        {
            // The service that produced the response was killed, or is another process.
            let written = sessions.write(self.session, self.key);
            outline = written.map_err(|error| Named::Response.refuse(error))?.1;
        }
        match self.find(&outline) {
            None => Ok(Found::NoAnswer),
            Some(found) if found.was_left() || found.has_failed_first() => Ok(Found::NoAnswer),
            Some(found) if found.body_hash.as_deref() != Some(self.hash) => Err(other_body()),
            Some(found) => match ResponseId::of(&found.id) {
                Some(id) => Ok(Found::Answer(id)),
                None => Err(Named::Response.unknown()),
            },
        }
    }

    /// The last response to this key that was not deleted.
    fn find<'o>(&self, outline: &'o Outline) -> Option<&'o ResponseOutline> {
        let mut responses = outline.responses.iter().rev();
        responses.find(|response| {
            response.idempotency.as_deref() == Some(self.name)
                && outline.response(&response.id).is_some()
        })
    }
}

fn other_body() -> Refusal {
    let message =
        "this Idempotency-Key came with another request before; make a new key for each request";
    Refusal::new(409, "idempotency_key_reused", message)
}
