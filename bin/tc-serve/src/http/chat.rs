//! The chats of user interfaces: a reloaded page reconnects to its response, and a user can stop
//! one. Source of the paths: `src/ui/http-chat-transport.ts` of the package `ai`, version 7.0.173,
//! and <https://ai-sdk.dev/docs/ai-sdk-ui/chatbot-resume-streams>.

use super::kept::object;
use super::kept_turn::session_of_name;
use super::query::Query;
use super::refusals::Named;
use super::response::{Refusal, RequestRecord, ResponseBody, no_content};
use super::service::{Admitted, Service};
use super::stored::StoredResponse;
use crate::route::{ChatPath, segment};
use crate::sessions::{LiveSession, Outline, PlaceError, ResponseId, Sessions, WaitingClient};
use api::AnswerForm;
use hyper::body::Incoming;
use hyper::{Request, Response};
use serde_json::{Map, Value, json};
use std::rc::Rc;

impl Service {
    /// Answers a request about a chat.
    ///
    /// # Errors
    /// 404 for a request to stop an unknown chat, and 409 if another process produces the response.
    pub(super) async fn chat(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        path: ChatPath,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let name = event::url::percent_decoded(segment(request.uri().path(), 2));
        let found = self.open_chat(&name, admitted);
        if let Some((sessions, session)) = &found {
            let key = self.key_hash(admitted.key);
            let id = Some(session.id);
            let read = sessions.read_ahead_of(id, key.as_deref());
            read.await.map_err(|error| Named::Session.refuse(error))?;
        }
        match path {
            ChatPath::Stream => {
                let message = Query::of(request.uri()).get("messageId");
                let message = message.map(event::url::percent_decoded);
                match found {
                    Some((sessions, session)) => {
                        self.stream(&sessions, &session, message.as_deref(), exchange)
                            .await
                    }
                    None => Ok(no_content()),
                }
            }
            ChatPath::Stop => {
                self.all_sessions()?;
                let (sessions, session) = found.ok_or_else(|| Named::Session.unknown())?;
                let found = (&*sessions, &*session);
                self.stop(request, admitted, &name, found).await
            }
        }
    }

    /// Returns the session of the chat with this name, or `None` if the client's key has no such
    /// session.
    fn open_chat(
        &self,
        name: &str,
        admitted: &Admitted,
    ) -> Option<(Rc<Sessions>, Rc<LiveSession>)> {
        let sessions = self.sessions.as_ref()?;
        let key = self.key_hash(admitted.key);
        let id = session_of_name(sessions, name, key.as_deref());
        let session = sessions.open(id, key.as_deref()).ok()?;
        Some((Rc::clone(sessions), session))
    }

    /// Streams the message in progress from its first part on. A message that the client names is
    /// streamed even after it has ended.
    async fn stream(
        self: &Rc<Self>,
        sessions: &Rc<Sessions>,
        session: &Rc<LiveSession>,
        message: Option<&str>,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let running = session.running.borrow().clone();
        let id = match (&running, message) {
            (Some(running), _) => Some(running.id),
            (None, None) => elsewhere(sessions, session)?,
            (None, Some(message)) => {
                let outline = outline(sessions, session)?;
                let mut responses = outline.responses.iter().rev();
                let last = responses.find(|response| response.message.as_deref() == Some(message));
                last.and_then(|last| ResponseId::of(&last.id))
            }
        };
        let Some(id) = id else {
            return Ok(no_content());
        };
        let mut stored = StoredResponse::read(sessions, id)?;
        if !stored.front.is_ui() {
            return Ok(no_content());
        }
        if let Some(begins) = stored.ui.begins {
            stored.ui.from = Some(begins);
            stored.ui.options.continues = false;
        }
        let running = running.map(|running| {
            let client = WaitingClient::new(sessions, &running);
            (running, client)
        });
        let mut view = self.view(sessions, stored, AnswerForm::Stream, true, running);
        view.begins_at_once = true;
        self.respond_with(view, true, exchange).await
    }

    /// Cancels the response in progress. If the request names a message or a response, only that
    /// one is cancelled, since the request may arrive late.
    async fn stop(
        &self,
        request: Request<Incoming>,
        admitted: &Admitted,
        name: &str,
        (sessions, session): (&Sessions, &LiveSession),
    ) -> Result<Response<ResponseBody>, Refusal> {
        // A request without a content type has no body.
        let has_body = request.headers().contains_key("content-type");
        let body = match has_body {
            true => self.object(request).await?,
            false => Map::new(),
        };
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let running = session.running.borrow().clone();
        let id = match &running {
            Some(running) => Some(running.id),
            None => elsewhere(sessions, session)?,
        };
        let mut cancelled = None;
        if let Some(id) = id {
            let stored = StoredResponse::read(sessions, id)?;
            let own = stored.ui.options;
            let is_it = text("messageId").is_none_or(|id| id == own.message)
                && text("responseId").is_none_or(|id| id == own.response);
            if is_it && stored.front.is_ui() {
                // Another process cannot be told to cancel.
                let running =
                    running.ok_or_else(|| Named::Session.refuse(PlaceError::Busy(None)))?;
                running.cancel(&self.client_name(admitted.key));
                running.ended().await;
                cancelled = Some(own.message);
            }
        }
        Ok(object(&json!({"id": name, "cancelled": cancelled})))
    }
}

fn outline(sessions: &Sessions, session: &LiveSession) -> Result<Rc<Outline>, Refusal> {
    let outline = sessions.outline(session.id);
    outline.map_err(|error| Named::Session.refuse(error))
}

/// Returns the response that another process produces in this session, or `None` if no other
/// process is writing the session. The caller has checked that this process produces none.
fn elsewhere(sessions: &Sessions, session: &LiveSession) -> Result<Option<ResponseId>, Refusal> {
    if !sessions.is_written(session.id) {
        return Ok(None);
    }
    let outline = outline(sessions, session)?;
    Ok(outline
        .active()
        .and_then(|active| ResponseId::of(&active.id)))
}
