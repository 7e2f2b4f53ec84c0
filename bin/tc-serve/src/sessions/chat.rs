//! The place of a request of a chat. The client keeps the messages, and sends all of them each time:
//! the ids of those that were answered here say what the session has already. Where the client has
//! other messages than the session, as after a message was edited or an answer is wanted anew, the
//! session's are taken out of the conversation; the lines stay.

use super::place::ContinuedMessage;
use super::{Outline, PlaceError, SessionPlace, Sessions, line};
use api::{Chat, InboundRequest};
use event::payload::{ResponseEnd, ResponseStatus};
use std::rc::Rc;
use store::SessionId;

/// How much of a chat a session has.
#[derive(Debug, Default)]
struct KnownChat {
    /// The first message of the request that is new.
    first: usize,
    /// The offsets of the messages that the client does not have any more.
    lost: Vec<u64>,
    /// The message that the request goes on with.
    continued: Option<ContinuedMessage>,
}

impl Sessions {
    /// Goes on with the session of a chat, or begins it.
    ///
    /// # Errors
    /// See [`PlaceError`]; nothing is written then.
    pub(super) fn chat(
        self: &Rc<Self>,
        id: SessionId,
        request: &InboundRequest,
        key: Option<&str>,
    ) -> Result<SessionPlace, PlaceError> {
        let (writer, mut outline) = match self.write(id, key) {
            Err(PlaceError::Unknown) => return self.begin(id, key, None, "", 0),
            written => written?,
        };
        let chat = request.chat.as_deref().cloned().unwrap_or_default();
        if chat.is_single() {
            return Ok(self.go_on(id, writer, &outline));
        }
        let known = known(&outline, &chat, request);
        let mut hidden = Vec::new();
        for offset in &known.lost {
            let name = format!("{id}{offset:x}");
            let end = ResponseEnd {
                id: name.as_str().into(),
                status: ResponseStatus::Deleted.name().into(),
                timestamp: Some(store::now()),
                message: Some(*offset),
                ..ResponseEnd::default()
            };
            hidden.extend(line(&end.into()));
            outline.hide(*offset, None);
        }
        Ok(SessionPlace {
            first: known.first,
            hidden,
            continued: known.continued,
            ..self.go_on(id, writer, &outline)
        })
    }
}

/// Finds what a session has of a chat.
fn known(outline: &Outline, chat: &Chat, request: &InboundRequest) -> KnownChat {
    let places = outline.places();
    let count = request.conversation.messages.len();
    let behind = |at: usize| chat.messages.get(at).map_or(count, |message| message.first);
    let last = chat
        .messages
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, message)| {
            let mut written = outline.responses.iter().filter(|response| {
                let written = response.message.as_deref();
                written.is_some_and(|written| message.is_of(written))
            });
            let first = written.next()?;
            Some((at, first, written.next_back().unwrap_or(first)))
        });
    let Some((at, first, last)) = last else {
        let stored = outline.conversation();
        let (known, first) = stored.common_beginning(&request.conversation);
        return KnownChat {
            first,
            lost: places
                .iter()
                .skip(known)
                .map(|(offset, _)| *offset)
                .collect(),
            continued: None,
        };
    };
    let goes_on = chat.messages[at..].iter().all(|message| message.is_answer);
    let is_own = |offset: u64| (first.offset..last.end).contains(&offset);
    let has_answer = places
        .iter()
        .any(|(offset, is_answer)| *is_answer && is_own(*offset));
    let is_later = |(offset, _): &&(u64, bool)| *offset >= last.end;
    KnownChat {
        // Of an answer that was cancelled or has failed the client has more than the session.
        first: behind(if has_answer { at + 1 } else { at }),
        lost: places
            .iter()
            .filter(is_later)
            .map(|(offset, _)| *offset)
            .collect(),
        continued: goes_on.then_some(ContinuedMessage {
            begins: first.offset,
            end: last.end,
        }),
    }
}
