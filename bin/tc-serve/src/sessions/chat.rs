//! Finds the place of a chat's request in its session. A client sends all messages of the chat each
//! time; the ids of the answers show which of them the session already has. Where the messages differ,
//! as after an edit or when an answer is requested again, those of the session are hidden; their lines
//! stay in the file.

use super::place::ContinuedMessage;
use super::{Outline, PlaceError, SessionPlace, Sessions, line};
use api::{Chat, InboundRequest};
use event::payload::{ResponseEnd, ResponseStatus};
use std::rc::Rc;
use store::SessionId;

/// The part of a chat that the session already has.
#[derive(Debug, Default)]
struct KnownChat {
    /// The first message of the request that is new.
    first: usize,
    /// The offsets of the session's messages that the client no longer has.
    lost: Vec<u64>,
    /// The message of the chat that the answer continues.
    continued: Option<ContinuedMessage>,
}

impl Sessions {
    /// Continues the session of a chat, or begins it.
    ///
    /// # Errors
    /// See [`PlaceError`]; nothing is written then.
    pub(super) fn chat(
        self: &Rc<Self>,
        id: SessionId,
        request: &InboundRequest,
        key: Option<&str>,
    ) -> Result<SessionPlace, PlaceError> {
        let (writer, outline) = match self.write(id, key) {
            Err(PlaceError::Unknown) => return self.begin(id, key, None, "", 0),
            written => written?,
        };
        let chat = request.chat.as_deref().cloned().unwrap_or_default();
        if chat.is_single() {
            return Ok(self.go_on(id, writer, &outline));
        }
        let known = known(&outline, &chat, request);
        let mut outline = Rc::unwrap_or_clone(outline);
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

/// Finds the part of a chat that the session already has.
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
        // After a cancelled or failed answer the client's message has parts that the session lacks.
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
