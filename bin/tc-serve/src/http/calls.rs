//! A user's actions on a session over HTTP: answering pending calls, cancelling a call or the
//! response, and sending a message during a response.

use super::kept::object;
use super::refusals::{Named, other_call};
use super::response::{Refusal, ResponseBody, whole};
use super::service::{Admitted, Service};
use super::stored::StoredResponse;
use crate::pipe::JSON;
use crate::route::{CallVerb, KeptPath, segment};
use crate::sessions::{
    InboxFull, LiveSession, Outline, PendingCall, PlaceError, ResponseId, RunFile, RunningResponse,
    Sessions, line,
};
use crate::tools::{ServiceTools, ToolTurn};
use event::{Json, Raw, payload};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;
use store::Store;

/// A user's request about one session.
struct PersonAsks {
    sessions: Rc<Sessions>,
    session: Rc<LiveSession>,
    /// The client's name as stored in the session.
    by: String,
    /// The id of the call as written in the path.
    call: String,
    body: Map<String, Value>,
}

impl Service {
    /// Answers a request of a user about one session.
    ///
    /// # Errors
    /// 404 for an unknown session or call, and 409 for a call that was already answered.
    pub(super) async fn person(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        path: KeptPath,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (sessions, session) = self.session(request.uri().path(), admitted)?;
        let call = segment(request.uri().path(), 3).to_owned();
        let key = self.key_hash(admitted.key);
        let id = Some(session.id);
        let read = sessions.read_ahead_of(id, key.as_deref());
        read.await.map_err(|error| Named::Session.refuse(error))?;
        let asked = PersonAsks {
            sessions: Rc::clone(sessions),
            session,
            by: self.client_name(admitted.key),
            call,
            body: self.object(request).await?,
        };
        match path {
            KeptPath::Call(CallVerb::Cancel) => asked.cancel_call(),
            KeptPath::Call(verb) => asked.decide(self, admitted, verb).await,
            KeptPath::Say => asked.say(key.as_deref()),
            _ => asked.cancel().await,
        }
    }
}

/// The longest reason that is recorded, in bytes: a sentence or two for users and the model. The
/// system allows at most 128 KiB in one environment variable.
const LONGEST_REASON: usize = 4000;

/// Returns the `tool-exec` options that approve or deny a call (`ID:HASH`), with the user's reason.
pub(super) fn verdict_options(
    is_approved: bool,
    call: &str,
    reason: Option<&str>,
) -> Vec<OsString> {
    let verdict = match is_approved {
        true => "--approve-call",
        false => "--deny-call",
    };
    let mut options: Vec<OsString> = vec![verdict.into(), call.into()];
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        // Text in a session never contains U+0000.
        let reason = event::cut(reason, LONGEST_REASON).replace('\0', "\u{fffd}");
        options.extend(["--answer-reason".into(), format!("{call}={reason}").into()]);
    }
    options
}

impl PersonAsks {
    fn outline(&self) -> Result<Rc<Outline>, Refusal> {
        let outline = self.sessions.outline(self.session.id);
        outline.map_err(|error| Named::Session.refuse(error))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    /// Whether `id` is the call id in the path.
    fn is_call(&self, id: &str) -> bool {
        id == self.call || event::url::percent_encoded(id) == self.call
    }

    /// Applies a user's answer to a pending call. The first answer counts, whoever gives it and
    /// wherever.
    async fn decide(
        self,
        service: &Rc<Service>,
        admitted: &Admitted,
        verb: CallVerb,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let hash = self.text("hash").unwrap_or_default().to_owned();
        // Check first, so that a late answer does not wait for the call that the first answer runs.
        let outline = self.outline()?;
        self.waiting(&outline, &hash)?;
        let one_at_a_time = Arc::clone(&self.session.deciding).lock_owned().await;
        let outline = self.outline()?;
        let call = self.waiting(&outline, &hash)?;
        let tools = service.tools.as_ref().ok_or_else(|| {
            let message =
                "the service runs no tools; start it with --tools, or answer with tool-exec";
            Refusal::new(409, "no_tools", message)
        })?;
        let words = self.words(verb, &format!("{}:{hash}", call.tool_id))?;
        let decision = Decision {
            sessions: Rc::clone(&self.sessions),
            session: Rc::clone(&self.session),
            tools: Rc::clone(tools),
            words,
            log: self.sessions.store.path_of(self.session.id),
            leave: self.client_tools(&outline)?,
            id: admitted.id.clone(),
            key: admitted.key,
            response: self.session.running.borrow().clone(),
        };
        let id = call.tool_id.clone();
        let session = Rc::clone(&self.session);
        let running = tokio::task::spawn_local(async move {
            let ended = decision.run().await;
            drop(one_at_a_time);
            // A failed decision has written no line that would wake the waiting response.
            session.notify();
            ended
        });
        let answered = self.session.until(|| {
            let outline = self.sessions.outline(self.session.id)?;
            Ok(found(&outline, &id, &hash))
        });
        let answered = tokio::select! {
            answered = answered => answered.map(Some).map_err(|error| Named::Session.refuse(error))?,
            _ = running => {
                let outline = self.outline()?;
                found(&outline, &id, &hash)
            }
        };
        match answered {
            Some(event) if self.is_own(&event) => Ok(whole(StatusCode::OK, JSON, event)),
            // Someone has answered the call in a terminal in the meantime.
            Some(event) => Err(answered_before(&event)),
            None => {
                let message = "the answer was not accepted: another process works on the \
                    session, or tool-exec has failed";
                Err(Refusal::new(409, "session_busy", message))
            }
        }
    }

    /// Returns the call in the path, if it waits for an answer and has this hash.
    ///
    /// # Errors
    /// 404 for an unknown call, and 409 for one that is answered or has another hash.
    fn waiting<'o>(&self, outline: &'o Outline, hash: &str) -> Result<&'o PendingCall, Refusal> {
        let mut answers = outline.answered.iter();
        if let Some((.., first)) = answers.find(|(id, known, _)| self.is_call(id) && known == hash)
        {
            return Err(answered_before(first));
        }
        let mut pending = outline.pending.iter();
        match pending.find(|call| self.is_call(&call.tool_id)) {
            Some(call) if call.hash == hash => Ok(call),
            Some(_) => Err(other_call()),
            None => {
                let message = "this session has no such pending call";
                Err(Refusal::new(404, "call_not_found", message))
            }
        }
    }

    /// Whether an `approval` event is this client's answer.
    fn is_own(&self, event: &str) -> bool {
        member(event, "source") == "http" && member(event, "by") == self.by
    }

    /// Returns the `tool-exec` options that contain the answer.
    fn words(&self, verb: CallVerb, call: &str) -> Result<Vec<OsString>, Refusal> {
        let mut words = match verb {
            CallVerb::Approve | CallVerb::Deny | CallVerb::Cancel => {
                verdict_options(verb == CallVerb::Approve, call, self.text("reason"))
            }
            CallVerb::Answer => {
                let result = self.text("result").ok_or_else(|| {
                    Refusal::new(
                        400,
                        "invalid_request_error",
                        "result: the text of the result is missing",
                    )
                })?;
                vec!["--answer-call".into(), format!("{call}={result}").into()]
            }
        };
        words.extend(["--answered-by".into(), (&self.by).into()]);
        Ok(words)
    }

    /// Returns the names of the tools of the last response's client. The list is empty if no
    /// service has produced a response in this session.
    ///
    /// # Errors
    /// If the session cannot be read. Without the names, `tool-exec` would take calls of the
    /// client's tools for its own.
    fn client_tools(&self, outline: &Outline) -> Result<Vec<String>, Refusal> {
        let last = outline.responses.last();
        let last = last.and_then(|last| ResponseId::of(&last.id));
        let stored = last.map(|id| StoredResponse::find(&self.sessions, id));
        let stored = stored.transpose()?.flatten();
        Ok(stored.map(|stored| stored.tools).unwrap_or_default())
    }

    /// Cancels a running call.
    fn cancel_call(&self) -> Result<Response<ResponseBody>, Refusal> {
        let outline = self.outline()?;
        let mut started = outline.started.iter();
        let running = started.find(|call| self.is_call(&call.tool_id));
        let call = running.filter(|call| self.session.retract(call.retract()));
        let Some(call) = call else {
            let message = "no such call runs now in this service";
            return Err(Refusal::new(409, "call_not_running", message));
        };
        Ok(object(
            &json!({"tool_id": call.tool_id, "status": "cancelling"}),
        ))
    }

    /// Cancels the response in progress, or the response that the body names.
    async fn cancel(&self) -> Result<Response<ResponseBody>, Refusal> {
        let named = self
            .text("response_id")
            .map(|id| ResponseId::of(id).ok_or_else(|| Named::Response.unknown()));
        let named = named.transpose()?;
        let running = self.session.running.borrow().clone();
        let running = running.filter(|running| named.is_none_or(|id| id == running.id));
        if let Some(running) = &running {
            running.cancel(&self.by);
            running.ended().await;
        }
        let id = running.map(|running| format!("resp_{}", running.id));
        Ok(object(
            &json!({"id": self.session.id.to_string(), "cancelled": id}),
        ))
    }

    /// Appends a user's message. During a response it is appended before the next turn.
    fn say(&self, key: Option<&str>) -> Result<Response<ResponseBody>, Refusal> {
        let content = self
            .text("content")
            .filter(|text| !text.is_empty())
            .ok_or_else(|| {
                Refusal::new(
                    400,
                    "invalid_request_error",
                    "content: the text of the message is missing",
                )
            })?;
        let message = format!(
            "{{\"role\":\"user\",\"content\":{}}}",
            event::quoted(content)
        );
        let event = payload::Message {
            message: Json::of(&message),
            ..payload::Message::default()
        };
        let line = line(&event.into());
        let is_running = self.session.running.borrow().is_some();
        if is_running {
            let put_off = self.sessions.put_off(&self.session, &line);
            put_off.map_err(|full| match full {
                InboxFull::Memory(no_room) => no_room.into(),
                InboxFull::Session => Named::Session.refuse(PlaceError::TooLong),
            })?;
        } else {
            let written = self.sessions.write(self.session.id, key);
            let (mut writer, _) = written.map_err(|error| Named::Session.refuse(error))?;
            writer
                .append(&line)
                .map_err(|error| Named::Session.refuse(error))?;
        }
        Ok(object(
            &json!({"id": self.session.id.to_string(), "queued": is_running}),
        ))
    }
}

/// Returns the text of an event's member.
fn member(line: &str, name: &str) -> String {
    let raw = Raw::parse(line).ok();
    let text = raw.as_ref().and_then(|raw| raw.get_str(name));
    text.unwrap_or_default().into_owned()
}

/// Returns the refusal of an answer to a call that was already answered.
fn answered_before(first: &str) -> Refusal {
    let message = format!(
        "the call was {} before, by {}",
        member(first, "decision"),
        member(first, "by")
    );
    Refusal::new(409, "already_answered", message)
}

/// Returns the `approval` event of a call, or `None` if it is not answered.
fn found(outline: &Outline, id: &str, hash: &str) -> Option<String> {
    let mut answers = outline.answered.iter();
    let found = answers.find(|(call, known, _)| call == id && known == hash);
    found.map(|(_, _, line)| line.clone())
}

/// A user's answer that is being passed to `tool-exec`.
struct Decision {
    sessions: Rc<Sessions>,
    session: Rc<LiveSession>,
    tools: Rc<ServiceTools>,
    words: Vec<OsString>,
    log: std::path::PathBuf,
    leave: Vec<String>,
    id: String,
    key: crate::keys::ClientKey,
    /// The response that waits for the answer, if there is one.
    response: Option<Rc<RunningResponse>>,
}

impl Decision {
    /// Applies the answer. If it starts a call, the call ends with the response.
    async fn run(self) -> anyhow::Result<()> {
        // If a response waits, it already holds the run file, so this fails.
        let _own = RunFile::take(&self.log).ok();
        let response = self.response.as_deref();
        let turn = ToolTurn {
            log: &self.log,
            id: &self.id,
            key: self.key,
            leave: &self.leave,
            retracts: self.session.retracts(),
            trace: response.and_then(|response| response.trace.as_ref()),
        };
        let decided = self.tools.decide(turn, &self.words);
        match &self.response {
            None => {
                let id = self.session.id;
                let before = self.sessions.store.end(id);
                let decided = decided.await;
                if let (Ok(before), Ok(end)) = (before, self.sessions.store.end(id)) {
                    self.sessions.count_appended(id, before..end).await;
                }
                decided.map(drop)
            }
            Some(response) => tokio::select! {
                biased;
                () = response.cancelled() => Ok(()),
                decided = decided => decided.map(drop),
            },
        }
    }
}
