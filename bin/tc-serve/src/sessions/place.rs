//! Finds the place of a request's response: its session, its first new message, and its history.

use super::{
    LiveSession, Outline, PendingCall, ResponseId, RunFile, SessionWriter, Sessions, line,
};
use api::{InboundRequest, message_lines};
use event::Json;
use event::payload::Session;
use std::rc::Rc;
use store::{Lease, SessionId, Store, StoreError};

/// What a request says about its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedSession {
    /// A new session.
    New,
    /// The session of this response, which the request continues.
    After(ResponseId),
    /// This session, which the request continues.
    Of(SessionId),
    /// This session, whose messages the request repeats from the start. It is created if it does
    /// not exist.
    Repeated(SessionId),
    /// The session of a chat of a user interface. It is created if it does not exist.
    Chat(SessionId),
}

impl WantedSession {
    /// Returns the session that the request names; `None` for a new one.
    pub(crate) fn session(self) -> Option<SessionId> {
        match self {
            WantedSession::New => None,
            WantedSession::After(response) => Some(response.session),
            WantedSession::Of(id) | WantedSession::Repeated(id) | WantedSession::Chat(id) => {
                Some(id)
            }
        }
    }
}

/// The session that a request asks for, and the id to use if a new one is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedPlace {
    /// What the request says of its session.
    pub wanted: WantedSession,
    /// The id of a new session or a fork.
    pub new: SessionId,
}

/// Why a request cannot get a place.
#[derive(Debug)]
pub(crate) enum PlaceError {
    /// The session or the response is unknown, or was deleted.
    Unknown,
    /// Another response is in progress in the session.
    Busy(Option<String>),
    /// The key has reached its maximum number of sessions.
    TooMany,
    /// The session has reached its maximum length.
    TooLong,
    /// The session cannot be read or written.
    Store(StoreError),
}

impl From<StoreError> for PlaceError {
    fn from(error: StoreError) -> PlaceError {
        match error {
            StoreError::Unknown => PlaceError::Unknown,
            // Another process has created the session at the same moment.
            StoreError::Busy | StoreError::Exists => PlaceError::Busy(None),
            other => PlaceError::Store(other),
        }
    }
}

/// The place of a request's response.
pub(crate) struct SessionPlace {
    /// The session.
    pub session: Rc<LiveSession>,
    /// Appends to the session.
    pub writer: SessionWriter,
    /// The index of the request's first message that the session does not contain.
    pub first: usize,
    /// What the session contained before; `None` if the request repeats it.
    pub history: Option<api::Conversation>,
    /// The approximate size of the history in bytes.
    pub history_size: usize,
    /// Whether the session was created for this request.
    pub is_new: bool,
    /// The session's calls that wait for approval.
    pub pending: Vec<PendingCall>,
    /// Lines that hide messages that the request replaces.
    pub hidden: Vec<u8>,
    /// The chat message that the response continues, if there is one.
    pub continued: Option<ContinuedMessage>,
}

/// A chat message that another response continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContinuedMessage {
    /// The offset of the response that began the message.
    pub begins: u64,
    /// The end of the last response that wrote to the message.
    pub end: u64,
}

impl Sessions {
    /// Finds the place of a request of the client whose key has this hash.
    ///
    /// # Errors
    /// See [`PlaceError`]; nothing is then written.
    pub(crate) fn place(
        self: &Rc<Self>,
        place: WantedPlace,
        request: &InboundRequest,
        key: Option<&str>,
    ) -> Result<SessionPlace, PlaceError> {
        match place.wanted {
            WantedSession::New => self.begin(place.new, key, None, "", 0),
            WantedSession::After(response) => self.after(response, place.new, key),
            WantedSession::Of(id) => {
                let (writer, outline) = self.write(id, key)?;
                Ok(self.go_on(id, writer, &outline))
            }
            WantedSession::Repeated(id) => self.repeated(id, place.new, request, key),
            WantedSession::Chat(id) => self.chat(id, request, key),
        }
    }

    /// Returns the conversation that a request refers to, and its approximate size in bytes.
    ///
    /// # Errors
    /// [`PlaceError::Unknown`] and [`PlaceError::Store`].
    pub(crate) fn history(
        self: &Rc<Self>,
        wanted: WantedSession,
        key: Option<&str>,
    ) -> Result<(api::Conversation, usize), PlaceError> {
        let response = match wanted {
            WantedSession::After(response) => Some(response.to_string()),
            _ => None,
        };
        let id = wanted.session().ok_or(PlaceError::Unknown)?;
        let _session = self.open(id, key)?;
        let outline = self.outline(id)?;
        let size = outline.conversation_size();
        match response {
            None => Ok((outline.conversation(), size)),
            Some(name) => {
                let known = outline.response(&name).ok_or(PlaceError::Unknown)?;
                if known.end == 0 {
                    return Err(PlaceError::Busy(Some(name)));
                }
                Ok((outline.conversation_before(known.end), size))
            }
        }
    }

    /// Begins a session with these lines behind its first; the request goes on at its message
    /// `first`.
    pub(super) fn begin(
        self: &Rc<Self>,
        id: SessionId,
        key: Option<&str>,
        fork: Option<(SessionId, u64)>,
        lines: &str,
        first: usize,
    ) -> Result<SessionPlace, PlaceError> {
        let fork = fork.map(|(id, offset)| format!("{{\"id\":\"{id}\",\"offset\":{offset}}}"));
        let name = id.to_string();
        let session = Session {
            id: name.as_str().into(),
            key: key.map(Into::into),
            created: store::now(),
            fork: fork.as_deref().map(Json::of),
            ..Session::default()
        };
        let mut begin = line(&session.into());
        begin.extend_from_slice(lines.as_bytes());
        let lease = self.create(id, key, &begin)?;
        let session = self.live(id);
        let writer = SessionWriter::new(self, &session, lease, begin.len() as u64);
        Ok(SessionPlace {
            session,
            writer,
            first,
            history: None,
            history_size: 0,
            is_new: true,
            pending: Vec::new(),
            hidden: Vec::new(),
            continued: None,
        })
    }

    /// Creates a session for the client whose key has this hash.
    ///
    /// # Errors
    /// [`PlaceError::TooMany`] and [`PlaceError::Store`].
    pub(crate) fn create(
        &self,
        id: SessionId,
        key: Option<&str>,
        lines: &[u8],
    ) -> Result<Lease, PlaceError> {
        if !self.may_begin(key) {
            return Err(PlaceError::TooMany);
        }
        let lease = self.store.create(id, lines)?;
        self.metrics.appended(lines.len() as u64);
        self.begun(id, key);
        Ok(lease)
    }

    /// Takes the lease of a session, and ends a response left unfinished by a killed service.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub(crate) fn write(
        self: &Rc<Self>,
        id: SessionId,
        key: Option<&str>,
    ) -> Result<(SessionWriter, Rc<Outline>), PlaceError> {
        let session = self.open(id, key)?;
        let leased = self.store.lease(id);
        let (lease, end) = leased.map_err(|error| self.busy(&session, error))?;
        if RunFile::is_held(&self.store.path_of(id)) {
            // The response waits for approval, or is between two turns.
            return Err(self.busy(&session, StoreError::Busy));
        }
        if !self.may_grow(end) {
            return Err(PlaceError::TooLong);
        }
        let mut writer = SessionWriter::new(self, &session, lease, end);
        let mut outline = self.outline(id)?;
        if let Some(left) = outline.active().cloned() {
            writer.end_left(&left)?;
            outline = self.outline(id)?;
        }
        Ok((writer, outline))
    }

    /// Whether anyone produces a response in this session, or answers one of its calls.
    pub(crate) fn is_written(&self, id: SessionId) -> bool {
        self.store.is_leased(id) || RunFile::is_held(&self.store.path_of(id))
    }

    /// Returns the error for a session that cannot be written, with the response in progress if it
    /// is known.
    pub(crate) fn busy(&self, session: &LiveSession, error: StoreError) -> PlaceError {
        let running = session.running.borrow();
        match error {
            StoreError::Busy => {
                PlaceError::Busy(running.as_ref().map(|running| running.id.to_string()))
            }
            other => other.into(),
        }
    }

    pub(super) fn go_on(
        self: &Rc<Self>,
        id: SessionId,
        writer: SessionWriter,
        outline: &Outline,
    ) -> SessionPlace {
        SessionPlace {
            session: self.live(id),
            writer,
            first: 0,
            history: Some(outline.conversation()),
            history_size: outline.conversation_size(),
            is_new: false,
            pending: outline.pending.clone(),
            hidden: Vec::new(),
            continued: None,
        }
    }

    /// Continues from a response: in its session if it is the last one there, else in a fork.
    fn after(
        self: &Rc<Self>,
        response: ResponseId,
        fork_id: SessionId,
        key: Option<&str>,
    ) -> Result<SessionPlace, PlaceError> {
        let id = response.session;
        let name = response.to_string();
        let session = self.open(id, key)?;
        // The last response of a session that nobody writes is the usual one, so the session is read
        // once for it.
        let outline = match self.write(id, key) {
            Ok((writer, outline)) => {
                let known = outline.response(&name).ok_or(PlaceError::Unknown)?;
                if outline
                    .responses
                    .last()
                    .is_some_and(|last| last.id == known.id)
                {
                    return Ok(self.go_on(id, writer, &outline));
                }
                outline
            }
            Err(PlaceError::Busy(_)) => self.outline(id)?,
            Err(error) => return Err(error),
        };
        let known = outline.response(&name).ok_or(PlaceError::Unknown)?;
        if known.end == 0 {
            drop(session);
            return Err(PlaceError::Busy(Some(name)));
        }
        let before = outline.conversation_before(known.end);
        let lines = message_lines(&before.messages);
        let fork = Some((id, known.end));
        let place = self.begin(fork_id, key, fork, &lines, 0)?;
        Ok(SessionPlace {
            history: Some(before),
            history_size: outline.conversation_size(),
            ..place
        })
    }

    /// Goes on with a session whose client sends the whole history each time. Only what the session
    /// does not have is appended; where the client tells another history, the common beginning goes
    /// into a fork. A single message is no history, and goes on.
    fn repeated(
        self: &Rc<Self>,
        id: SessionId,
        fork_id: SessionId,
        request: &InboundRequest,
        key: Option<&str>,
    ) -> Result<SessionPlace, PlaceError> {
        let (writer, outline) = match self.write(id, key) {
            Err(PlaceError::Unknown) => return self.begin(id, key, None, "", 0),
            written => written?,
        };
        let stored = outline.conversation();
        let (known, first) = stored.common_beginning(&request.conversation);
        let is_new = |message: &&api::Message| message.role() != "system";
        let messages = &request.conversation.messages;
        if first == 0 && messages.iter().filter(is_new).count() == 1 {
            return Ok(self.go_on(id, writer, &outline));
        }
        let rest = &stored.messages[known..];
        if rest.iter().any(|message| message.role() != "system") {
            let end = writer.end;
            drop(writer);
            let lines = message_lines(&stored.messages[..known]);
            return self.begin(fork_id, key, Some((id, end)), &lines, first);
        }
        Ok(SessionPlace {
            session: self.live(id),
            writer,
            first,
            history: None,
            history_size: 0,
            is_new: false,
            pending: outline.pending.clone(),
            hidden: Vec::new(),
            continued: None,
        })
    }
}
