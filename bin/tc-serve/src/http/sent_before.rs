//! A request that its client has sent before: by its `Idempotency-Key`, or as the SDKs send a request
//! again.

use super::kept_request::KeptRequest;
use super::refusals::Named;
use super::response::Refusal;
use crate::sessions::{
    Outline, ResponseId, ResponseOutline, RunningResponse, Sessions, WantedPlace, id_of_name,
};
use std::rc::Rc;
use store::{SessionId, StoreError};

/// Whether a request was sent before, and what came of it.
pub(super) enum SentBefore {
    /// Its answer is made now.
    Running(Rc<RunningResponse>),
    /// Its answer has ended.
    Ended(ResponseId),
    /// It is new, and wants this place.
    No(WantedPlace),
}

/// The header that has the same value in each attempt of one request (OpenAI's SDKs send it with
/// `POST`).
pub(super) const IDEMPOTENCY: &str = "idempotency-key";

/// The header in which OpenAI's and Anthropic's SDKs count how often they have sent a request before.
const RETRIES: &str = "x-stainless-retry-count";

/// Finds what came of the same request, if the client has sent it before: with the same
/// `Idempotency-Key`, or, while its answer is made, with the same body and a count of retries.
///
/// # Errors
/// 400 for a response and a conversation in one request, 409 for a key that came with another body.
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
    // The id of a session that begins with such a request is made of the key, so that the next attempt
    // finds the session.
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

/// A request with an `Idempotency-Key`, and a session that may have its answer.
struct Asked<'a> {
    session: SessionId,
    /// The hash of the client's key.
    key: Option<&'a str>,
    /// The `Idempotency-Key`.
    name: &'a str,
    /// The hash of the body.
    hash: &'a str,
}

/// What a session has of an answer.
enum Found {
    /// No session has this id.
    NoSession,
    /// The session has no answer to the request.
    NoAnswer,
    /// The session has this answer.
    Answer(ResponseId),
}

impl Asked<'_> {
    /// Looks for the answer in the session. An answer that its client has left, or that failed before
    /// anything of it was sent, does not count: the client tries again to get one.
    ///
    /// # Errors
    /// 409 for a key that came with another body, and while another process makes the answer.
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
            // The service that made it was killed, or is another process.
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
