//! Events into the bytes of a stream for a user interface.
//!
//! Such a stream is a view of the lines of a session: it shows each turn and each call, whoever runs
//! the call, and the questions to a person; and it may take back parts of the open turn.

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

/// Writes the stream of one user interface. Feed it with [`UiStream::push`], then call
/// [`UiStream::finish`] once.
///
/// Nothing is written before the model's first content, so that a failure until then can still be
/// the status of the response.
pub struct UiStream {
    output: StepOutput,
    turn: OpenTurn,
    /// The calls of the open turn, and those of earlier turns that have no result.
    calls: Vec<UiCall>,
    /// Whether no turn has begun since the request: each message is one of the request, and the
    /// client may have calls of an earlier answer.
    is_request: bool,
    /// The ids of this turn's calls that were retracted after they had been written, in a protocol
    /// that cannot remove a call. Such an id cannot begin another call.
    taken_back: HashSet<String>,
    /// The API of the provider.
    api: String,
    /// The model, as the provider names it.
    model: String,
    /// The tokens of the turns before this one, and of this one.
    usage: SessionStats,
    turn_usage: SessionStats,
    reason: Option<FinishReason>,
    failure: Option<FailedAnswer>,
    cancelled_by: String,
    is_done: bool,
}

/// Where the steps go.
struct StepOutput {
    writer: Box<dyn UiWriter>,
    options: UiOptions,
    has_begun: bool,
    /// How many ids of parts the stream has used.
    ids: usize,
}

impl UiStream {
    /// A stream that has not begun.
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

    /// Whether the stream has begun: a failure is reported inside it.
    pub fn has_begun(&self) -> bool {
        self.output.has_begun
    }

    /// Whether the last byte was written.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Why the answer failed, if it did. A failed turn that was asked again does not count.
    pub fn failure(&self) -> Option<&FailedAnswer> {
        self.failure.as_ref()
    }

    /// Begins the stream before the model's first content, if it has not begun.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.output.begin(out);
    }

    /// Begins the stream if it has not begun, and appends a comment that keeps the connection alive.
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.is_done {
            self.begin(out);
            out.extend_from_slice(b": keep-alive\n\n");
        }
    }

    /// Takes the next event, and appends what can be sent now.
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
                // Sources and images come as the members that chat completions have for them.
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

    /// Handles the end of the events, and appends the rest. An answer that failed before any of it
    /// was sent writes nothing, see [`UiStream::failure`].
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        // An answer in which a person only approves or refuses calls may have no turn of the model.
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
        // The order of the cases is that of the fronts, see `answer/turn/choice.rs`.
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

    /// Notes why the answer fails; the first reason counts.
    fn fail(&mut self, failure: FailedAnswer) {
        self.failure.get_or_insert(failure);
    }

    /// A turn of the model begins. If the turn before it failed or has no end, the model is asked
    /// again: the parts of that turn are taken back.
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
        // The parts of a turn that has ended are never taken back.
        self.turn.kept = Vec::new();
    }

    /// A message that a user sends while the answer is made.
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

    /// Writes the sources and the images among members of an answer of chat completions.
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

    /// An id that no other part of the stream has.
    fn new_id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }

    fn source(&mut self, url: &str, title: &str, out: &mut Vec<u8>) {
        let id = &format!("source-{}", self.new_id());
        self.step(&UiStep::Source { id, url, title }, out);
    }
}
