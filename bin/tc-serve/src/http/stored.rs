//! A request whose answer is kept: its place in a session, the response that is made there, and the
//! client's view of it. Source of the members: OpenAI's
//! <https://platform.openai.com/docs/api-reference/responses/create>.

use super::body;
use super::refusals::{Named, member};
use super::response::{Answering, Refusal, RequestRecord, ResponseBody, whole};
use super::service::{Admitted, Service};
use super::tool_loop::{ToolLoop, TurnRequest};
use super::turn::{EVENT_STREAM, accepts_sse, client_retries, forwarded, respond};
use crate::budget::Share;
use crate::keys::hex;
use crate::pipe::{ClientRequest, EventLines, Pipe, PipeOutput, TextSearch};
use crate::places::KeyPlace;
use crate::route::Endpoint;
use crate::sessions::{
    Outline, ResponseId, ResponseOutline, ResponseView, RunFile, RunningResponse, SessionPlace,
    SessionReader, SessionWriter, Sessions, WaitingClient, WantedPlace, WantedSession, id_of_name,
    line, not_written, one_turn, produce, random_id,
};
use crate::tools::{ServiceTools, ToolsMode};
use crate::turns::{StepMode, Turns};
use api::{AnswerForm, AnswerOptions, Clock, Encoder, Front, InboundRequest, RunningStatus};
use event::payload::Response as ResponseEvent;
use event::{Json, Kind, Scanner};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::Cell;
use std::rc::Rc;
use store::{SessionId, Store, StoreError};

/// The media type of whole answers.
pub(super) const JSON: &str = "application/json";

/// The name of the front of `/v1/events`, as a session has it.
const EVENTS: &str = "events";

/// The header that names a session: in a request any text of the client's, in a response the id.
pub(super) const SESSION: &str = "x-session-id";

/// A request whose answer is kept.
pub(super) struct KeptRequest<'r> {
    /// What is known of its head.
    pub admitted: &'r Admitted,
    /// Its headers.
    pub headers: &'r HeaderMap,
    /// Its body, read.
    pub inbound: InboundRequest,
    /// Its body.
    pub body: Bytes,
    /// What the service keeps of it in memory.
    pub share: Share,
}

impl Service {
    /// The sessions, if the answer to this request is kept: one of OpenAI Responses unless the
    /// client says no, and any other whose client names a session.
    pub(super) fn keeps(
        &self,
        admitted: &Admitted,
        headers: &HeaderMap,
        inbound: &InboundRequest,
    ) -> Option<Rc<Sessions>> {
        let sessions = self.sessions.as_ref()?;
        let is_kept = self.is_stored(admitted, headers, inbound)
            // A mode that is unknown is refused where the answer begins.
            || self.tools_for(headers).map_or(true, |tools| tools.is_some());
        is_kept.then(|| Rc::clone(sessions))
    }

    /// Whether the client wants that the answer is kept. Where the service runs tools, an answer is
    /// written down that the client does not want kept, and removed after its end.
    fn is_stored(
        &self,
        admitted: &Admitted,
        headers: &HeaderMap,
        inbound: &InboundRequest,
    ) -> bool {
        headers.contains_key(SESSION)
            || (admitted.route == Endpoint::Answer(Front::Responses)
                && inbound.store() != Some(false))
    }

    /// The hash of a client's key, by which its sessions are its own.
    pub(super) fn key_hash(&self, key: KeyPlace) -> Option<String> {
        key.map(|place| self.keys.borrow().hash(place))
    }

    /// Puts the history that a request refers to before its messages, for a request whose own answer
    /// is not kept.
    ///
    /// # Errors
    /// 404 for a response or a conversation that is not kept here for this client.
    pub(super) fn recall(
        &self,
        admitted: &Admitted,
        inbound: &mut InboundRequest,
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
        let history = sessions.history(wanted, key.as_deref());
        inbound.continue_from(history.map_err(|error| named(wanted).refuse(error))?);
        Ok(())
    }

    /// Answers a request whose answer is kept.
    ///
    /// # Errors
    /// 400 for a request that the service or its source does not take, 404 for a session that is not
    /// the client's, 409 for one that is written now, 413 and 429 at the limits of sessions, and the
    /// failure of the answer, if nothing of it was sent.
    pub(super) async fn kept_turn(
        self: &Rc<Self>,
        sessions: &Rc<Sessions>,
        asked: KeptRequest<'_>,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let key = self.key_hash(asked.admitted.key);
        let is_background = asked.inbound.background();
        let is_stream = asked.inbound.streams || asked.admitted.route == Endpoint::Events;
        let is_sse = accepts_sse(asked.headers);
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
        let mut view = self.view(sessions, stored, form, is_sse, running)?;
        // A client that loses the connection comes back by the id of the first event.
        view.begins_at_once = is_background && is_stream;
        self.respond_with(view, is_stream, exchange).await
    }

    /// The response that shows a view, once its status is known.
    ///
    /// # Errors
    /// Why the answer failed, if nothing of it was sent.
    pub(super) async fn respond_with(
        &self,
        view: AnswerView,
        is_stream: bool,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let AnswerView {
            mut answering,
            kind,
            id,
            source,
            begins_at_once,
        } = view;
        let longest = is_stream.then_some(self.limits.status_timeout);
        if begins_at_once {
            answering.pipe.begin();
        } else {
            answering.until_known(longest).await;
        }
        answering.note(&mut exchange.line);
        let limits = source
            .map(|running| running.pipe().limits())
            .unwrap_or_default();
        if let Some(failure) = answering.refusal() {
            let mut headers = limits;
            headers.extend(session_header(id));
            return Err(Refusal {
                headers,
                ..failure.into()
            });
        }
        let mut response = respond(answering, is_stream, kind);
        response.headers_mut().extend(limits);
        Ok(with_session(response, id))
    }

    /// Begins the response to a request: what a replay needs is in the session before anybody is
    /// asked.
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
            // Nothing came of it. What cannot be removed now is an empty session.
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
        let is_new = place.is_new;
        let SessionPlace {
            session,
            mut writer,
            first,
            history,
            ..
        } = place;
        let id = ResponseId {
            session: session.id,
            offset: writer.end,
        };
        let body_hash = asked.body_hash();
        let idempotency = asked.header(IDEMPOTENCY).map(str::to_owned);
        let is_background = asked.inbound.background();
        let front = asked.front();
        let api = front.unwrap_or(Front::Chat).api();
        let is_temporary = is_new && !self.is_stored(asked.admitted, asked.headers, &asked.inbound);
        let tools = self.tools_for(asked.headers)?;
        let mode = tools.as_ref().map(|(_, mode)| *mode);
        let mut lines = self.response_line(id, &asked, &body_hash, mode)?;
        let mut inbound = asked.inbound;
        lines.extend(inbound.session_lines(api, None, first).into_bytes());
        inbound.keep_here();
        if let Some(history) = history {
            inbound.continue_from(history);
        }
        self.source.check(api, &inbound).map_err(body::refused)?;
        let names = inbound
            .tools
            .iter()
            .flat_map(|tools| tools.names().map(str::to_owned));
        let leave: Vec<String> = names.collect();
        let tools = tools.map(|(tools, _)| {
            inbound.offer(&tools.list);
            (tools, leave)
        });
        writer.append(&lines).map_err(|error| not_written(&error))?;
        let request = ClientRequest {
            share: asked.share,
            key: asked.admitted.key,
            id: asked.admitted.id.clone(),
            api,
            request: inbound,
            retries: client_retries(asked.headers),
            headers: forwarded(api, asked.headers),
        };
        let pipe = self.pipe_for(&request, None, PipeOutput::Events(EventLines::kept()));
        let mut running = RunningResponse::new(id, key, pipe);
        running.is_background = is_background;
        running.is_temporary = is_temporary;
        running.idempotency = idempotency;
        running.body_hash = body_hash;
        let running = Rc::new(running);
        *session.running.borrow_mut() = Some(Rc::clone(&running));
        if is_background && tools.is_some() {
            self.sessions
                .iter()
                .for_each(|sessions| sessions.remember_left(session.id));
        }
        self.make(&running, writer, request, tools);
        Ok(running)
    }

    /// Starts the task that makes a response: of one turn, or, with `tools` that the service runs, of
    /// as many as it takes.
    fn make(
        self: &Rc<Self>,
        running: &Rc<RunningResponse>,
        writer: SessionWriter,
        mut request: ClientRequest,
        tools: Option<(Rc<ServiceTools>, Vec<String>)>,
    ) {
        let Some((tools, leave)) = tools else {
            let work = self.work(request, &running.pipe());
            let make = async move |running: &RunningResponse, writer: &mut SessionWriter| {
                one_turn(running, writer, work).await
            };
            tokio::task::spawn_local(produce(Rc::clone(running), writer, make));
            return;
        };
        let turns = ToolLoop {
            service: Rc::clone(self),
            tools,
            request: TurnRequest::of(&mut request),
            leave,
            is_background: running.is_background,
        };
        let make = async move |running: &RunningResponse, writer: &mut SessionWriter| {
            turns.run(running, writer, request).await
        };
        tokio::task::spawn_local(produce(Rc::clone(running), writer, make));
    }

    /// Goes on with the responses in the background that were left between two turns when a service
    /// ended.
    pub(crate) fn go_on(self: &Rc<Self>) {
        let Some(sessions) = &self.sessions else {
            return;
        };
        for id in sessions.left() {
            // Another service may have it.
            if let Some(tools) = &self.tools
                && !RunFile::is_held(&sessions.store.path_of(id))
            {
                let (service, sessions) = (Rc::clone(self), Rc::clone(sessions));
                let tools = Rc::clone(tools);
                tokio::task::spawn_local(async move {
                    // The tools of a service that was killed may still run: they end their turn.
                    let session = sessions.live(id);
                    let mut writer = SessionWriter::waiting(&sessions, &session);
                    // A session that cannot be read now is looked at when somebody asks for it.
                    if writer.take_back().await.is_ok() {
                        let _ = service.go_on_with(&sessions, &tools, writer);
                    }
                });
            }
        }
    }

    fn go_on_with(
        self: &Rc<Self>,
        sessions: &Rc<Sessions>,
        tools: &Rc<ServiceTools>,
        mut writer: SessionWriter,
    ) -> Result<(), Refusal> {
        let failed = |error: StoreError| Named::Response.refuse(error);
        let session = Rc::clone(&writer.session);
        let id = session.id;
        if RunFile::is_held(&sessions.store.path_of(id)) {
            return Ok(());
        }
        let outline = sessions.outline(id, writer.end).map_err(failed)?;
        let Some(left) = outline.active() else {
            sessions.forget_left(id);
            return Ok(());
        };
        let response = ResponseId::of(&left.id).ok_or_else(unknown)?;
        if left.is_open || !left.is_background {
            sessions.forget_left(id);
            return writer.interrupt(&left.id).map_err(failed);
        }
        let stored = StoredResponse::read(sessions, response)?;
        let mut inbound = stored.request.ok_or_else(unknown)?;
        inbound.offer(&tools.list);
        let turns = ToolLoop {
            service: Rc::clone(self),
            tools: Rc::clone(tools),
            request: TurnRequest {
                key: None,
                id: self.new_id(),
                api: stored.front.unwrap_or(Front::Chat).api(),
                inbound,
                retries: false,
                headers: Vec::new(),
            },
            leave: stored.tools,
            is_background: true,
        };
        let request = turns.next(outline.open_conversation());
        let pipe = self.pipe_for(&request, None, PipeOutput::Events(EventLines::kept()));
        let mut running = RunningResponse::new(response, outline.head.key.clone(), pipe);
        running.is_background = true;
        running.idempotency.clone_from(&left.idempotency);
        running.body_hash = left.body_hash.clone().unwrap_or_default();
        let running = Rc::new(running);
        *session.running.borrow_mut() = Some(Rc::clone(&running));
        let make = async move |running: &RunningResponse, writer: &mut SessionWriter| {
            turns.resume(running, writer).await
        };
        tokio::task::spawn_local(produce(running, writer, make));
        Ok(())
    }

    /// The mode that a request wants, and the tools that the service runs for it.
    ///
    /// # Errors
    /// 400 for a mode that is unknown.
    fn tools_for(
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

    /// The `response` event of a request.
    fn response_line(
        &self,
        id: ResponseId,
        asked: &KeptRequest<'_>,
        body_hash: &str,
        mode: Option<ToolsMode>,
    ) -> Result<Vec<u8>, Refusal> {
        let inbound = &asked.inbound;
        let front = asked.front();
        let name = id.to_string();
        let options = AnswerOptions {
            keeps_ids: false,
            is_stored: true,
            is_background: inbound.background(),
            shows_steps: mode == Some(ToolsMode::Standard),
            conversation: inbound
                .conversation_id()
                .map(|_| conversation_id(id.session)),
            ..self.answer_options(front.unwrap_or(Front::Chat), &name, inbound, &asked.body)
        };
        let stored = StoredOptions {
            options,
            mode: mode.map(|mode| mode.name().to_owned()),
        };
        let answer = serde_json::to_string(&stored)
            .map_err(|error| Refusal::new(500, "internal_error", error.to_string()))?;
        let event = ResponseEvent {
            id: name.as_str().into(),
            front: front.map_or(EVENTS, Front::name).into(),
            api: self
                .source
                .upstream()
                .map(|upstream| upstream.api().name().into()),
            model: inbound.model.as_deref().map(Into::into),
            background: inbound.background(),
            idempotency: asked.header(IDEMPOTENCY).map(Into::into),
            body_hash: Some(body_hash.into()),
            answer: Some(Json::of(&answer)),
            timestamp: Some(store::now()),
        };
        Ok(line(&event.into()))
    }

    /// The encoder of a stored answer.
    ///
    /// # Errors
    /// 404 for an answer of `/v1/events`: it has no other form than events.
    pub(super) fn encoder(
        &self,
        stored: &StoredResponse,
        form: AnswerForm,
    ) -> Result<Encoder, Refusal> {
        let front = stored.front.ok_or_else(unknown)?;
        Ok(Encoder::new(front, form, stored.options.clone()))
    }

    /// A stored answer as a client sees it, made of the lines of its session.
    ///
    /// # Errors
    /// As [`Service::encoder`].
    pub(super) fn view(
        &self,
        sessions: &Rc<Sessions>,
        mut stored: StoredResponse,
        form: AnswerForm,
        is_sse: bool,
        running: Option<(Rc<RunningResponse>, WaitingClient)>,
    ) -> Result<AnswerView, Refusal> {
        let completed = Rc::new(Cell::new(0));
        let clock = Rc::clone(&completed);
        stored.options.clock = Some(Clock::new(move || clock.get()));
        let (output, kind) = match stored.front {
            None => PipeOutput::events(is_sse),
            Some(_) => {
                let encoder = self.encoder(&stored, form)?;
                let kind = if form == AnswerForm::Stream {
                    EVENT_STREAM
                } else {
                    JSON
                };
                (PipeOutput::Answer(Box::new(encoder)), kind)
            }
        };
        let turns = self.turns(&stored);
        let pipe = Pipe::new(self.pipe.clone(), TextSearch::Done, turns, output);
        let pipe = Rc::new(pipe);
        let session = sessions.live(stored.id.session);
        let source = running.as_ref().map(|(running, _)| Rc::clone(running));
        let view = ResponseView {
            reader: SessionReader::new(sessions, &session, stored.id.offset),
            id: stored.id,
            running,
            completed,
        };
        let feed = Rc::clone(&pipe);
        let work = async move { view.follow(&feed).await };
        Ok(AnswerView {
            answering: Box::new(Answering::new(work, pipe, self.keep_alive)),
            kind,
            id: stored.id,
            source,
            begins_at_once: false,
        })
    }
}

impl Service {
    /// What makes one answer of the turns of a response.
    pub(super) fn turns(&self, stored: &StoredResponse) -> Option<Turns> {
        let names = stored.tools.iter().map(String::as_str);
        let mode = match stored.mode {
            None | Some(ToolsMode::Pass) => return self.source.turns_of(names),
            Some(ToolsMode::Auto) => StepMode::Hidden,
            Some(ToolsMode::Standard) => StepMode::Shown {
                has_items: stored.front.is_some_and(Front::has_steps),
            },
        };
        Some(Turns::new(names).with_steps(mode))
    }
}

/// A stored answer on its way to a client.
pub(super) struct AnswerView {
    /// Makes the bytes.
    pub answering: Box<Answering>,
    /// Their media type.
    pub kind: &'static str,
    /// The response.
    pub id: ResponseId,
    /// The response, if it is made now.
    pub source: Option<Rc<RunningResponse>>,
    /// Whether the status is 200 in any case: what fails then shows in the stream.
    pub begins_at_once: bool,
}

/// How a stored answer is written.
#[derive(Serialize, Deserialize)]
struct StoredOptions {
    #[serde(flatten)]
    options: AnswerOptions,
    /// What the client sees of calls that the service runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

/// What a session holds of a response before its events.
pub(super) struct StoredResponse {
    /// Which one.
    pub id: ResponseId,
    /// The front that it answers; `None` for events.
    pub front: Option<Front>,
    /// How its answer is written.
    pub options: AnswerOptions,
    /// The tools that the client's request names.
    pub tools: Vec<String>,
    /// What the client sees of calls that the service runs; `None` where it runs none.
    pub mode: Option<ToolsMode>,
    /// What the client asked for, without its messages.
    pub request: Option<InboundRequest>,
}

impl StoredResponse {
    /// Reads the `response` and the `request` line of `id`.
    ///
    /// # Errors
    /// 404 where the session has no such line.
    pub(super) fn read(sessions: &Sessions, id: ResponseId) -> Result<StoredResponse, Refusal> {
        let mut lines = Vec::new();
        while lines.iter().filter(|byte| **byte == b'\n').count() < 2 {
            let at = id.offset + lines.len() as u64;
            let more = sessions
                .store
                .read(id.session, at, 1)
                .map_err(|_| unknown())?;
            if more.is_empty() {
                break;
            }
            lines.extend(more);
        }
        let text = String::from_utf8(lines).map_err(|_| unknown())?;
        let mut lines = text.lines();
        let mut scanner = Scanner::default();
        let response = lines.next().and_then(|line| scanner.read(line).ok());
        let response = response.filter(|event| event.kind() == Kind::Response);
        let response = ResponseEvent::read(&response.ok_or_else(unknown)?);
        if response.id.str() != id.to_string() {
            return Err(unknown());
        }
        let front = response.front.str();
        let options = response.answer.map(|answer| answer.text().into_owned());
        let stored = options.and_then(|json| serde_json::from_str::<StoredOptions>(&json).ok());
        let stored = stored.ok_or_else(unknown)?;
        let request = lines.next().and_then(api::request_event);
        let request = request.map(|(_, request)| request);
        let tools = request.as_ref().and_then(|request| request.tools.clone());
        Ok(StoredResponse {
            id,
            front: Front::ALL.into_iter().find(|known| known.name() == front),
            options: stored.options,
            mode: stored.mode.as_deref().and_then(ToolsMode::of),
            request,
            tools: tools
                .iter()
                .flat_map(|tools| tools.names().map(str::to_owned))
                .collect(),
        })
    }
}

/// Whether a request was sent before, and what came of it.
enum SentBefore {
    /// Its answer is made now.
    Running(Rc<RunningResponse>),
    /// Its answer has ended.
    Ended(ResponseId),
    /// It is new, and wants this place.
    No(WantedPlace),
}

/// The header by which a client says that requests are one (OpenAI's SDKs send it with `POST`).
const IDEMPOTENCY: &str = "idempotency-key";

/// The header in which a client says what it wants to see of calls that the service runs.
const MODE: &str = "x-toolpipe-mode";

/// The header in which OpenAI's and Anthropic's SDKs count how often they have sent a request before.
const RETRIES: &str = "x-stainless-retry-count";

/// Finds what came of the same request, if the client has sent it before: with the same
/// `Idempotency-Key`, or, while its answer is made, with the same body and a count of retries.
///
/// # Errors
/// 400 for a response and a conversation in one request, 409 for a key that came with another body.
fn sent_before(
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
    if let Some(session) = place.wanted.session() {
        if let Found::Answer(id) = asked_as(session).look(sessions)? {
            return Ok(SentBefore::Ended(id));
        }
    }
    // A session that such a request begins has an id of its name, so that the session is found again.
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
    /// There is no such session.
    NoSession,
    /// The session has no such answer.
    NoAnswer,
    /// The session has this one.
    Answer(ResponseId),
}

impl Asked<'_> {
    /// Looks for the answer in the session. An answer that its client has left, or that failed before
    /// anything of it was sent, does not count: the client tries again to get one.
    ///
    /// # Errors
    /// 409 for a key that came with another body, and while another process makes the answer.
    fn look(&self, sessions: &Rc<Sessions>) -> Result<Found, Refusal> {
        let known = sessions.open(self.session, self.key).and_then(|_| {
            let end = sessions.store.end(self.session)?;
            sessions.outline(self.session, end)
        });
        let Ok(mut outline) = known else {
            return Ok(Found::NoSession);
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
                None => Err(unknown()),
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

impl KeptRequest<'_> {
    /// The text of a header.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The front that asks; `None` for events.
    fn front(&self) -> Option<Front> {
        self.admitted.route.front()
    }

    /// The hash of the body, in hexadecimal.
    fn body_hash(&self) -> String {
        hex(&Sha256::digest(&self.body))
    }

    /// The place that the request wants.
    ///
    /// # Errors
    /// As [`referred`].
    fn place(&self, sessions: &Sessions, key: Option<&str>) -> Result<WantedPlace, Refusal> {
        let new = random_id().map_err(|error| not_written(&error))?;
        let wanted = match (referred(&self.inbound)?, self.header(SESSION)) {
            (Some(wanted), _) => wanted,
            (None, None | Some("")) => WantedSession::New,
            (None, Some(name)) => {
                let own = SessionId::of(name).filter(|id| sessions.open(*id, key).is_ok());
                let id = own.unwrap_or_else(|| id_of_name(key, "session", name));
                WantedSession::Repeated(id)
            }
        };
        Ok(WantedPlace { wanted, new })
    }
}

/// The session that a request of OpenAI Responses refers to.
///
/// # Errors
/// 400 for a response and a conversation in one request, 404 for an id that no session of this service can have.
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

/// What the request names of this session.
fn named(wanted: WantedSession) -> Named {
    match wanted {
        WantedSession::After(_) => Named::PreviousResponse,
        WantedSession::Of(_) => Named::Conversation,
        WantedSession::New | WantedSession::Repeated(_) => Named::Session,
    }
}

fn unknown() -> Refusal {
    Named::Response.unknown()
}

/// The id of a session as a conversation.
pub(super) fn conversation_id(session: SessionId) -> String {
    format!("conv_{session}")
}

fn session_header(id: ResponseId) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(&id.session.to_string()).ok()?;
    Some((HeaderName::from_static(SESSION), value))
}

/// The response with the id of its session.
pub(super) fn with_session(
    mut response: Response<ResponseBody>,
    id: ResponseId,
) -> Response<ResponseBody> {
    response.headers_mut().extend(session_header(id));
    response
}
