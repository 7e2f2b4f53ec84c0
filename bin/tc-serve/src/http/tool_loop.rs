//! Answers a request with the service's own tools: asks the model, runs its calls, and asks again
//! with their results, until the model answers without a call of the service's tools.

use super::kept_request::OwnTools;
use super::refusals::Named;
use super::response::Refusal;
use super::service::Service;
use super::stored::StoredResponse;
use crate::budget::Share;
use crate::client_request::ClientRequest;
use crate::keys::{ClientKey, KeyHash};
use crate::pipe::{EventLines, PipeOutput};
use crate::sessions::{
    Made, Outline, ResponseId, RunFile, RunningResponse, SessionWriter, Sessions,
};
use crate::tools::{ServiceTools, ToolTurn, ToolsMode, TurnEnd};
use api::{Api, InboundRequest};
use event::payload::FinishReason;
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;
use store::StoreError;
use trace::TraceContext;

/// A loop over the turns of one response.
pub(super) struct ToolLoop {
    /// Sends requests to the model.
    pub service: Rc<Service>,
    /// Runs the calls.
    pub tools: Rc<ServiceTools>,
    /// The request of every turn, without its conversation.
    pub request: TurnRequest,
    /// The names of the client's own tools, whose calls the client runs.
    pub leave: Vec<String>,
    /// Whether the response resumes when the service restarts.
    pub is_background: bool,
    /// Whether the response ends when only calls that need approval are left. The client answers
    /// them in its next request.
    pub ends_for_a_person: bool,
}

/// What the requests of all turns share.
#[derive(Clone, Debug)]
pub(super) struct TurnRequest {
    /// The client's key.
    pub key: ClientKey,
    /// The id of the client's request.
    pub id: String,
    /// The API that the client speaks.
    pub api: Api,
    /// What the client asks for, without the conversation.
    pub inbound: InboundRequest,
    /// Whether the client sends a failed request again by itself.
    pub retries: bool,
    /// The client's headers that a provider may get.
    pub headers: Vec<(String, String)>,
    /// The span of the answer, if there is a trace.
    pub trace: Option<TraceContext>,
}

impl TurnRequest {
    /// The same without the conversation of `request`.
    pub(super) fn of(request: &mut ClientRequest) -> TurnRequest {
        let conversation = std::mem::take(&mut request.request.conversation);
        let inbound = request.request.clone();
        request.request.conversation = conversation;
        TurnRequest {
            key: request.key,
            id: request.id.clone(),
            api: request.api,
            inbound,
            retries: request.retries,
            headers: request.headers.clone(),
            trace: request.trace.clone(),
        }
    }
}

/// The next step of the loop.
pub(super) enum LoopStep {
    /// Ask the model with this request.
    Ask(Box<ClientRequest>),
    /// Run the calls of the last turn. The value holds the `tool-exec` options with users' answers.
    Decide(Vec<OsString>),
}

/// How the wait for approvals ended.
enum Waited {
    /// No call waits any more.
    Settled,
    /// A call was answered, but running it failed.
    NotRun,
    /// The service is stopping.
    Left,
}

impl ToolLoop {
    /// Runs the loop, starting with this step.
    ///
    /// # Errors
    /// Failures of the session.
    pub(super) async fn run(
        self,
        running: &RunningResponse,
        writer: &mut SessionWriter,
        mut step: LoopStep,
    ) -> Result<Made, StoreError> {
        let log = writer.sessions().store.path_of(writer.session.id);
        let _run = RunFile::take(&log)?;
        // Turns before a restart of the service count too.
        let outline = writer.outline().await?;
        let mut asked = turns_of(&outline);
        drop(outline);
        loop {
            asked += u32::from(matches!(step, LoopStep::Ask(_)));
            match self.turn(running, writer, step).await? {
                TurnEnd::Failed => return Ok(Made::Failed),
                TurnEnd::Pending if self.ends_for_a_person => return Ok(Made::Whole),
                TurnEnd::Pending => match self.wait(writer).await? {
                    Waited::Settled => {}
                    Waited::NotRun => {
                        step = LoopStep::Decide(Vec::new());
                        continue;
                    }
                    Waited::Left => return Ok(Made::Left),
                },
                TurnEnd::Again | TurnEnd::Answered => {}
            }
            writer.take_in()?;
            let outline = writer.outline().await?;
            let talk = outline.open_conversation();
            if outline.is_final || self.is_answered(&talk) {
                return Ok(Made::Whole);
            }
            if asked >= self.tools.steps {
                let message = format!("the model has answered {asked} times (--steps)");
                writer.fail("max_steps", &message)?;
                return Ok(Made::Failed);
            }
            if self.service.ending.is_cut_now() {
                return self.shut_down(writer);
            }
            let mut share = self.service.pipe.budget.share();
            let size = outline.conversation_size();
            if let Err(no_room) = share.reserve(size, size) {
                let failure = no_room.failure();
                writer.fail(&failure.code, &failure.message)?;
                return Ok(Made::Failed);
            }
            step = LoopStep::Ask(Box::new(self.next(talk, share)));
        }
    }

    /// Whether the model's last message needs no further turn: it has no calls, or calls of the
    /// client.
    fn is_answered(&self, talk: &api::Conversation) -> bool {
        let is_of_model = |message: &&api::Message| message.role() == "assistant";
        if talk.messages.last().is_none_or(|last| is_of_model(&last)) {
            return true;
        }
        let last = talk.messages.iter().rev().find(is_of_model);
        let calls = last.map(api::Message::calls).unwrap_or_default();
        calls
            .iter()
            .any(|call| self.leave.iter().any(|name| name == call.name))
    }

    /// Returns the request of the next turn.
    fn next(&self, conversation: api::Conversation, share: Share) -> ClientRequest {
        let TurnRequest {
            key,
            id,
            api,
            inbound,
            retries,
            headers,
            trace,
        } = self.request.clone();
        let mut request = inbound;
        request.conversation = conversation;
        ClientRequest {
            share,
            key,
            id,
            api,
            request,
            retries,
            headers,
            trace,
        }
    }

    /// Runs one turn with `tool-exec`, which writes to the session in the meantime.
    async fn turn(
        &self,
        running: &RunningResponse,
        writer: &mut SessionWriter,
        step: LoopStep,
    ) -> Result<TurnEnd, StoreError> {
        // An answer to a pending call is applied only after the turn's other calls have ended.
        let _turn = Arc::clone(&writer.session.deciding).lock_owned().await;
        let log = writer.sessions().store.path_of(writer.session.id);
        let id = running.id.to_string();
        let turn = ToolTurn {
            log: &log,
            id: &id,
            key: self.request.key,
            leave: &self.leave,
            retracts: writer.session.retracts(),
            trace: running.trace.as_ref(),
        };
        let ended = match step {
            LoopStep::Ask(request) => {
                let output = PipeOutput::Events(EventLines::kept());
                let pipe = self.service.pipe_for(&request, None, output);
                running.set_pipe(&pipe);
                let work = self.service.work(*request, &pipe);
                writer.hand_over();
                self.tools.turn(turn, &pipe, work).await
            }
            LoopStep::Decide(answers) => {
                writer.hand_over();
                self.tools.decide(turn, &answers).await
            }
        };
        writer.take_back().await?;
        let (code, message) = match ended {
            Ok(TurnEnd::Failed) if has_failed(running) => return Ok(TurnEnd::Failed),
            Ok(TurnEnd::Failed) => (
                "tools_failed",
                "tool-exec has failed, see the standard error of tc-serve".to_owned(),
            ),
            Ok(end) => return Ok(end),
            Err(error) => ("tools_not_run", format!("{error:#}")),
        };
        writer.fail(code, &message)?;
        Ok(TurnEnd::Failed)
    }

    /// Waits until users have answered all pending calls, over HTTP or in a terminal.
    async fn wait(&self, writer: &mut SessionWriter) -> Result<Waited, StoreError> {
        let session = Rc::clone(&writer.session);
        let waiting = self.service.pipe.metrics.waiting();
        loop {
            writer.hand_over();
            let settled = session.until(|| {
                let outline = writer.outline_now()?;
                waiting.set(outline.pending.len());
                // Whoever answers a call here runs it, and holds this meanwhile.
                let is_over = outline.pending.is_empty()
                    || (outline.has_answered_call() && session.deciding.try_lock().is_ok());
                Ok(is_over.then_some(()))
            });
            let is_cut = tokio::select! {
                biased;
                settled = settled => {
                    settled?;
                    false
                }
                () = self.service.ending.is_cut() => true,
            };
            // A call that was approved in a terminal may still be running.
            writer.take_back().await?;
            if is_cut && !self.is_background {
                self.shut_down(writer)?;
            }
            if is_cut {
                return Ok(Waited::Left);
            }
            let outline = writer.outline_now()?;
            if outline.pending.is_empty() {
                return Ok(Waited::Settled);
            }
            if outline.has_answered_call() {
                return Ok(Waited::NotRun);
            }
        }
    }

    /// Returns how the response continues when the service stops between two turns.
    fn shut_down(&self, writer: &mut SessionWriter) -> Result<Made, StoreError> {
        if self.is_background {
            return Ok(Made::Left);
        }
        writer.fail("shutting_down", "the server is being stopped")?;
        Ok(Made::Failed)
    }
}

/// Whether the turn's own stream has failed, in which case its events give the reason.
fn has_failed(running: &RunningResponse) -> bool {
    running.pipe().reason().is_none_or(FinishReason::is_failure)
}

/// Returns how many turns of the open response have begun.
fn turns_of(outline: &Outline) -> u32 {
    outline.active().map_or(0, |response| response.turns)
}

// Responses that were unfinished when a service stopped.

impl Service {
    /// Resumes the responses that were unfinished when a service stopped: background responses
    /// between two turns, and responses to user interfaces also within a turn.
    ///
    /// # Errors
    /// If the record of these responses cannot be read.
    pub(crate) fn go_on(self: &Rc<Self>) -> anyhow::Result<()> {
        let Some(sessions) = &self.sessions else {
            return Ok(());
        };
        for id in sessions.left()? {
            // Another service may be producing it.
            if !RunFile::is_held(&sessions.store.path_of(id)) {
                let (service, sessions) = (Rc::clone(self), Rc::clone(sessions));
                tokio::task::spawn_local(async move {
                    // Tools of a killed service may still be running; wait until they end their
                    // turn.
                    let session = sessions.live(id);
                    let mut writer = SessionWriter::waiting(&sessions, &session);
                    // A session that cannot be read now is handled when a client requests it.
                    if writer.take_back().await.is_ok() {
                        let _ = service.go_on_with(&sessions, writer);
                    }
                });
            }
        }
        Ok(())
    }

    fn go_on_with(
        self: &Rc<Self>,
        sessions: &Rc<Sessions>,
        mut writer: SessionWriter,
    ) -> Result<(), Refusal> {
        let failed = |error: StoreError| Named::Response.refuse(error);
        let session = Rc::clone(&writer.session);
        let id = session.id;
        if RunFile::is_held(&sessions.store.path_of(id)) {
            return Ok(());
        }
        let outline = sessions.outline(id).map_err(failed)?;
        let Some(left) = outline.active() else {
            sessions.forget_left(id);
            return Ok(());
        };
        let key = outline.head.key.as_deref().and_then(KeyHash::parse);
        if !self.keys.admit(key) {
            // The key was removed while no service was running.
            sessions.forget_left(id);
            return writer.end_left(left).map_err(failed);
        }
        let response = ResponseId::of(&left.id).ok_or_else(|| Named::Response.unknown())?;
        let stored = StoredResponse::read(sessions, response)?;
        let front = stored.front;
        let runs_tools = stored.mode.is_some_and(|mode| mode != ToolsMode::Pass);
        if runs_tools && self.tools.is_none() {
            // Another service on this folder may have the tools.
            return Ok(());
        }
        let tools = self.tools.clone().filter(|_| runs_tools);
        // A user interface's client can retract the part of a turn that was cut off.
        let is_ui = front.is_ui();
        let may_go_on = match &tools {
            Some(_) => left.is_background && (is_ui || !left.is_open),
            None => is_ui && (left.is_open || left.turns == 0),
        };
        if !may_go_on {
            sessions.forget_left(id);
            return writer.end_left(left).map_err(failed);
        }
        if left.is_open {
            writer.cut_turn().map_err(failed)?;
        }
        let mut share = self.pipe.budget.share();
        let size = outline.conversation_size();
        share.reserve(size, size)?;
        let mut inbound = stored.request.ok_or_else(|| Named::Response.unknown())?;
        inbound.conversation = outline.open_conversation();
        let own = tools.map(|tools| {
            inbound.offer(&tools.list);
            // Some calls of the last turn may have results, and others may not.
            let mut messages = inbound.conversation.messages.iter().rev();
            let last = messages.find(|message| message.role() != "tool");
            let has_calls = last.is_some_and(|message| message.role() == "assistant");
            OwnTools {
                tools,
                leave: stored.tools,
                decides: has_calls.then(Vec::new),
                ends_for_a_person: is_ui,
            }
        });
        let owner = outline.head.key.clone();
        let trace = self.trace_of(&left.id, stored.client.as_ref());
        let request = ClientRequest {
            share,
            key,
            id: self.new_id(),
            api: front.api(),
            request: inbound,
            retries: false,
            headers: Vec::new(),
            trace: trace.clone(),
        };
        let pipe = self.pipe_for(&request, None, PipeOutput::Events(EventLines::kept()));
        let mut running = RunningResponse::new(response, owner, front.name(), pipe);
        running.is_background = true;
        running.trace = trace;
        running.idempotency.clone_from(&left.idempotency);
        running.body_hash = left.body_hash.clone().unwrap_or_default();
        self.make(running, writer, request, own);
        Ok(())
    }
}
