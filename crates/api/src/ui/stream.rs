//! Converts events into the bytes of a stream for a user interface.
//!
//! Such a stream is a view of a session's lines. It shows each turn, each call (whoever runs it)
//! and each request for approval, and it may retract parts of the open turn.

mod calls;
mod turn;

use crate::answer::details::{DetailMembers, details_for, image_for};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{ReportedUsage, TextKind, piece};
use crate::api::Api;
use crate::ui::step::{UiEnd, UiStep, UiWriter};
use crate::ui::stream::calls::{CallState, UiCall};
use crate::ui::stream::turn::{KeptPart, OpenTurn, TurnState};
use crate::ui::{UiFront, UiOptions};
use event::payload::{
    Approval, Cancel, Details, Error, FinishReason, Message, Retract, ServerItem, SessionStats,
    StreamEnd, StreamStart, ToolCall, ToolCallDelta, ToolProgress, ToolResult, ToolUse,
};
use event::{Event, Kind, Raw, Text};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// Writes the stream for one user interface. Pass the events to [`UiStream::push`], then call
/// [`UiStream::finish`] once.
///
/// Nothing is written before the model's first content, so that an earlier failure can still be
/// reported as the HTTP status.
pub struct UiStream {
    output: StepOutput,
    turn: OpenTurn,
    /// The calls of the open turn, and those of earlier turns that have no result.
    calls: Vec<UiCall>,
    /// Whether no turn has started since the request. Until then, each message belongs to the
    /// request, and the client may have calls from an earlier answer.
    is_request: bool,
    /// The ids of this turn's calls that were retracted after they were written, in a protocol that
    /// cannot remove calls. Such an id cannot be reused for another call.
    taken_back: HashSet<String>,
    /// The provider's API.
    api: String,
    /// The provider's name for the model.
    model: String,
    /// The tokens of the earlier turns, and of the current one.
    usage: SessionStats,
    turn_usage: SessionStats,
    reason: Option<FinishReason>,
    failure: Option<FailedAnswer>,
    cancelled_by: String,
    is_done: bool,
}

/// The writer of the steps, and its settings.
struct StepOutput {
    writer: Box<dyn UiWriter>,
    options: UiOptions,
    has_begun: bool,
    /// The number of part ids used so far.
    ids: usize,
}

impl UiStream {
    /// Creates a stream that has not started.
    pub fn new(front: UiFront, options: UiOptions) -> UiStream {
        UiStream {
            output: StepOutput {
                writer: (front.row().writer)(&options),
                options,
                has_begun: false,
                ids: 0,
            },
            turn: OpenTurn::default(),
            calls: Vec::new(),
            is_request: true,
            taken_back: HashSet::new(),
            api: String::new(),
            model: String::new(),
            usage: SessionStats::default(),
            turn_usage: SessionStats::default(),
            reason: None,
            failure: None,
            cancelled_by: String::new(),
            is_done: false,
        }
    }

    /// Whether the stream has started, so that a failure must be reported inside it.
    pub fn has_begun(&self) -> bool {
        self.output.has_begun
    }

    /// Whether the last byte was written.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns why the answer failed; `None` if it did not. A failed turn that was retried does
    /// not count.
    pub fn failure(&self) -> Option<&FailedAnswer> {
        self.failure.as_ref()
    }

    /// Starts the stream before the model's first content, unless it has already started.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.output.begin(out);
    }

    /// Appends a comment that keeps the connection alive. Starts the stream if needed.
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.is_done {
            self.begin(out);
            out.extend_from_slice(b": keep-alive\n\n");
        }
    }

    /// Processes the next event and appends the bytes that can be sent now.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.is_done || event.choice() != 0 {
            return;
        }
        match event.kind() {
            Kind::Response => self.is_request = true,
            Kind::StreamStart => self.turn_start(&StreamStart::read(event), out),
            Kind::ToolCallDelta => self.delta(&ToolCallDelta::read(event), out),
            Kind::ToolCall => self.call(&ToolCall::read(event), out),
            Kind::ToolUse => {
                if let Some(call) = self.find(&ToolUse::read(event).tool_id.str()) {
                    call.state = call.state.max(CallState::Started);
                    self.turn.is_fixed = true;
                }
            }
            Kind::ToolProgress => self.progress(&ToolProgress::read(event), out),
            Kind::ToolResult => self.result(&ToolResult::read(event), out),
            Kind::Approval => self.approval(&Approval::read(event), out),
            Kind::Retract => self.retract(&Retract::read(event), out),
            Kind::Message => self.message(&Message::read(event), out),
            Kind::Details => {
                // Sources and images are handled in their Chat Completions form.
                let details = Details::read(event);
                let chat = Api::OpenaiChat.name();
                for (_, members) in details_for(&self.api, chat, &details, &mut |_| {}) {
                    self.members(&members, out);
                }
            }
            Kind::ServerItem => {
                let ServerItem { kind, data, .. } = ServerItem::read(event);
                let chat = Api::OpenaiChat.name();
                if let Some((_, members)) = image_for(&self.api, chat, &kind.str(), &data.text()) {
                    self.members(&members, out);
                }
            }
            Kind::SessionStats => self.turn_usage.update(&SessionStats::read(event)),
            Kind::Error => {
                let failure = FailedAnswer::of_event(&Error::read(event), &self.api);
                self.fail(failure);
            }
            Kind::Cancel => {
                let cancel = Cancel::read(event);
                if cancel.tool_id.is_none() {
                    self.cancelled_by = cancel.by.str().into_owned();
                }
            }
            Kind::StreamEnd => self.turn_end(StreamEnd::read(event).finish_reason, out),
            _ => {
                if let Some((kind, text, provider)) = piece(event) {
                    self.turn.has_refused |= kind == TextKind::Refusal;
                    self.text(kind, text, provider, out);
                }
            }
        }
    }

    /// Handles the end of the events and appends the remaining bytes. An answer that failed before
    /// anything was sent writes nothing; see [`UiStream::failure`].
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        // An answer that only approves or rejects calls may have no turn of the model.
        let needs_turn = !self.is_request || !self.output.options.continues;
        let reason = self.reason.unwrap_or(match needs_turn {
            true => FinishReason::Cut,
            false => FinishReason::Stop,
        });
        let is_cancelled = reason == FinishReason::Cancelled;
        if is_cancelled {
            self.failure = None;
        } else if let Some(failure) = FailedAnswer::of_reason(reason) {
            self.fail(failure);
        }
        if self.failure.is_some() && !self.output.has_begun {
            return;
        }
        self.output.begin(out);
        self.settle(out);
        self.close(None, out);
        self.end_calls(is_cancelled, out);
        let OpenTurn {
            has_cut,
            has_refused,
            ..
        } = self.turn;
        self.end_turn(out);
        self.usage.add(&self.turn_usage);
        let asked = self.calls.iter();
        let asked = asked.filter_map(|call| Some((call.name(), call.open_ask()?)));
        let asked: Vec<_> = asked.collect();
        let clients = self.calls.iter().filter(|call| !call.is_own);
        let clients: Vec<&str> = clients.map(|call| &*call.id).collect();
        // The order of the cases matches the other fronts; see `answer/turn/choice.rs`.
        let reason = match reason {
            FinishReason::Cancelled => reason,
            _ if self.failure.is_some() => FinishReason::Error,
            FinishReason::Length | FinishReason::ContentFilter => reason,
            _ if has_cut => FinishReason::Length,
            _ if !asked.is_empty() || !clients.is_empty() => FinishReason::ToolCalls,
            _ if has_refused => FinishReason::ContentFilter,
            _ => FinishReason::Stop,
        };
        let end = UiEnd {
            reason,
            failure: self.failure.as_ref(),
            cancelled_by: &self.cancelled_by,
            asked: &asked,
            clients: &clients,
            model: &self.model,
            usage: ReportedUsage::of(&self.usage),
        };
        self.output.step(&UiStep::End(end), out);
        self.calls = Vec::new();
    }

    /// Records why the answer failed. Only the first reason is kept.
    fn fail(&mut self, failure: FailedAnswer) {
        self.failure.get_or_insert(failure);
    }

    /// Starts a turn of the model. If the previous turn failed or has no end, this is a retry, and
    /// the previous turn's parts are retracted.
    fn turn_start(&mut self, start: &StreamStart<'_>, out: &mut Vec<u8>) {
        self.is_request = false;
        match self.turn.state {
            TurnState::Open | TurnState::Failed => self.take_back_all(out),
            TurnState::Ended | TurnState::None => self.end_turn(out),
        }
        self.failure = None;
        self.reason = None;
        self.taken_back.clear();
        self.usage.add(&std::mem::take(&mut self.turn_usage));
        self.turn.state = TurnState::Open;
        self.api = start.api.map(Text::str).unwrap_or_default().into_owned();
        if let Some(model) = start.model {
            self.model = model.str().into_owned();
        }
    }

    fn turn_end(&mut self, reason: FinishReason, out: &mut Vec<u8>) {
        self.reason = Some(reason);
        if self.turn.state != TurnState::Open {
            // An error after the end of a turn ends the whole answer.
            return;
        }
        if reason.is_failure() {
            self.turn.state = TurnState::Failed;
            return;
        }
        self.turn.state = TurnState::Ended;
        if self.turn.has_begun {
            self.settle(out);
            self.close(None, out);
        }
        // The parts of an ended turn are never retracted.
        self.turn.kept = Vec::new();
    }

    /// Handles a message that a user sends while the answer is being generated.
    fn message(&mut self, event: &Message<'_>, out: &mut Vec<u8>) {
        if self.is_request || !event.is_of("user") {
            return;
        }
        let text = event.message.with(|message| {
            let content = message.get("content");
            content.and_then(Raw::str).map(Cow::into_owned)
        });
        if let Some(text) = &text {
            self.output.begin(out);
            self.close(None, out);
            self.end_turn(out);
            let id = &format!("user-{}", self.output.new_id());
            self.output.step(&UiStep::UserMessage { id, text }, out);
        }
    }

    /// Writes the sources and images in members of a Chat Completions response.
    fn members(&mut self, members: &DetailMembers, out: &mut Vec<u8>) {
        let list = |name: &str| {
            let list = members.get(name).and_then(Value::as_array);
            list.map(Vec::as_slice).unwrap_or_default()
        };
        let text = |value: &Value, path: &str| {
            let text = value.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        for annotation in list("annotations") {
            let url = text(annotation, "/url_citation/url");
            if !url.is_empty() {
                let title = text(annotation, "/url_citation/title");
                self.ready(out);
                self.output.source(&url, &title, out);
                self.keep(KeptPart::Source { url, title });
            }
        }
        for image in list("images") {
            let url = text(image, "/image_url/url");
            let media_type = url
                .strip_prefix("data:")
                .and_then(|rest| rest.split(';').next());
            let media_type = media_type.unwrap_or("image/*").to_owned();
            if !url.is_empty() {
                self.ready(out);
                self.close(None, out);
                let step = UiStep::File {
                    url: &url,
                    media_type: &media_type,
                };
                self.output.step(&step, out);
                self.keep(KeptPart::File { url, media_type });
            }
        }
    }
}

impl std::fmt::Debug for UiStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UiStream")
            .field("turn", &self.turn)
            .finish_non_exhaustive()
    }
}

impl StepOutput {
    fn step(&mut self, step: &UiStep<'_>, out: &mut Vec<u8>) {
        self.writer.step(step, out);
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.step(&UiStep::Start, out);
        }
    }

    /// Returns an id that is unique among the stream's parts.
    fn new_id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }

    fn source(&mut self, url: &str, title: &str, out: &mut Vec<u8>) {
        let id = &format!("source-{}", self.new_id());
        self.step(&UiStep::Source { id, url, title }, out);
    }
}
