//! Handles a request whose response is stored: finds its place in a session, and produces the
//! response there. Source of the members: OpenAI's
//! <https://platform.openai.com/docs/api-reference/responses/create>.

use super::body;
use super::calls::verdict_options;
use super::headers::{accepts_sse, client_retries, forwarded};
use super::kept_request::{KeptRequest, OwnTools};
use super::refusals::{Named, member, other_call};
use super::response::{Refusal, RequestRecord, ResponseBody, whole};
use super::sent_before::{IDEMPOTENCY, SentBefore, sent_before};
use super::service::{Admitted, Service};
use super::stored::{
    SESSION, StoredOptions, StoredResponse, StoredUi, conversation_id, with_session,
};
use super::tool_loop::{LoopStep, ToolLoop, TurnRequest};
use crate::budget::Share;
use crate::client_request::ClientRequest;
use crate::front::AnyFront;
use crate::keys::{ClientKey, KeyHash, hex};
use crate::pipe::{EventLines, JSON, PipeOutput};
use crate::sessions::{
    ContinuedMessage, LiveSession, PendingCall, ResponseId, RunningResponse, SessionPlace,
    SessionWriter, Sessions, WaitingClient, WantedPlace, WantedSession, id_of_name, line,
    not_written, one_turn, produce, random_id,
};
use crate::tools::{ServiceTools, ToolsMode};
use crate::traces::client_trace;
use api::{AnswerForm, AnswerOptions, Conversation, Front, InboundRequest, RunningStatus};
use event::Json;
use event::payload::Response as ResponseEvent;
use hyper::{HeaderMap, Response, StatusCode};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;
use store::SessionId;
use trace::TraceContext;

/// The client's answers to pending calls.
struct PersonAnswers {
    /// The answers as options of `tool-exec`.
    words: Vec<OsString>,
    /// The offsets of the calls.
    calls: Vec<u64>,
}

/// The header that selects what a client sees of calls that the service runs.
const MODE: &str = "x-toolpipe-mode";

/// The header that selects what happens when a call needs approval. `wait`: the response waits for
/// a user. `end`: the response ends, and the client approves or denies the call in its next
/// request.
const PENDING: &str = "x-toolpipe-pending";

impl Service {
    /// Returns the sessions if the response to this request is stored: OpenAI Responses unless the
    /// client opts out, responses to a user interface, and any response whose client names a
    /// session.
    pub(super) fn keeps(
        &self,
        front: AnyFront,
        headers: &HeaderMap,
        inbound: &InboundRequest,
    ) -> Option<Rc<Sessions>> {
        let sessions = self.sessions.as_ref()?;
        let is_kept = self.is_stored(front, headers, inbound)
            // An unknown mode is rejected later, when the response begins.
            || self.tools_for(headers).map_or(true, |tools| tools.is_some());
        is_kept.then(|| Rc::clone(sessions))
    }

    /// Whether the client asked us to store the response. If the service runs tools, a response
    /// that the client does not want stored is still written to a session, which is removed when
    /// the response ends.
    fn is_stored(&self, front: AnyFront, headers: &HeaderMap, inbound: &InboundRequest) -> bool {
        headers.contains_key(SESSION)
            || match front {
                AnyFront::Ui(_) => true,
                AnyFront::Api(front) => front == Front::Responses && inbound.store() != Some(false),
                AnyFront::Events => false,
            }
    }

    /// Returns the hash of a client's key, which identifies the client's sessions.
    pub(super) fn key_hash(&self, key: ClientKey) -> Option<String> {
        key.map(KeyHash::hex)
    }

    /// Prepends the history that a request refers to, for a request whose own response is not
    /// stored.
    ///
    /// # Errors
    /// 404 for a response or a conversation that is not stored here for this client, and
    /// [`crate::budget::NoRoom`] if `share` has no room for the history.
    pub(super) async fn recall(
        &self,
        admitted: &Admitted,
        inbound: &mut InboundRequest,
        share: &mut Share,
    ) -> Result<(), Refusal> {
        let Some(sessions) = &self.sessions else {
            return Ok(());
        };
        if inbound.background() {
            return Err(member(
                "background",
                "an answer in the background has to be stored; leave out \"store\": false",
            ));
        }
        let key = self.key_hash(admitted.key);
        let Some(wanted) = referred(inbound)? else {
            return Ok(());
        };
        let read = sessions.read_ahead_of(wanted.session(), key.as_deref());
        read.await.map_err(|error| named(wanted).refuse(error))?;
        let history = sessions.history(wanted, key.as_deref());
        let (history, size) = history.map_err(|error| named(wanted).refuse(error))?;
        share.reserve(share.kept() + size, size)?;
        inbound.continue_from(history);
        Ok(())
    }

    /// Answers a request whose response is stored.
    ///
    /// # Errors
    /// 400 for a request that the service or its source does not accept, 404 for a session that is
    /// not the client's, 409 for one that is currently being written, 413 and 429 at the limits of
    /// sessions, and the failure of the response if none of it was sent.
    pub(super) async fn kept_turn(
        self: &Rc<Self>,
        sessions: &Rc<Sessions>,
        asked: KeptRequest<'_>,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let key = self.key_hash(asked.admitted.key);
        let wanted = asked.place(sessions, key.as_deref())?.wanted;
        let read = sessions.read_ahead_of(wanted.session(), key.as_deref());
        read.await.map_err(|error| named(wanted).refuse(error))?;
        let is_background = asked.inbound.background();
        let is_stream = asked.front.streams(&asked.inbound);
        let is_sse = accepts_sse(asked.headers);
        if asked.front.is_ui() {
            // If someone else has just answered a call, the call runs before the response
            // continues.
            let place = asked.place(sessions, key.as_deref())?;
            let session = place.wanted.session().map(|id| sessions.live(id));
            let idle = session.filter(|session| session.running.borrow().is_none());
            if let Some(session) = idle {
                drop(Arc::clone(&session.deciding).lock_owned().await);
            }
        }
        let (id, running) = match sent_before(sessions, &asked, key.as_deref())? {
            SentBefore::Running(running) => (running.id, Some(running)),
            SentBefore::Ended(id) => (id, None),
            SentBefore::No(wanted) => {
                let running = self.begin(sessions, asked, wanted, key)?;
                (running.id, Some(running))
            }
        };
        let stored = StoredResponse::read(sessions, id)?;
        if is_background && !is_stream && running.is_some() {
            let body = self
                .encoder(&stored, AnswerForm::Stream)?
                .snapshot(RunningStatus::Queued);
            return Ok(with_session(
                whole(StatusCode::OK, JSON, body.unwrap_or_default()),
                id,
            ));
        }
        let form = match (is_stream, is_background) {
            (true, _) => AnswerForm::Stream,
            (false, true) => AnswerForm::Object,
            (false, false) => AnswerForm::Whole,
        };
        let running = running.map(|running| {
            let client = WaitingClient::new(sessions, &running);
            (running, client)
        });
        let mut view = self.view(sessions, stored, form, is_sse, running);
        // A client that loses its connection uses the id of the first event to reconnect.
        view.begins_at_once = is_background && is_stream;
        self.respond_with(view, is_stream, exchange).await
    }

    /// Begins the response to a request. Everything a replay needs is written to the session before
    /// the model is asked.
    ///
    /// # Errors
    /// As [`Service::kept_turn`], up to the first event.
    fn begin(
        self: &Rc<Self>,
        sessions: &Rc<Sessions>,
        asked: KeptRequest<'_>,
        wanted: WantedPlace,
        key: Option<String>,
    ) -> Result<Rc<RunningResponse>, Refusal> {
        let place = sessions.place(wanted, &asked.inbound, key.as_deref());
        let place = place.map_err(|error| named(wanted.wanted).refuse(error))?;
        let session = place.session.id;
        let is_new = place.is_new;
        let owner = key.clone();
        let begun = self.begin_in(asked, place, key);
        if begun.is_err() && is_new {
            // Nothing was produced. If the removal fails, an empty session remains.
            let _ = sessions.remove(session, owner.as_deref());
        }
        begun
    }

    fn begin_in(
        self: &Rc<Self>,
        asked: KeptRequest<'_>,
        place: SessionPlace,
        key: Option<String>,
    ) -> Result<Rc<RunningResponse>, Refusal> {
        let SessionPlace {
            session,
            mut writer,
            first,
            history,
            history_size,
            pending,
            hidden,
            continued,
            is_new,
        } = place;
        let id = ResponseId {
            session: session.id,
            offset: writer.end + hidden.len() as u64,
        };
        let front = asked.front;
        let client = client_trace(asked.headers);
        let tools = self.tools_for(asked.headers)?;
        // A request without tools of the service cannot answer calls.
        let waiting = tools.as_ref().map(|_| &pending[..]).unwrap_or_default();
        let answers = asked.answers(waiting, &self.client_name(asked.admitted.key))?;
        let ends_for_a_person = asked.ends_for_a_person()?;

        let mode = tools.as_ref().map(|(_, mode)| *mode);
        let options = self.stored_options(id, &asked, mode, answers.calls, continued);
        let body_hash = asked.body_hash();
        let mut lines = hidden;
        lines.extend(self.response_line(id, &asked, &body_hash, &options, client.as_ref())?);

        let trace = self.trace_of(&id.to_string(), client.as_ref());
        let background = asked.is_background();
        let is_stored = self.is_stored(front, asked.headers, &asked.inbound);
        let idempotency = asked.header(IDEMPOTENCY).map(str::to_owned);
        let (mut request, said) = asked.request(first, history, history_size, trace.clone())?;
        self.source
            .check(request.api, &request.request)
            .map_err(body::refused)?;
        let (at_once, later) = parted(&said, !answers.words.is_empty());
        lines.extend_from_slice(at_once);
        let own = tools.map(|(tools, _)| {
            let decides = (!answers.words.is_empty()).then_some(answers.words);
            OwnTools::offered(tools, &mut request.request, decides, ends_for_a_person)
        });
        write_down(&session, &mut writer, &lines, later)?;
        let pipe = self.pipe_for(&request, None, PipeOutput::Events(EventLines::kept()));
        let mut running = RunningResponse::new(id, key, front.name(), pipe);
        running.is_background = background;
        running.trace = trace;
        // The client may answer a call of the session in a later request.
        running.is_temporary = is_new && !is_stored && !ends_for_a_person;
        running.idempotency = idempotency;
        running.body_hash = body_hash;
        if running.is_background && (own.is_some() || front.is_ui()) {
            writer.sessions().remember_left(session.id);
        }
        Ok(self.make(running, writer, request, own))
    }

    /// Starts the task that produces a response: one turn, or with the service's own tools as many
    /// turns as needed.
    pub(super) fn make(
        self: &Rc<Self>,
        running: RunningResponse,
        writer: SessionWriter,
        mut request: ClientRequest,
        own: Option<OwnTools>,
    ) -> Rc<RunningResponse> {
        let running = Rc::new(running);
        *writer.session.running.borrow_mut() = Some(Rc::clone(&running));
        let Some(own) = own else {
            let work = self.work(request, &running.pipe());
            let make = async move |running: &RunningResponse, writer: &mut SessionWriter| {
                one_turn(running, writer, work).await
            };
            tokio::task::spawn_local(produce(Rc::clone(&running), writer, make));
            return running;
        };
        let turns = ToolLoop {
            service: Rc::clone(self),
            tools: own.tools,
            request: TurnRequest::of(&mut request),
            leave: own.leave,
            is_background: running.is_background,
            ends_for_a_person: own.ends_for_a_person,
        };
        let first = match own.decides {
            Some(options) => LoopStep::Decide(options),
            None => LoopStep::Ask(Box::new(request)),
        };
        let make = async move |running: &RunningResponse, writer: &mut SessionWriter| {
            turns.run(running, writer, first).await
        };
        tokio::task::spawn_local(produce(Rc::clone(&running), writer, make));
        running
    }

    /// Returns the tools that the service runs for a request, in the mode that the request selects.
    ///
    /// # Errors
    /// 400 for an unknown mode.
    pub(super) fn tools_for(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<(Rc<ServiceTools>, ToolsMode)>, Refusal> {
        let Some(tools) = &self.tools else {
            return Ok(None);
        };
        let mode = match headers
            .get(MODE)
            .map(|mode| mode.to_str().unwrap_or_default())
        {
            None => tools.mode,
            Some(word) => ToolsMode::of(word)
                .ok_or_else(|| member(MODE, "not one of standard, auto, pass"))?,
        };
        Ok((mode != ToolsMode::Pass).then(|| (Rc::clone(tools), mode)))
    }

    /// Returns what the response contains apart from the model's output. With `mode`, the service
    /// runs tools.
    fn stored_options(
        &self,
        id: ResponseId,
        asked: &KeptRequest<'_>,
        mode: Option<ToolsMode>,
        calls: Vec<u64>,
        continued: Option<ContinuedMessage>,
    ) -> StoredOptions {
        let inbound = &asked.inbound;
        let name = id.to_string();
        let conversation = inbound.conversation_id();
        let options = AnswerOptions {
            keeps_ids: false,
            is_stored: true,
            is_background: asked.is_background(),
            shows_steps: mode.is_some(),
            conversation: conversation.map(|_| conversation_id(id.session)),
            ..self.answer_options(asked.front.settings(), &name, inbound, &asked.body)
        };
        let ui = match asked.front {
            AnyFront::Ui(front) => Some(StoredUi {
                options: front.options(&name, inbound),
                from: continued.map(|continued| continued.end),
                begins: continued.map(|continued| continued.begins),
            }),
            AnyFront::Api(_) | AnyFront::Events => None,
        };
        StoredOptions {
            options,
            mode: mode.map(|mode| mode.name().to_owned()),
            calls,
            ui,
        }
    }

    /// Returns the `response` event of a request.
    fn response_line(
        &self,
        id: ResponseId,
        asked: &KeptRequest<'_>,
        body_hash: &str,
        options: &StoredOptions,
        client: Option<&TraceContext>,
    ) -> Result<Vec<u8>, Refusal> {
        let inbound = &asked.inbound;
        let name = id.to_string();
        let span = client.map(|client| client.span.to_string());
        let state = client.and_then(|client| client.state.as_deref());
        let answer = serde_json::to_string(options)
            .map_err(|error| Refusal::new(500, "internal_error", error.to_string()))?;
        let event = ResponseEvent {
            id: name.as_str().into(),
            front: asked.front.name().into(),
            api: self
                .source
                .upstream(inbound.model.as_deref())
                .map(|upstream| upstream.api().name().into()),
            model: inbound.model.as_deref().map(Into::into),
            background: asked.is_background(),
            idempotency: asked.header(IDEMPOTENCY).map(Into::into),
            body_hash: Some(body_hash.into()),
            answer: Some(Json::of(&answer)),
            timestamp: Some(store::now()),
            traceparent: span.as_deref().map(Into::into),
            tracestate: state.map(Into::into),
        };
        Ok(line(&event.into()))
    }
}

/// Splits the lines of a client's input. If it answers calls, the other messages are appended after
/// the results of the calls.
fn parted(said: &[u8], has_answers: bool) -> (&[u8], &[u8]) {
    let end = said.iter().position(|byte| *byte == b'\n');
    match has_answers {
        false => (said, &[]),
        true => said.split_at(end.map_or(0, |end| end + 1)),
    }
}

/// Appends the lines that begin a response, and keeps the others for its next turn.
fn write_down(
    session: &LiveSession,
    writer: &mut SessionWriter,
    lines: &[u8],
    later: &[u8],
) -> Result<(), Refusal> {
    session.put_off(later)?;
    writer.append(lines).map_err(|error| {
        session.take_put_off();
        not_written(&error).into()
    })
}

impl OwnTools {
    /// Adds the service's tools to the client's tools in the request.
    fn offered(
        tools: Rc<ServiceTools>,
        inbound: &mut InboundRequest,
        decides: Option<Vec<OsString>>,
        ends_for_a_person: bool,
    ) -> OwnTools {
        let clients = inbound.tools.iter().flat_map(|tools| tools.names());
        let leave = clients.map(str::to_owned).collect();
        inbound.offer(&tools.list);
        OwnTools {
            tools,
            leave,
            decides,
            ends_for_a_person,
        }
    }
}

impl KeptRequest<'_> {
    /// Returns the request to the source with the history of the session, and the client's messages
    /// from `first` on as lines of the session.
    ///
    /// # Errors
    /// If the memory budget has no room for the history, which is also sent to the provider.
    fn request(
        self,
        first: usize,
        history: Option<Conversation>,
        history_size: usize,
        trace: Option<TraceContext>,
    ) -> Result<(ClientRequest, Vec<u8>), Refusal> {
        let (mut share, mut inbound) = (self.share, self.inbound);
        let api = self.front.api();
        share.reserve(share.kept() + history_size, history_size)?;
        let first = match &history {
            Some(history) if inbound.chat.is_some() => {
                inbound.go_on_from(first, history);
                0
            }
            _ => first,
        };
        let said = inbound.session_lines(api, None, first).into_bytes();
        inbound.keep_here();
        if let Some(history) = history {
            inbound.continue_from(history);
        }
        let request = ClientRequest {
            share,
            key: self.admitted.key,
            id: self.admitted.id.clone(),
            api,
            request: inbound,
            retries: client_retries(self.headers),
            headers: forwarded(api, self.headers),
            trace,
        };
        Ok((request, said))
    }

    /// Returns the text of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the response continues when the client leaves. A response to a user interface does,
    /// because a reloaded page reconnects to it.
    fn is_background(&self) -> bool {
        self.inbound.background() || self.front.is_ui()
    }

    /// Whether the response ends when a call needs approval: either the client says so, or the
    /// client answers such a call.
    ///
    /// # Errors
    /// 400 for an unknown value.
    fn ends_for_a_person(&self) -> Result<bool, Refusal> {
        match self.header(PENDING) {
            // A user interface sends its answers in its next request.
            None => Ok(!self.inbound.approvals.is_empty() || self.front.is_ui()),
            Some("wait") => Ok(false),
            Some("end") => Ok(true),
            Some(_) => Err(member(PENDING, "not one of wait, end")),
        }
    }

    /// Returns the client's answers to pending calls, given in the name of `by`.
    ///
    /// # Errors
    /// 400 for an answer to a call that is not pending.
    fn answers(&self, pending: &[PendingCall], by: &str) -> Result<PersonAnswers, Refusal> {
        let mut answers = PersonAnswers {
            words: Vec::new(),
            calls: Vec::new(),
        };
        for approval in &self.inbound.approvals {
            let call = pending.iter().find(|call| approval.is_of(&call.tool_id));
            let Some(call) = call else {
                if self.front.is_ui() {
                    // Someone else has already answered; the client sees that in the response.
                    continue;
                }
                let why = format!(
                    "the call {} is not pending in the session that the request continues",
                    event::cut(&approval.call_id, 100)
                );
                return Err(member("input", &why));
            };
            let hash = approval.hash.as_deref();
            if hash.is_some_and(|hash| hash != call.hash) {
                return Err(other_call());
            }
            let name = format!("{}:{}", call.tool_id, call.hash);
            let reason = approval.reason.as_deref();
            let words = verdict_options(approval.is_approved, &name, reason);
            answers.words.extend(words);
            answers.calls.extend(call.offset);
        }
        if !answers.words.is_empty() {
            answers.words.extend(["--answered-by".into(), by.into()]);
        }
        Ok(answers)
    }

    /// Returns the hash of the body in hexadecimal.
    pub(super) fn body_hash(&self) -> String {
        hex(&Sha256::digest(&self.body))
    }

    /// Returns the place that the request asks for.
    ///
    /// # Errors
    /// As [`referred`].
    pub(super) fn place(
        &self,
        sessions: &Sessions,
        key: Option<&str>,
    ) -> Result<WantedPlace, Refusal> {
        let new = random_id().map_err(|error| not_written(&error))?;
        let named = || {
            let (name, go_on): (_, fn(SessionId) -> WantedSession) = match &self.inbound.chat {
                Some(chat) => (Some(chat.id.as_str()), WantedSession::Chat),
                None => (self.header(SESSION), WantedSession::Repeated),
            };
            let name = name.filter(|name| !name.is_empty());
            name.map(|name| go_on(session_of_name(sessions, name, key)))
        };
        if self
            .inbound
            .chat
            .as_ref()
            .is_some_and(|chat| is_dots(&chat.id))
        {
            let why = "no path can have it, which resume and stop need; choose another";
            return Err(member("id", why));
        }
        let wanted = referred(&self.inbound)?.or_else(named);
        Ok(WantedPlace {
            wanted: wanted.unwrap_or(WantedSession::New),
            new,
        })
    }
}

/// Whether clients remove this path segment, encoded or not. Source:
/// <https://url.spec.whatwg.org/#path-state>, "single-dot URL path segment".
fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Returns the session that a client names by its id, or by a name of the client's own.
pub(super) fn session_of_name(sessions: &Sessions, name: &str, key: Option<&str>) -> SessionId {
    let own = SessionId::of(name).filter(|id| sessions.open(*id, key).is_ok());
    own.unwrap_or_else(|| id_of_name(key, "session", name))
}

/// Returns the session that an OpenAI Responses request refers to.
///
/// # Errors
/// 400 if the request names both a response and a conversation, and 404 for an id that no session
/// of this service can have.
fn referred(inbound: &InboundRequest) -> Result<Option<WantedSession>, Refusal> {
    match (inbound.previous_response_id(), inbound.conversation_id()) {
        (Some(_), Some(_)) => Err(member(
            "previous_response_id",
            "it cannot be given together with conversation",
        )),
        (Some(id), None) => match ResponseId::of(id) {
            Some(id) => Ok(Some(WantedSession::After(id))),
            None => Err(Named::PreviousResponse.unknown()),
        },
        (None, Some(id)) => match id.strip_prefix("conv_").and_then(SessionId::of) {
            Some(id) => Ok(Some(WantedSession::Of(id))),
            None => Err(Named::Conversation.unknown()),
        },
        (None, None) => Ok(None),
    }
}

/// Returns how the request refers to this session.
fn named(wanted: WantedSession) -> Named {
    match wanted {
        WantedSession::After(_) => Named::PreviousResponse,
        WantedSession::Of(_) => Named::Conversation,
        WantedSession::New | WantedSession::Repeated(_) | WantedSession::Chat(_) => Named::Session,
    }
}
