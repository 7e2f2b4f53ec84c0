//! Events into the bytes of a stream for a user interface.
//!
//! Such a stream is a view of the lines of a session: it shows each turn and each call, whoever runs
//! the call, and the questions to a person; and it may take back parts of the open turn.

use crate::answer::details::{DetailMembers, details_for, image_for};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{ReportedUsage, TextKind, piece};
use crate::answer::turn::choice::{AnswerTrouble, CallVerdict, verdict};
use crate::api::Api;
use crate::ui::step::{UiAsk, UiCallName, UiEnd, UiResult, UiStep, UiWriter};
use crate::ui::{UiFront, UiOptions};
use event::payload::{
    Approval, Cancel, Details, Error, FinishReason, Message, Retract, ServerItem, SessionStats,
    Status, StreamEnd, StreamStart, ToolCall, ToolCallDelta, ToolProgress, ToolResult, ToolUse,
    Verdict,
};
use event::{Event, Json, Kind, Raw, Surrogates, Text};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// How often the parts of one turn are taken back and written again: a model whose calls fail one
/// after the other would have its text sent once for each of them.
const MOST_RESETS: usize = 16;

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
    /// Whether no turn has begun since the request: messages are those of the request, and the
    /// client may have calls of an earlier answer.
    is_request: bool,
    /// The ids of this turn's calls that have ended as taken back, because the protocol cannot
    /// remove them: it has no form for another call under the same id either.
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

/// The turn of the model that is shown.
#[derive(Debug, Default)]
struct OpenTurn {
    state: TurnState,
    /// [`UiStep::TurnStart`] is written.
    has_begun: bool,
    open: Option<OpenText>,
    /// The parts, where they may have to be written again.
    kept: Vec<KeptPart>,
    /// The bytes of the kept parts.
    size: usize,
    /// A part that is shown was retracted.
    needs_reset: bool,
    resets: usize,
    /// A call of the turn runs, or has run: its parts stay.
    is_fixed: bool,
    /// A call of the client's was cut.
    has_cut: bool,
    /// The model has refused to answer.
    has_refused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnState {
    /// No turn has begun.
    #[default]
    None,
    /// The model writes.
    Open,
    /// The model has ended; its calls may run.
    Ended,
    /// The model's stream has failed.
    Failed,
}

/// The text or the reasoning that the model writes.
#[derive(Debug)]
struct OpenText {
    kind: TextKind,
    id: String,
    /// The piece that is not written yet.
    piece: String,
    /// Half a surrogate pair at the end of the last piece.
    half: Surrogates,
}

/// A part of the open turn.
#[derive(Debug)]
enum KeptPart {
    Text {
        kind: TextKind,
        text: String,
        provider: Option<String>,
    },
    /// The id of a call.
    Call(String),
    /// A call that cannot run, and why.
    Error(UiCall, String),
    Source {
        url: String,
        title: String,
    },
    File {
        url: String,
        media_type: String,
    },
}

impl KeptPart {
    fn size(&self) -> usize {
        size_of::<KeptPart>()
            + match self {
                KeptPart::Text { text, provider, .. } => {
                    text.len() + provider.as_ref().map_or(0, String::len)
                }
                KeptPart::Call(id) => id.len(),
                KeptPart::Error(call, why) => call.size() + why.len(),
                KeptPart::Source { url, title } => url.len() + title.len(),
                KeptPart::File { url, media_type } => url.len() + media_type.len(),
            }
    }
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum CallState {
    /// Its name is not known.
    #[default]
    Unnamed,
    /// Its beginning is written.
    Named,
    /// It is complete.
    Called,
    /// It was started, or waits for a person: it cannot be taken back.
    Started,
    /// An earlier answer has shown it, and may have asked a person about it.
    Earlier,
}

/// A call that has no result.
#[derive(Debug, Default)]
struct UiCall {
    id: String,
    name: String,
    /// The arguments so far.
    arguments: String,
    provider: Option<String>,
    is_own: bool,
    state: CallState,
    has_progress: bool,
    /// The last question about it.
    ask: Option<UiAsk>,
    /// Whether the answer to that question was yes.
    answer: Option<bool>,
}

impl UiCall {
    fn name(&self) -> UiCallName<'_> {
        UiCallName {
            id: &self.id,
            name: &self.name,
            is_own: self.is_own,
        }
    }

    /// The question that waits for a person.
    fn open_ask(&self) -> Option<&UiAsk> {
        self.ask.as_ref().filter(|_| self.answer.is_none())
    }

    fn size(&self) -> usize {
        let provider = self.provider.as_ref().map_or(0, String::len);
        size_of::<UiCall>() + self.id.len() + self.name.len() + self.arguments.len() + provider
    }
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

    /// Why the answer failed, if it did. A turn that was asked again has not failed.
    pub fn failure(&self) -> Option<&FailedAnswer> {
        self.failure.as_ref()
    }

    /// How many bytes it keeps.
    pub fn kept(&self) -> usize {
        self.turn.size + self.calls.iter().map(UiCall::size).sum::<usize>()
    }

    /// Begins the stream before the model's first content. It does nothing in a stream that has
    /// begun.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.output.begin(out);
    }

    /// Appends a comment that keeps the connection alive, after what opens the stream if it has not
    /// begun.
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
        // An answer that only decides calls has no stream of a model.
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

    /// A turn of the model begins. What a turn has shown that failed, or that is asked again, is
    /// taken back.
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
        // Nothing of the turn is taken back from now on.
        self.turn.kept = Vec::new();
        self.turn.size = 0;
    }

    /// Ends the turn that is shown.
    fn end_turn(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.turn).has_begun {
            self.output.step(&UiStep::TurnEnd, out);
        }
    }

    /// Takes back all parts of the turn.
    fn take_back_all(&mut self, out: &mut Vec<u8>) {
        let has_begun = self.turn.has_begun;
        let resets = self.output.writer.resets();
        if has_begun && resets {
            self.output.step(&UiStep::Reset, out);
            self.calls.retain(|call| call.open_ask().is_some());
        } else if has_begun {
            self.close(None, out);
            self.end_calls(true, out);
            self.output.step(&UiStep::Reset, out);
            self.output.step(&UiStep::TurnEnd, out);
        }
        self.turn = OpenTurn {
            has_begun: has_begun && resets,
            ..OpenTurn::default()
        };
    }

    /// Prepares a new part: the turn that is shown has begun, and its retracted parts are gone.
    fn ready(&mut self, out: &mut Vec<u8>) {
        self.output.begin(out);
        if !std::mem::replace(&mut self.turn.has_begun, true) {
            self.output.step(&UiStep::TurnStart, out);
        }
        self.settle(out);
    }

    /// Removes parts that were retracted: the whole turn is taken back, and its other parts are
    /// written again.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.turn.needs_reset) {
            return;
        }
        self.turn.resets += 1;
        self.turn.open = None;
        let UiStream {
            output,
            turn,
            calls,
            ..
        } = self;
        output.step(&UiStep::Reset, out);
        for part in &turn.kept {
            match part {
                KeptPart::Text {
                    kind,
                    text,
                    provider,
                } => {
                    let (kind, id) = (*kind, &*output.new_id());
                    let provider = provider.as_deref();
                    output.step(&UiStep::TextStart { kind, id }, out);
                    if !text.is_empty() {
                        output.step(&UiStep::TextDelta { kind, id, text }, out);
                    }
                    output.step(&UiStep::TextEnd { kind, id, provider }, out);
                }
                KeptPart::Call(id) => {
                    let call = calls.iter().find(|call| call.id == *id);
                    call.iter().for_each(|call| output.write_call(call, out));
                }
                KeptPart::Error(call, why) => {
                    output.step(&UiStep::CallStart { call: call.name() }, out);
                    output.call_error(call, why, out);
                }
                KeptPart::Source { url, title } => output.source(url, title, out),
                KeptPart::File { url, media_type } => {
                    output.step(&UiStep::File { url, media_type }, out);
                }
            }
        }
    }

    /// Keeps a part that may have to be written again. A text that is open stays the last part: its
    /// next piece is appended to it.
    fn keep(&mut self, part: KeptPart) {
        if self.output.writer.resets() && self.turn.state == TurnState::Open {
            self.turn.size += part.size();
            let open = usize::from(self.turn.open.is_some());
            let at = self.turn.kept.len().saturating_sub(open);
            self.turn.kept.insert(at, part);
        }
    }

    /// Forgets a kept call.
    fn forget(&mut self, id: &str) {
        let is_call = |part: &KeptPart| matches!(part, KeptPart::Call(other) if other == id);
        if let Some(at) = self.turn.kept.iter().rposition(is_call) {
            self.turn.size -= self.turn.kept.remove(at).size();
        }
    }

    /// The next piece of a text, which begins if none of its kind is open. Reasoning ends with the
    /// data that its provider wants back.
    fn text(
        &mut self,
        kind: TextKind,
        text: Text<'_>,
        provider: Option<Json<'_>>,
        out: &mut Vec<u8>,
    ) {
        if text.is_empty() && provider.is_none() {
            return;
        }
        self.ready(out);
        let is_same =
            |open: &OpenText| (open.kind == TextKind::Reasoning) == (kind == TextKind::Reasoning);
        if !self.turn.open.as_ref().is_some_and(is_same) {
            self.close(None, out);
            let id = self.output.new_id();
            self.output.step(&UiStep::TextStart { kind, id: &id }, out);
            self.keep(KeptPart::Text {
                kind,
                text: String::new(),
                provider: None,
            });
            self.turn.open = Some(OpenText {
                kind,
                id,
                piece: String::new(),
                half: Surrogates::default(),
            });
        }
        if let Some(OpenText { piece, half, .. }) = &mut self.turn.open {
            half.push_text(text, piece);
        }
        self.write_piece(out);
        if let Some(provider) = provider {
            self.close(Some(&provider.text()), out);
        }
    }

    /// Writes the next piece of the text that is open.
    fn write_piece(&mut self, out: &mut Vec<u8>) {
        let open = self.turn.open.as_mut();
        let Some(open) = open.filter(|open| !open.piece.is_empty()) else {
            return;
        };
        let (kind, id, text) = (open.kind, &*open.id, &*open.piece);
        if let Some(KeptPart::Text { text: kept, .. }) = self.turn.kept.last_mut() {
            kept.push_str(text);
            self.turn.size += text.len();
        }
        self.output.step(&UiStep::TextDelta { kind, id, text }, out);
        open.piece.clear();
    }

    /// Ends the text that is open. `provider` is what the provider wants back with it.
    fn close(&mut self, provider: Option<&str>, out: &mut Vec<u8>) {
        if let Some(OpenText { piece, half, .. }) = &mut self.turn.open {
            half.finish(piece);
        }
        self.write_piece(out);
        let Some(OpenText { kind, id, .. }) = self.turn.open.take() else {
            return;
        };
        if let (Some(KeptPart::Text { provider: kept, .. }), Some(provider)) =
            (self.turn.kept.last_mut(), provider)
        {
            *kept = Some(provider.to_owned());
            self.turn.size += provider.len();
        }
        let id = &id;
        self.output
            .step(&UiStep::TextEnd { kind, id, provider }, out);
    }

    fn find(&mut self, id: &str) -> Option<&mut UiCall> {
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }

    /// Takes out a call that has ended.
    fn take(&mut self, id: &str) -> Option<UiCall> {
        let at = self.calls.iter().rposition(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    /// The place of the call `id`, which begins if it is not there.
    fn place_of(&mut self, id: &str) -> usize {
        let at = self.calls.iter().rposition(|call| call.id == id);
        at.unwrap_or_else(|| {
            if self.taken_back.contains(id) {
                self.fail(AnswerTrouble::Withdrawn("a tool".to_owned()).failure());
            }
            self.calls.push(UiCall {
                id: id.to_owned(),
                ..UiCall::default()
            });
            self.calls.len() - 1
        })
    }

    /// The call `id` that runs or waits, if the client has it. Where the stream goes on with a
    /// message, the client has the calls of the earlier answer.
    fn shown(&mut self, id: &str, name: &str) -> Option<&mut UiCall> {
        let continues = self.output.options.continues && self.is_request;
        if self.find(id).is_none() && continues {
            self.calls.push(UiCall {
                id: id.to_owned(),
                name: name.to_owned(),
                is_own: true,
                state: CallState::Earlier,
                ..UiCall::default()
            });
        }
        self.find(id).filter(|call| call.state > CallState::Unnamed)
    }

    fn delta(&mut self, delta: &ToolCallDelta<'_>, out: &mut Vec<u8>) {
        let Some(id) = delta.tool_id.map(Text::str).filter(|id| !id.is_empty()) else {
            return;
        };
        let at = self.place_of(&id);
        if self.calls[at].state >= CallState::Called {
            return;
        }
        // Parts that are written again have the arguments without this piece.
        self.settle(out);
        let call = &mut self.calls[at];
        let before = call.arguments.len();
        let piece = delta.arguments.unwrap_or_default();
        piece.append_to(&mut call.arguments);
        if call.state == CallState::Named {
            let (id, piece) = (&*id, &call.arguments[before..]);
            if !piece.is_empty() {
                self.output.step(&UiStep::CallDelta { id, piece }, out);
            }
        } else if let Some(name) = delta.tool_name.filter(|name| !name.is_empty()) {
            self.name_call(at, &name.str(), out);
        }
    }

    /// Writes the beginning of a call whose name is known now, with the arguments that came before
    /// the name.
    fn name_call(&mut self, at: usize, name: &str, out: &mut Vec<u8>) {
        self.ready(out);
        self.close(None, out);
        self.keep(KeptPart::Call(self.calls[at].id.clone()));
        let call = &mut self.calls[at];
        name.clone_into(&mut call.name);
        call.is_own = self.output.options.is_own(name);
        call.state = CallState::Named;
        self.output.write_call(call, out);
    }

    fn call(&mut self, event: &ToolCall<'_>, out: &mut Vec<u8>) {
        let (id, name) = (event.tool_id.str(), event.tool_name.str());
        let at = self.place_of(&id);
        match self.calls[at].state {
            CallState::Unnamed if !name.is_empty() => self.name_call(at, &name, out),
            CallState::Unnamed | CallState::Named => {
                self.ready(out);
                self.close(None, out);
            }
            _ => return,
        }
        let is_own = self.output.options.is_own(&name);
        // The service answers a call that does not fit its schema; a client judges it by itself.
        let verdict = match event.error {
            Some(error) if is_own => CallVerdict::Unusable(error.message.str().into_owned()),
            _ => verdict(event),
        };
        let call = &mut self.calls[at];
        let resets = self.output.writer.resets();
        let is_changed = |arguments: &str| {
            !resets && !is_own && (call.name != name || !arguments.starts_with(&call.arguments))
        };
        let why = match verdict {
            CallVerdict::Arguments(arguments) if is_changed(&arguments) => {
                let failure = AnswerTrouble::Changed(name.clone().into_owned()).failure();
                let why = failure.message.clone();
                self.fail(failure);
                why
            }
            CallVerdict::Arguments(arguments) => {
                call.name = name.into_owned();
                call.is_own = is_own;
                call.state = CallState::Called;
                call.provider = event.provider.map(|json| json.text().into_owned());
                let before = std::mem::replace(&mut call.arguments, arguments);
                self.output.call_end(call, &before, out);
                return;
            }
            CallVerdict::Unusable(why) => why,
            CallVerdict::Cut => "the call was cut".to_owned(),
        };
        let Some(mut call) = self.take(&id) else {
            return;
        };
        if let Some(text) = event.arguments_text {
            call.arguments = text.str().into_owned();
        }
        self.turn.has_cut |= !is_own && !name.is_empty();
        if name.is_empty() && !is_own && !call.arguments.is_empty() {
            self.fail(AnswerTrouble::Unusable(why.clone()).failure());
        }
        if call.state == CallState::Named {
            self.output.call_error(&call, &why, out);
            self.forget(&id);
            self.keep(KeptPart::Error(call, why));
        }
    }

    fn progress(&mut self, event: &ToolProgress<'_>, out: &mut Vec<u8>) {
        let id = event.tool_id.str();
        let Some(call) = self
            .find(&id)
            .filter(|call| call.state > CallState::Unnamed)
        else {
            return;
        };
        call.state = call.state.max(CallState::Started);
        let is_first = !std::mem::replace(&mut call.has_progress, true);
        self.turn.is_fixed = true;
        let progress = event.progress.filter(|progress| progress.is_finite());
        let progress = progress.map(|progress| progress.to_string());
        let step = UiStep::Progress {
            id: &id,
            is_first,
            progress: progress.as_deref(),
            text: &event.text.str(),
        };
        self.call_step(&step, out);
    }

    /// Writes a step of a call that the client has.
    fn call_step(&mut self, step: &UiStep<'_>, out: &mut Vec<u8>) {
        self.output.begin(out);
        self.settle(out);
        self.output.step(step, out);
    }

    fn result(&mut self, event: &ToolResult<'_>, out: &mut Vec<u8>) {
        let id = event.tool_id.str();
        let Some(call) = self.shown(&id, &event.tool_name.str()) else {
            return;
        };
        call.state = call.state.max(CallState::Started);
        let is_refused = event.status == Status::Denied.name() && call.answer == Some(false);
        self.turn.is_fixed = true;
        if event.status == Status::Pending.name() {
            return self.ask(&id, event, out);
        }
        self.take(&id);
        let output = &*event.output.str();
        let duration = event.duration_ms.map(|ms| ms.to_string());
        let result = UiResult {
            id: &id,
            output,
            status: &event.status.str(),
            is_refused,
            duration_ms: duration.as_deref(),
            is_cached: event.cached,
        };
        self.call_step(&UiStep::Result(result), out);
        if event.return_directly && event.status == Status::Success.name() {
            self.text(TextKind::Answer, output.into(), None, out);
            self.close(None, out);
        }
    }

    /// A call waits for a person.
    fn ask(&mut self, id: &str, event: &ToolResult<'_>, out: &mut Vec<u8>) {
        // The summary goes on with the commands of a terminal.
        let summary = event.output_summary.str();
        let reason = summary.split(" It waits for a person").next();
        let ask = UiAsk {
            id: UiAsk::id_of(id, &event.hash.map(Text::str).unwrap_or_default()),
            reason: reason.unwrap_or_default().to_owned(),
        };
        let Some(call) = self.find(id) else {
            return;
        };
        let is_repeated = call.open_ask().is_some_and(|known| known.id == ask.id);
        (call.ask, call.answer) = (Some(ask.clone()), None);
        if !is_repeated {
            self.call_step(&UiStep::Asked { id, ask: &ask }, out);
        }
    }

    fn approval(&mut self, event: &Approval<'_>, out: &mut Vec<u8>) {
        let id = &*event.tool_id.str();
        let ask = &*UiAsk::id_of(id, &event.hash.str());
        let is_approved = match Verdict::of(&event.decision.str()) {
            Some(Verdict::Approved) => true,
            Some(Verdict::Denied) => false,
            // A person gave the result, which follows.
            Some(Verdict::Answered) | None => return,
        };
        // The policy asks nobody.
        if event.source == "policy" {
            return;
        }
        let Some(call) = self.shown(id, &event.tool_name.str()) else {
            return;
        };
        let is_asked = match &call.ask {
            Some(known) => known.id == ask,
            None => call.state == CallState::Earlier,
        };
        if is_asked {
            call.answer = Some(is_approved);
            let reason = event.reason.map(Text::str);
            let step = UiStep::Answered {
                id,
                ask,
                is_approved,
                reason: reason.as_deref(),
            };
            self.call_step(&step, out);
        }
    }

    /// A call was retracted. It is taken back with the whole turn, unless the turn has a part that
    /// cannot be taken back: then the call ends as failed.
    fn retract(&mut self, event: &Retract<'_>, out: &mut Vec<u8>) {
        let Some(id) = event.tool_id.map(Text::str) else {
            return;
        };
        let resets = self.output.writer.resets();
        let may_reset = resets
            && self.turn.state == TurnState::Open
            && self.turn.resets < MOST_RESETS
            && !self.turn.is_fixed;
        // A call that was started gets a result.
        let Some(call) = self
            .find(&id)
            .filter(|call| call.state < CallState::Started)
        else {
            return;
        };
        let is_shown = call.state > CallState::Unnamed;
        if may_reset {
            self.turn.needs_reset |= is_shown;
            self.forget(&id);
            self.take(&id);
        } else {
            if is_shown && !resets {
                self.taken_back.insert(id.clone().into_owned());
            }
            self.end_call(&id, "the call was taken back", out);
        }
    }

    /// Ends a call that gets no result.
    fn end_call(&mut self, id: &str, why: &str, out: &mut Vec<u8>) {
        let Some(call) = self.take(id) else {
            return;
        };
        match call.state {
            CallState::Unnamed => {}
            CallState::Named => {
                self.settle(out);
                self.output.call_error(&call, why, out);
            }
            _ => {
                let result = UiResult::without_run(id, why, Status::Cancelled);
                self.call_step(&UiStep::Result(result), out);
            }
        }
    }

    /// Ends the calls that get no result. Calls that wait for a person or for the client stay, unless
    /// the answer has failed or `is_over`.
    fn end_calls(&mut self, is_over: bool, out: &mut Vec<u8>) {
        let has_failed = self.failure.is_some();
        let stays = |call: &UiCall| {
            call.state >= CallState::Called
                && !is_over
                && !has_failed
                && (call.open_ask().is_some() || !call.is_own)
        };
        let ended = self.calls.iter().filter(|call| !stays(call));
        let ended: Vec<String> = ended.map(|call| call.id.clone()).collect();
        let why = match is_over {
            true => "the call was cancelled",
            false => "the answer ended before the call did",
        };
        for id in ended {
            self.end_call(&id, why, out);
        }
    }

    /// A user's message while the answer is made.
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

    /// Writes a call that has begun, as far as it has come.
    fn write_call(&mut self, call: &UiCall, out: &mut Vec<u8>) {
        self.step(&UiStep::CallStart { call: call.name() }, out);
        let (id, piece) = (&*call.id, &*call.arguments);
        if call.state >= CallState::Called {
            self.call_end(call, "", out);
        } else if !piece.is_empty() {
            self.step(&UiStep::CallDelta { id, piece }, out);
        }
    }

    /// Writes the end of a call, of whose arguments `before` is written.
    fn call_end(&mut self, call: &UiCall, before: &str, out: &mut Vec<u8>) {
        let arguments = &*call.arguments;
        let end = UiStep::CallEnd {
            call: call.name(),
            arguments,
            rest: arguments.strip_prefix(before).unwrap_or_default(),
            provider: call.provider.as_deref(),
        };
        self.step(&end, out);
    }

    /// Writes why a call cannot run.
    fn call_error(&mut self, call: &UiCall, message: &str, out: &mut Vec<u8>) {
        let input = match Raw::parse(&call.arguments) {
            Ok(json) => json.text().to_owned(),
            Err(_) => event::quoted(&call.arguments),
        };
        let step = UiStep::CallError {
            call: call.name(),
            input: &input,
            message,
        };
        self.step(&step, out);
    }

    fn source(&mut self, url: &str, title: &str, out: &mut Vec<u8>) {
        let id = &format!("source-{}", self.new_id());
        self.step(&UiStep::Source { id, url, title }, out);
    }
}
