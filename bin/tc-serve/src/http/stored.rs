//! A stored response: what its session contains of it, and how a client receives it.

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
use store::{SessionId, Store, StoreError};
use trace::TraceContext;

/// The header that names a session: in a request any name that the client chooses, in a response
/// the session's id.
pub(super) const SESSION: &str = "x-session-id";

impl Service {
    /// Returns the HTTP response that shows a view, once its status is known.
    ///
    /// # Errors
    /// Why the response failed, if none of it was sent.
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

    /// Returns the encoder of a stored response.
    ///
    /// # Errors
    /// 404 for a response to a user interface, and for one in the form of events.
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

    /// Returns the view of a stored response, which is computed from the lines of its session.
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
        // A user interface's client already has the calls of the message that it continues.
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

    /// Returns the value that joins the turns of a response, or `None` if there is nothing to join.
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

/// A stored response that is being sent to a client.
pub(super) struct AnswerView {
    /// Produces the bytes.
    pub answering: Box<Answering>,
    /// The media type of the bytes.
    pub kind: &'static str,
    /// The protocol that the client speaks.
    pub front: AnyFront,
    /// The id of the response.
    pub id: ResponseId,
    /// The response, if it is in progress.
    pub source: Option<Rc<RunningResponse>>,
    /// Whether the status is always 200, so that failures are reported in the stream.
    pub begins_at_once: bool,
}

/// How to write a stored response.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredOptions {
    /// What the response contains apart from the model's output.
    #[serde(flatten)]
    pub options: AnswerOptions,
    /// What the client sees of calls that the service runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The offsets of the calls of earlier responses that this one continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<u64>,
    /// The options for the stream of a user interface, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<StoredUi>,
}

/// How to write the stream of a user interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredUi {
    /// What the stream contains apart from the events.
    #[serde(flatten)]
    pub options: UiOptions,
    /// The offset of the stream's first line. It is the end of the response that this one
    /// continues, since users may have answered calls of that response in the meantime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The offset of the response that began the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<u64>,
}

/// What a session contains of a response before its events.
pub(super) struct StoredResponse {
    /// The id of the response.
    pub id: ResponseId,
    /// The protocol that the client speaks.
    pub front: AnyFront,
    /// How the response is written.
    pub options: AnswerOptions,
    /// The tools that the client's request names.
    pub tools: Vec<String>,
    /// What the client sees of calls that the service runs; `None` if it runs none.
    pub mode: Option<ToolsMode>,
    /// The offsets of the calls of earlier responses that this one continues.
    pub calls: Vec<u64>,
    /// The span that the client named.
    pub client: Option<TraceContext>,
    /// How the stream of a user interface is written.
    pub ui: StoredUi,
    /// The client's request without its messages.
    pub request: Option<InboundRequest>,
}

impl StoredResponse {
    /// Reads the `response` and `request` lines of the response `id`.
    ///
    /// # Errors
    /// 404 if the session has no such line, and as [`StoredResponse::find`].
    pub(super) fn read(sessions: &Sessions, id: ResponseId) -> Result<StoredResponse, Refusal> {
        StoredResponse::find(sessions, id)?.ok_or_else(|| Named::Response.unknown())
    }

    /// Does the same as [`StoredResponse::read`], but returns `None` if the session has no such
    /// line.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub(super) fn find(
        sessions: &Sessions,
        id: ResponseId,
    ) -> Result<Option<StoredResponse>, Refusal> {
        let mut lines = Vec::new();
        while lines.iter().filter(|byte| **byte == b'\n').count() < 2 {
            let at = id.offset + lines.len() as u64;
            match sessions.store.read(id.session, at, 1) {
                Ok(more) if more.is_empty() => break,
                Ok(more) => lines.extend(more),
                Err(StoreError::Unknown | StoreError::Moved(_)) => return Ok(None),
                Err(error) => return Err(Named::Response.refuse(error)),
            }
        }
        let text = String::from_utf8(lines).ok();
        Ok(text.and_then(|text| StoredResponse::parse(id, &text)))
    }

    /// Parses these lines. Returns `None` if they do not begin with the `response` line of `id`.
    fn parse(id: ResponseId, text: &str) -> Option<StoredResponse> {
        let mut lines = text.lines();
        let mut scanner = Scanner::default();
        let response = scanner.read(lines.next()?).ok()?;
        if response.kind() != Kind::Response {
            return None;
        }
        let response = ResponseEvent::read(&response);
        if response.id.str() != id.to_string() {
            return None;
        }
        let front = response.front.str();
        let client = response.traceparent.map(Text::str);
        let state = response.tracestate.map(Text::str);
        let stored: StoredOptions = serde_json::from_str(&response.answer?.text()).ok()?;
        let request = lines.next().and_then(api::request_event);
        let request = request.map(|(_, request)| request);
        let tools = request.as_ref().and_then(|request| request.tools.clone());
        Some(StoredResponse {
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

/// Returns the conversation id of a session.
pub(super) fn conversation_id(session: SessionId) -> String {
    format!("conv_{session}")
}

fn session_header(id: ResponseId) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(&id.session.to_string()).ok()?;
    Some((HeaderName::from_static(SESSION), value))
}

/// Adds the session's id to the response.
pub(super) fn with_session(
    mut response: Response<ResponseBody>,
    id: ResponseId,
) -> Response<ResponseBody> {
    response.headers_mut().extend(session_header(id));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::sessions_in;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_response_that_cannot_be_read_is_not_a_missing_one() {
        let folder = testkit::Scratch::new();
        let sessions = sessions_in(&folder, usize::MAX);
        let session = SessionId([7; 16]);
        let id = ResponseId { session, offset: 0 };
        assert!(StoredResponse::find(&sessions, id).is_ok_and(|found| found.is_none()));
        // A folder that others may write to is not used.
        let place = sessions.store.path().join("07");
        fs::create_dir(&place).expect("a folder");
        fs::set_permissions(&place, Permissions::from_mode(0o777)).expect("its mode");
        let refusal = StoredResponse::find(&sessions, id)
            .err()
            .expect("a refusal");
        assert_eq!(refusal.failure.status, 507);
    }
}
