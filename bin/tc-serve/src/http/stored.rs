//! A stored answer: what its session holds of it, and how a client sees it.

use super::refusals::Named;
use super::response::{Answering, Refusal, RequestRecord, ResponseBody, respond};
use super::service::Service;
use crate::front::AnyFront;
use crate::pipe::{Pipe, PipeOutput, TextSearch};
use crate::sessions::{
    ResponseId, ResponseView, RunningResponse, SessionReader, Sessions, WaitingClient,
};
use crate::tools::ToolsMode;
use crate::turns::{StepMode, Turns};
use api::{AnswerForm, AnswerOptions, Clock, Encoder, InboundRequest, UiOptions};
use event::payload::Response as ResponseEvent;
use event::{Kind, Scanner, Text};
use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use store::{SessionId, Store};
use trace::TraceContext;

/// The header that names a session: in a request any text of the client's, in a response the id.
pub(super) const SESSION: &str = "x-session-id";

impl Service {
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
            front,
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
        let mut response = respond(answering, is_stream, kind, front);
        response.headers_mut().extend(limits);
        Ok(with_session(response, id))
    }

    /// The encoder of a stored answer.
    ///
    /// # Errors
    /// 404 for an answer to a user interface, and for one as events.
    pub(super) fn encoder(
        &self,
        stored: &StoredResponse,
        form: AnswerForm,
    ) -> Result<Encoder, Refusal> {
        let AnyFront::Api(front) = stored.front else {
            return Err(Named::Response.unknown());
        };
        Ok(Encoder::new(front, form, stored.options.clone()))
    }

    /// A stored answer as a client sees it, made of the lines of its session.
    pub(super) fn view(
        &self,
        sessions: &Rc<Sessions>,
        mut stored: StoredResponse,
        form: AnswerForm,
        is_sse: bool,
        running: Option<(Rc<RunningResponse>, WaitingClient)>,
    ) -> AnswerView {
        let completed = Rc::new(Cell::new(0));
        let clock = Rc::clone(&completed);
        stored.options.clock = Some(Clock::new(move || clock.get()));
        let turns = self.turns(&stored);
        let (output, kind) = match stored.front {
            AnyFront::Events => PipeOutput::events(is_sse),
            AnyFront::Ui(front) => {
                // Without a mode the service runs no tools.
                let runs_tools = stored.mode.is_some_and(|mode| mode != ToolsMode::Pass);
                let clients = stored.tools.iter().map(String::as_str);
                let options = UiOptions {
                    runner: self.runner(runs_tools, clients),
                    ..stored.ui.options
                };
                PipeOutput::ui(front, options)
            }
            AnyFront::Api(front) => PipeOutput::answer(front, form, stored.options),
        };
        let pipe = Pipe::new(self.pipe.clone(), TextSearch::Done, turns, output);
        let pipe = Rc::new(pipe);
        let session = sessions.live(stored.id.session);
        let source = running.as_ref().map(|(running, _)| Rc::clone(running));
        // The client of a user interface has the calls of the message that it goes on with.
        let (from, calls) = match stored.front {
            AnyFront::Ui(_) => (stored.ui.from.unwrap_or(stored.id.offset), Vec::new()),
            AnyFront::Api(_) | AnyFront::Events => (stored.id.offset, stored.calls),
        };
        let view = ResponseView {
            reader: SessionReader::new(sessions, &session, from),
            id: stored.id,
            calls,
            running,
            completed,
        };
        let feed = Rc::clone(&pipe);
        let work = async move { view.follow(&feed).await };
        AnswerView {
            answering: Box::new(Answering::new(work, pipe, self.keep_alive)),
            kind,
            front: stored.front,
            id: stored.id,
            source,
            begins_at_once: false,
        }
    }

    /// What makes one answer of the turns of a response.
    pub(super) fn turns(&self, stored: &StoredResponse) -> Option<Turns> {
        let names = stored.tools.iter().map(String::as_str);
        let mode = match stored.mode {
            None | Some(ToolsMode::Pass) => return self.source.turns_of(names),
            Some(ToolsMode::Auto) => StepMode::Hidden,
            Some(ToolsMode::Standard) => StepMode::Shown {
                has_items: matches!(stored.front, AnyFront::Api(front) if front.has_steps()),
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
    /// What the client speaks.
    pub front: AnyFront,
    /// The response.
    pub id: ResponseId,
    /// The response, if it is made now.
    pub source: Option<Rc<RunningResponse>>,
    /// Whether the status is 200 in any case: what fails then shows in the stream.
    pub begins_at_once: bool,
}

/// How a stored answer is written.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredOptions {
    /// What the answer says besides what the model writes.
    #[serde(flatten)]
    pub options: AnswerOptions,
    /// What the client sees of calls that the service runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The offsets of the calls of earlier responses that this one goes on with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<u64>,
    /// What the stream of a user interface says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<StoredUi>,
}

/// How the stream of a user interface is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredUi {
    /// What it says besides the events.
    #[serde(flatten)]
    pub options: UiOptions,
    /// The offset of its first line: the end of the response that it continues, since people may have
    /// answered calls of that response meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The offset of the response that began its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<u64>,
}

/// What a session holds of a response before its events.
pub(super) struct StoredResponse {
    /// Which one.
    pub id: ResponseId,
    /// What its client speaks.
    pub front: AnyFront,
    /// How its answer is written.
    pub options: AnswerOptions,
    /// The tools that the client's request names.
    pub tools: Vec<String>,
    /// What the client sees of calls that the service runs; `None` where it runs none.
    pub mode: Option<ToolsMode>,
    /// The offsets of the calls of earlier responses that this one goes on with.
    pub calls: Vec<u64>,
    /// The span that the client has named.
    pub client: Option<TraceContext>,
    /// How the stream of a user interface is written.
    pub ui: StoredUi,
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
                .map_err(|_| Named::Response.unknown())?;
            if more.is_empty() {
                break;
            }
            lines.extend(more);
        }
        let text = String::from_utf8(lines).map_err(|_| Named::Response.unknown())?;
        let mut lines = text.lines();
        let mut scanner = Scanner::default();
        let response = lines.next().and_then(|line| scanner.read(line).ok());
        let response = response.filter(|event| event.kind() == Kind::Response);
        let response = ResponseEvent::read(&response.ok_or_else(|| Named::Response.unknown())?);
        if response.id.str() != id.to_string() {
            return Err(Named::Response.unknown());
        }
        let front = response.front.str();
        let client = response.traceparent.map(Text::str);
        let state = response.tracestate.map(Text::str);
        let options = response.answer.map(|answer| answer.text().into_owned());
        let stored = options.and_then(|json| serde_json::from_str::<StoredOptions>(&json).ok());
        let stored = stored.ok_or_else(|| Named::Response.unknown())?;
        let request = lines.next().and_then(api::request_event);
        let request = request.map(|(_, request)| request);
        let tools = request.as_ref().and_then(|request| request.tools.clone());
        Ok(StoredResponse {
            id,
            front: AnyFront::of(&front).unwrap_or(AnyFront::Events),
            ui: stored.ui.unwrap_or_default(),
            options: stored.options,
            calls: stored.calls,
            client: client.and_then(|client| TraceContext::of(&client, state.as_deref())),
            mode: stored.mode.as_deref().and_then(ToolsMode::of),
            request,
            tools: tools
                .iter()
                .flat_map(|tools| tools.names().map(str::to_owned))
                .collect(),
        })
    }
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
