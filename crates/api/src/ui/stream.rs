//! Events into the bytes of a stream for a user interface.
//!
//! Such a stream is a view of the lines of a session, and not the answer of an API: it shows each
//! turn and each call, whoever runs it, it may take back what it showed, and a person's questions
//! are part of it.

use crate::answer::details::{DetailMembers, details_for, image_for};
use crate::answer::failure::FailedAnswer;
use crate::answer::turn::choice::{CallVerdict, verdict};
use crate::api::Api;
use crate::ui::step::{UiAsk, UiCallName, UiEnd, UiFacts, UiResultFacts, UiStep, UiWriter};
use crate::ui::{UiFront, UiOptions};
use event::payload::{
    Approval, Cancel, ContentDelta, Details, Error, FinishReason, Message, RefusalDelta, Retract,
    ServerItem, SessionStats, Status, StreamEnd, StreamStart, Thinking, ToolCall, ToolCallDelta,
    ToolProgress, ToolResult, ToolUse, Verdict,
};
use event::{Event, Kind, Raw, Text};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// How often the parts of one turn are taken back and written again. A model that writes calls
/// which do not hold, one after the other, would else have its text sent as often as it does so.
const MOST_RESETS: usize = 16;

/// The code of an answer that ended without an end.
const CUT: &str = "stream_cut";

/// Writes the stream of one user interface. Feed it with [`UiStream::push`], then call
/// [`UiStream::finish`] once.
///
/// Nothing is written before the model's first content, so that a failure until then can still be
/// the status of the response.
pub struct UiStream {
    page: UiPage,
    turn: OpenTurn,
    /// The calls of the open turn, and those of earlier ones that have no result.
    calls: Vec<UiCall>,
    /// Whether the messages that come are those of a request.
    is_request: bool,
    /// Whether a turn has begun: a call that is not known by then is none of the client's.
    has_turn: bool,
    /// The calls of earlier answers that have their results: a log may have their progress behind
    /// them.
    ended: HashSet<String>,
    /// The calls of this turn that were taken back where the protocol has no form for that: it has
    /// none for another call under the same id either.
    taken_back: HashSet<String>,
    /// The API of the provider.
    api: String,
    facts: UiFacts,
    turn_usage: SessionStats,
    reason: Option<FinishReason>,
    failure: Option<FailedAnswer>,
    cancelled_by: Option<String>,
    /// How often a user has said something.
    said: usize,
    sources: usize,
    is_done: bool,
}

/// What steps are written to.
struct UiPage {
    writer: Box<dyn UiWriter>,
    options: UiOptions,
    has_begun: bool,
    /// How many parts with an id the stream has had.
    parts: usize,
}

/// The turn of the model that is shown.
#[derive(Debug, Default)]
struct OpenTurn {
    state: TurnState,
    /// Its beginning is written.
    has_begun: bool,
    /// The part that is open, and its id.
    open: Option<(PartKind, String)>,
    /// Its parts, where they may have to be written again.
    kept: Vec<KeptPart>,
    /// The bytes of these.
    size: usize,
    /// A part does not hold any more.
    needs_reset: bool,
    resets: usize,
    /// A call of it runs, or has run: its parts stay.
    is_fixed: bool,
    /// It has a call of the client's that was cut.
    has_cut: bool,
    /// The model has refused to answer.
    has_refused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnState {
    /// None has begun.
    #[default]
    None,
    /// The model writes.
    Open,
    /// The model has ended; its calls may run.
    Ended,
    /// The model's stream has failed.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Text,
    Thinking,
}

/// A part of the open turn.
#[derive(Clone, Debug)]
enum KeptPart {
    Text(PartKind, String, Option<String>),
    Call(String),
    /// A call that cannot run, and why.
    Error(UiCall, String),
    Source(String, String),
    File(String, String),
}

/// A call that has no result.
#[derive(Clone, Debug, Default)]
struct UiCall {
    id: String,
    name: String,
    /// What came of the arguments.
    arguments: String,
    provider: Option<String>,
    is_own: bool,
    /// Its beginning is written.
    has_begun: bool,
    /// It is complete.
    is_called: bool,
    /// It was started, or waits for a person: it cannot be taken back.
    is_started: bool,
    /// The question that waits.
    ask: Option<UiAsk>,
    /// The id of the last question, answered or not.
    asked: Option<String>,
    was_denied: bool,
}

impl UiCall {
    fn name(&self) -> UiCallName<'_> {
        UiCallName {
            id: &self.id,
            name: &self.name,
            is_own: self.is_own,
        }
    }

    fn kept(&self) -> usize {
        let provider = self.provider.as_ref().map_or(0, String::len);
        size_of::<UiCall>() + self.id.len() + self.name.len() + self.arguments.len() + provider
    }
}

impl UiStream {
    /// A stream that has not begun.
    pub fn new(front: UiFront, options: UiOptions) -> UiStream {
        UiStream {
            page: UiPage {
                writer: (front.row().writer)(&options),
                options,
                has_begun: false,
                parts: 0,
            },
            turn: OpenTurn::default(),
            calls: Vec::new(),
            is_request: true,
            has_turn: false,
            ended: HashSet::new(),
            taken_back: HashSet::new(),
            api: String::new(),
            facts: UiFacts::default(),
            turn_usage: SessionStats::default(),
            reason: None,
            failure: None,
            cancelled_by: None,
            said: 0,
            sources: 0,
            is_done: false,
        }
    }

    /// Whether the stream has begun: a failure is reported inside it.
    pub fn has_begun(&self) -> bool {
        self.page.has_begun
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
        self.turn.size + self.calls.iter().map(UiCall::kept).sum::<usize>()
    }

    /// Begins the stream before the model's first content. It does nothing in a stream that has
    /// begun.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.page.begin(out);
    }

    /// Appends what keeps the connection alive, after what opens the stream if it has not begun.
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
            Kind::Thinking => {
                let delta = Thinking::read(event);
                self.text(PartKind::Thinking, &delta.text.str(), out);
                if let Some(provider) = delta.provider {
                    self.signed(&provider.text(), out);
                }
            }
            Kind::ContentDelta => {
                let delta = ContentDelta::read(event);
                self.text(PartKind::Text, &delta.text.str(), out);
            }
            Kind::RefusalDelta => {
                let delta = RefusalDelta::read(event);
                self.turn.has_refused = true;
                self.text(PartKind::Text, &delta.text.str(), out);
            }
            Kind::ToolCallDelta => self.delta(&ToolCallDelta::read(event), out),
            Kind::ToolCall => self.call(&ToolCall::read(event), out),
            Kind::ToolUse => {
                let id = ToolUse::read(event).tool_id.str();
                if let Some(call) = self.find(&id) {
                    call.is_started = true;
                    self.turn.is_fixed = true;
                }
            }
            Kind::ToolProgress => self.progress(&ToolProgress::read(event), out),
            Kind::ToolResult => self.result(&ToolResult::read(event), out),
            Kind::Approval => self.approval(&Approval::read(event), out),
            Kind::Retract => self.retract(&Retract::read(event), out),
            Kind::Message => self.message(&Message::read(event), out),
            Kind::Details => self.details(&Details::read(event), out),
            Kind::ServerItem => self.server_item(&ServerItem::read(event), out),
            Kind::SessionStats => {
                let stats = SessionStats::read(event);
                let turn = &mut self.turn_usage;
                turn.each_count(&stats, |count, more| *count = more.or(*count));
            }
            Kind::Error => {
                let failure = FailedAnswer::of_event(&Error::read(event), &self.api);
                self.failure.get_or_insert(failure);
            }
            Kind::Cancel => {
                let cancel = Cancel::read(event);
                if cancel.tool_id.is_none() {
                    self.cancelled_by = Some(cancel.by.str().into_owned());
                }
            }
            Kind::StreamEnd => self.turn_end(StreamEnd::read(event).finish_reason, out),
            _ => {}
        }
    }

    /// Handles the end of the events, and appends the rest. An answer that failed before anything of
    /// it was sent writes nothing, see [`UiStream::failure`].
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        let is_cancelled = self.reason == Some(FinishReason::Cancelled);
        // An answer that only decides calls has no stream of a model.
        let is_cut = match self.reason {
            Some(FinishReason::Cut) => true,
            None => self.has_turn || !self.page.options.continues,
            Some(_) => self.turn.state == TurnState::Open,
        };
        if is_cut && !is_cancelled {
            let message = "the answer was cut: its connection ended before it did";
            self.failure
                .get_or_insert_with(|| FailedAnswer::new(CUT, message));
        }
        if is_cancelled {
            self.failure = None;
        } else if self.failure.is_some() && !self.page.has_begun {
            return;
        }
        self.page.begin(out);
        self.settle(out);
        self.close(out);
        self.end_calls(is_cancelled, out);
        let (has_cut, has_refused) = (self.turn.has_cut, self.turn.has_refused);
        self.end_turn(out);
        self.count();
        let UiStream {
            page,
            calls,
            facts,
            failure,
            ..
        } = self;
        page.step(&UiStep::Facts(facts), out);
        if is_cancelled {
            let by = self.cancelled_by.as_deref().unwrap_or_default();
            page.step(&UiStep::Abort { by }, out);
        } else {
            if let Some(failure) = failure {
                let (code, message) = (&failure.code, &failure.message);
                page.step(&UiStep::Error { code, message }, out);
            }
            let asked: Vec<_> = calls
                .iter()
                .filter_map(|call| Some((call.name(), call.ask.as_ref()?)))
                .collect();
            let clients = calls.iter().filter(|call| !call.is_own);
            let clients: Vec<&str> = clients.map(|call| &*call.id).collect();
            let waits = !asked.is_empty() || !clients.is_empty();
            let reason = match self.reason {
                _ if failure.is_some() => UiEnd::Error,
                Some(FinishReason::Length) => UiEnd::Length,
                Some(FinishReason::ContentFilter) => UiEnd::Filter,
                // As the answers of the APIs have it (`answer/turn/choice.rs`).
                _ if has_cut => UiEnd::Length,
                _ if waits => UiEnd::Calls,
                _ if has_refused => UiEnd::Filter,
                // The calls of the last turn have their results.
                _ => UiEnd::Stop,
            };
            let finish = UiStep::Finish {
                reason,
                asked: &asked,
                clients: &clients,
            };
            page.step(&finish, out);
        }
        page.step(&UiStep::Done, out);
        self.calls = Vec::new();
        self.turn = OpenTurn::default();
    }

    /// A turn of the model begins. What a turn that failed, or is asked again, has shown is taken
    /// back.
    fn turn_start(&mut self, start: &StreamStart<'_>, out: &mut Vec<u8>) {
        (self.is_request, self.has_turn) = (false, true);
        match self.turn.state {
            TurnState::Open | TurnState::Failed => self.take_back_all(out),
            TurnState::Ended => self.end_turn(out),
            TurnState::None => {}
        }
        self.failure = None;
        self.reason = None;
        self.taken_back.clear();
        self.count();
        self.turn.state = TurnState::Open;
        self.api = start.api.map(Text::str).unwrap_or_default().into_owned();
        if let Some(model) = start.model {
            self.facts.model = model.str().into_owned();
        }
    }

    fn turn_end(&mut self, reason: FinishReason, out: &mut Vec<u8>) {
        self.reason = Some(reason);
        if self.turn.state != TurnState::Open {
            // Behind a turn that has ended an error ends the whole answer.
            return;
        }
        if reason.is_failure() {
            self.turn.state = TurnState::Failed;
            return;
        }
        self.turn.state = TurnState::Ended;
        if self.turn.has_begun {
            self.settle(out);
            self.close(out);
        }
        // Nothing of the turn is taken back from now on.
        self.turn.kept = Vec::new();
        self.turn.size = 0;
    }

    /// Ends the turn that is shown.
    fn end_turn(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.turn.has_begun) {
            self.page.step(&UiStep::TurnEnd, out);
        }
        self.turn = OpenTurn::default();
    }

    /// Adds the tokens of the turn.
    fn count(&mut self) {
        let turn = std::mem::take(&mut self.turn_usage);
        self.facts.usage.each_count(&turn, |sum, more| {
            *sum = sum
                .zip(more)
                .map(|(a, b)| a.saturating_add(b))
                .or(*sum)
                .or(more);
        });
    }

    /// The parts of the turn do not hold: all of them are taken back.
    fn take_back_all(&mut self, out: &mut Vec<u8>) {
        let has_parts = self.turn.has_begun;
        let resets = self.page.writer.resets();
        if has_parts && resets {
            self.page.step(&UiStep::Reset, out);
            self.calls.retain(|call| call.ask.is_some());
        } else if has_parts {
            self.close(out);
            self.end_calls(true, out);
            self.page.step(&UiStep::TakenBack, out);
            self.page.step(&UiStep::TurnEnd, out);
        }
        self.turn = OpenTurn {
            has_begun: has_parts && resets,
            ..OpenTurn::default()
        };
    }

    /// Begins the turn that is shown, and takes back what does not hold any more.
    fn ready(&mut self, out: &mut Vec<u8>) {
        self.page.begin(out);
        if !std::mem::replace(&mut self.turn.has_begun, true) {
            self.page.step(&UiStep::TurnStart, out);
        }
        self.settle(out);
    }

    /// Takes back what does not hold any more: the whole turn is, and then its other parts are
    /// written again.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.turn.needs_reset) {
            return;
        }
        self.turn.resets += 1;
        self.turn.open = None;
        self.page.step(&UiStep::Reset, out);
        let kept = std::mem::take(&mut self.turn.kept);
        for part in &kept {
            match part {
                KeptPart::Text(kind, text, provider) => {
                    let id = self.page.new_id();
                    self.page.write_text(*kind, &id, text, out);
                    self.page.end_text(*kind, &id, provider.as_deref(), out);
                }
                KeptPart::Call(id) => {
                    let found = self.calls.iter().find(|call| call.id == *id);
                    if let Some(call) = found {
                        self.page.write_call(call, out);
                    }
                }
                KeptPart::Error(call, message) => {
                    self.page
                        .step(&UiStep::CallStart { call: call.name() }, out);
                    self.page.call_error(call, message, out);
                }
                KeptPart::Source(url, title) => {
                    self.sources += 1;
                    self.page.source(self.sources, url, title, out);
                }
                KeptPart::File(url, media_type) => {
                    self.page.step(&UiStep::File { url, media_type }, out);
                }
            }
        }
        self.turn.kept = kept;
    }

    /// Keeps a part that may have to be written again.
    fn keep(&mut self, part: KeptPart) {
        if self.page.writer.resets() && self.turn.state == TurnState::Open {
            self.turn.size += size_of::<KeptPart>()
                + match &part {
                    KeptPart::Text(_, text, provider) => {
                        text.len() + provider.as_ref().map_or(0, String::len)
                    }
                    KeptPart::Call(id) => id.len(),
                    KeptPart::Error(call, message) => call.kept() + message.len(),
                    KeptPart::Source(a, b) | KeptPart::File(a, b) => a.len() + b.len(),
                };
            self.turn.kept.push(part);
        }
    }

    /// Ends the text or the reasoning that is open.
    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some((kind, id)) = self.turn.open.take() {
            self.page.end_text(kind, &id, None, out);
        }
    }

    /// A piece of text or of reasoning.
    fn text(&mut self, kind: PartKind, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        self.ready(out);
        let id = match self.turn.open.take() {
            Some((open, id)) if open == kind => {
                if let Some(KeptPart::Text(_, kept, _)) = self.turn.kept.last_mut() {
                    kept.push_str(text);
                    self.turn.size += text.len();
                }
                self.page.add_text(kind, &id, text, out);
                id
            }
            other => {
                self.turn.open = other;
                self.close(out);
                let id = self.page.new_id();
                self.keep(KeptPart::Text(kind, text.to_owned(), None));
                self.page.write_text(kind, &id, text, out);
                id
            }
        };
        self.turn.open = Some((kind, id));
    }

    /// Reasoning ends with what its provider wants back.
    fn signed(&mut self, provider: &str, out: &mut Vec<u8>) {
        self.ready(out);
        let id = match self.turn.open.take() {
            Some((PartKind::Thinking, id)) => id,
            other => {
                self.turn.open = other;
                self.close(out);
                let id = self.page.new_id();
                self.keep(KeptPart::Text(PartKind::Thinking, String::new(), None));
                self.page.write_text(PartKind::Thinking, &id, "", out);
                id
            }
        };
        if let Some(KeptPart::Text(_, _, kept)) = self.turn.kept.last_mut() {
            *kept = Some(provider.to_owned());
            self.turn.size += provider.len();
        }
        self.page
            .end_text(PartKind::Thinking, &id, Some(provider), out);
    }

    fn find(&mut self, id: &str) -> Option<&mut UiCall> {
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }

    /// Takes out a call that has ended.
    fn take(&mut self, id: &str) -> Option<UiCall> {
        let at = self.calls.iter().rposition(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    /// The call `id`, which begins if it is not there.
    fn of(&mut self, id: &str, out: &mut Vec<u8>) -> &mut UiCall {
        let at = self.calls.iter().rposition(|call| call.id == id);
        let at = at.unwrap_or_else(|| {
            self.ready(out);
            self.close(out);
            if self.taken_back.contains(id) {
                let message =
                    format!("the provider withdrew a call and began it again under the id {id}");
                self.failure
                    .get_or_insert_with(|| FailedAnswer::new("upstream_error", &message));
            }
            self.calls.push(UiCall {
                id: id.to_owned(),
                ..UiCall::default()
            });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    fn delta(&mut self, delta: &ToolCallDelta<'_>, out: &mut Vec<u8>) {
        let Some(id) = delta.tool_id.map(Text::str).filter(|id| !id.is_empty()) else {
            return;
        };
        let mut piece = String::new();
        delta.arguments.unwrap_or_default().append_to(&mut piece);
        if self.of(&id, out).is_called {
            return;
        }
        // What is taken back is written again without this piece.
        self.settle(out);
        let Some(call) = self.find(&id) else {
            return;
        };
        call.arguments.push_str(&piece);
        let name = delta.tool_name.map(Text::str).unwrap_or_default();
        if call.has_begun {
            if !piece.is_empty() {
                let (id, piece) = (&*id, &*piece);
                self.page.step(&UiStep::CallDelta { id, piece }, out);
            }
        } else if !name.is_empty() {
            // What came before the name goes with it.
            self.call_start(&id, &name, out);
        }
    }

    /// The name of a call is known.
    fn call_start(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.ready(out);
        self.close(out);
        let is_own = self.page.options.is_own(name);
        if let Some(call) = self.find(id) {
            name.clone_into(&mut call.name);
            (call.has_begun, call.is_own) = (true, is_own);
        }
        self.keep(KeptPart::Call(id.to_owned()));
        if let Some(call) = self.calls.iter().rev().find(|call| call.id == id) {
            self.page.write_call(call, out);
        }
    }

    fn call(&mut self, event: &ToolCall<'_>, out: &mut Vec<u8>) {
        let (id, name) = (event.tool_id.str(), event.tool_name.str());
        if self.of(&id, out).is_called {
            return;
        }
        self.ready(out);
        self.close(out);
        let is_own = self.page.options.is_own(&name);
        let is_new = self.find(&id).is_some_and(|call| !call.has_begun);
        if is_new {
            self.keep(KeptPart::Call(id.clone().into_owned()));
        }
        let resets = self.page.writer.resets();
        // Not `find`: the failure of the answer is set beside the call.
        let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == id) else {
            return;
        };
        call.name = name.clone().into_owned();
        (call.has_begun, call.is_own) = (true, is_own);
        // The service answers a call that does not fit its schema; a client judges it by itself.
        let mut verdict = match event.error {
            Some(error) if is_own => CallVerdict::Unusable(error.message.str().into_owned()),
            _ => verdict(event),
        };
        if let CallVerdict::Arguments(arguments) = &verdict
            && !resets
            && !is_new
            && !is_own
            && !holds(&call.arguments, arguments)
        {
            let message = format!("the call {name} ended with other arguments than it began with");
            self.failure
                .get_or_insert_with(|| FailedAnswer::new("upstream_error", &message));
            verdict = CallVerdict::Unusable(message);
        }
        match verdict {
            CallVerdict::Arguments(arguments) => {
                let before = std::mem::replace(&mut call.arguments, arguments);
                call.is_called = true;
                call.provider = event.provider.map(|json| json.text().into_owned());
                let call = call.clone();
                let rest = match is_new {
                    true => Some(&*call.arguments),
                    false => call.arguments.strip_prefix(before.as_str()),
                };
                let end = UiStep::CallEnd {
                    call: call.name(),
                    arguments: &call.arguments,
                    rest: rest.unwrap_or_default(),
                    provider: call.provider.as_deref(),
                };
                if is_new {
                    self.page
                        .step(&UiStep::CallStart { call: call.name() }, out);
                }
                self.page.step(&end, out);
            }
            unfit => {
                if let Some(text) = event.arguments_text {
                    call.arguments = text.str().into_owned();
                }
                let is_blank = call.arguments.is_empty();
                let message = match unfit {
                    CallVerdict::Unusable(message) => message,
                    _ => "the call was cut".to_owned(),
                };
                self.turn.has_cut |= !is_own && !name.is_empty();
                if name.is_empty() && !is_blank && !is_own {
                    self.failure
                        .get_or_insert_with(|| FailedAnswer::new("upstream_error", &message));
                }
                self.call_error(&id, is_new, &message, out);
            }
        }
    }

    /// A call cannot run. It is shown, and no result of it.
    fn call_error(&mut self, id: &str, is_new: bool, message: &str, out: &mut Vec<u8>) {
        let Some(call) = self.take(id) else {
            return;
        };
        if is_new && !call.name.is_empty() {
            self.page
                .step(&UiStep::CallStart { call: call.name() }, out);
        }
        if !call.has_begun || call.name.is_empty() {
            return;
        }
        self.page.call_error(&call, message, out);
        self.forget(id);
        self.keep(KeptPart::Error(call, message.to_owned()));
    }

    /// A call is not kept any more.
    fn forget(&mut self, id: &str) {
        let is_other = |part: &KeptPart| !matches!(part, KeptPart::Call(other) if *other == id);
        self.turn.kept.retain(is_other);
    }

    fn progress(&mut self, event: &ToolProgress<'_>, out: &mut Vec<u8>) {
        let id = event.tool_id.str();
        if self.known(&id) {
            self.on_call(out);
            let progress = event.progress.filter(|progress| progress.is_finite());
            let progress = progress.map(|progress| progress.to_string());
            let step = UiStep::Progress {
                id: &id,
                progress: progress.as_deref(),
                text: &event.text.str(),
            };
            self.page.step(&step, out);
        }
    }

    /// Whether the client has the call of a result.
    fn known(&mut self, id: &str) -> bool {
        let found = self.find(id).map(|call| {
            call.is_started = true;
            call.has_begun
        });
        self.turn.is_fixed |= found.is_some();
        // The client may have it from an earlier answer.
        found.unwrap_or(self.page.options.continues && !self.has_turn && !self.ended.contains(id))
    }

    /// Something is written about a call that the client has.
    fn on_call(&mut self, out: &mut Vec<u8>) {
        self.page.begin(out);
        self.settle(out);
    }

    fn result(&mut self, event: &ToolResult<'_>, out: &mut Vec<u8>) {
        let id = event.tool_id.str();
        if !self.known(&id) {
            return;
        }
        if event.status == Status::Pending.name() {
            let hash = event.hash.map(Text::str).unwrap_or_default();
            // Behind the reason are the commands of a terminal.
            let summary = event.output_summary.str();
            let reason = summary.split(" It waits for a person").next();
            let ask = UiAsk {
                id: format!("{id}:{hash}"),
                reason: reason.unwrap_or_default().to_owned(),
            };
            return self.ask(&id, &event.tool_name.str(), ask, out);
        }
        self.on_call(out);
        let call = self.take(&id);
        if !self.has_turn {
            self.ended.insert(id.clone().into_owned());
        }
        let status = event.status.str();
        let duration = event.duration_ms.map(|ms| ms.to_string());
        let facts = &UiResultFacts {
            status: &status,
            duration_ms: duration.as_deref(),
            is_cached: event.cached,
        };
        let (id, output) = (&*id, &*event.output.str());
        let was_denied = call.is_some_and(|call| call.was_denied);
        let is_success = status == Status::Success.name();
        let step = match is_success {
            true => UiStep::Output { id, output, facts },
            false if was_denied && status == Status::Denied.name() => UiStep::Denied {
                id,
                message: output,
                facts,
            },
            false => UiStep::Failed {
                id,
                message: output,
                facts,
            },
        };
        self.page.step(&step, out);
        if is_success && event.return_directly {
            self.text(PartKind::Text, output, out);
            self.close(out);
        }
    }

    /// A call waits for a person.
    fn ask(&mut self, id: &str, name: &str, ask: UiAsk, out: &mut Vec<u8>) {
        self.on_call(out);
        if self.find(id).is_none() {
            let is_own = self.page.options.is_own(name);
            self.calls.push(UiCall {
                id: id.to_owned(),
                name: name.to_owned(),
                is_own,
                has_begun: true,
                is_called: true,
                is_started: true,
                ..UiCall::default()
            });
        }
        let Some(call) = self.find(id) else {
            return;
        };
        let is_repeated = call.ask.as_ref().is_some_and(|known| known.id == ask.id);
        call.asked = Some(ask.id.clone());
        call.ask = Some(ask.clone());
        if !is_repeated {
            self.page.step(&UiStep::Asked { id, ask: &ask }, out);
        }
    }

    fn approval(&mut self, event: &Approval<'_>, out: &mut Vec<u8>) {
        let (id, hash) = (event.tool_id.str(), event.hash.str());
        let ask = format!("{id}:{hash}");
        let is_approved = match &*event.decision.str() {
            word if word == Verdict::Approved.name() => true,
            word if word == Verdict::Denied.name() => false,
            // A person gave the result, which comes.
            _ => return,
        };
        let continues = self.page.options.continues && !self.has_turn && event.source != "policy";
        match self.find(&id) {
            Some(call) if call.asked.as_deref() == Some(&ask) => {
                call.ask = None;
                call.was_denied = !is_approved;
            }
            // An earlier answer has asked.
            None if continues => {
                let is_own = true;
                self.calls.push(UiCall {
                    id: id.clone().into_owned(),
                    name: event.tool_name.str().into_owned(),
                    has_begun: true,
                    is_called: true,
                    is_started: true,
                    was_denied: !is_approved,
                    asked: Some(ask.clone()),
                    is_own,
                    ..UiCall::default()
                });
            }
            // Nobody was asked: a rule has decided.
            _ => return,
        }
        self.on_call(out);
        let step = UiStep::Answered {
            id: &id,
            ask: &ask,
            is_approved,
        };
        self.page.step(&step, out);
    }

    /// A call does not hold. It is taken back with the whole turn, unless something of the turn
    /// cannot be: then it ends as failed.
    fn retract(&mut self, event: &Retract<'_>, out: &mut Vec<u8>) {
        let Some(id) = event.tool_id.map(Text::str) else {
            return;
        };
        let may_reset = self.page.writer.resets()
            && self.turn.state == TurnState::Open
            && self.turn.resets < MOST_RESETS
            && !self.turn.is_fixed;
        match self.find(&id) {
            // Its result comes.
            None => {}
            Some(call) if call.is_started => {}
            Some(_) if may_reset => {
                let has_begun = self.take(&id).is_some_and(|call| call.has_begun);
                self.turn.needs_reset |= has_begun;
                self.forget(&id);
            }
            Some(call) => {
                if call.has_begun && !self.page.writer.resets() {
                    self.taken_back.insert(id.clone().into_owned());
                }
                self.on_call(out);
                self.end_call(&id, "the call was taken back", out);
            }
        }
    }

    /// Ends a call that gets no result.
    fn end_call(&mut self, id: &str, why: &str, out: &mut Vec<u8>) {
        let Some(call) = self.take(id).filter(|call| call.has_begun) else {
            return;
        };
        if call.is_called {
            let facts = &UiResultFacts {
                status: Status::Cancelled.name(),
                ..UiResultFacts::default()
            };
            let failed = UiStep::Failed {
                id,
                message: why,
                facts,
            };
            self.page.step(&failed, out);
        } else {
            self.page.call_error(&call, why, out);
        }
    }

    /// Ends the calls that get no result. Calls that wait for a person stay, and those of the client,
    /// unless nothing of the turn holds.
    fn end_calls(&mut self, is_over: bool, out: &mut Vec<u8>) {
        let has_failed = self.failure.is_some();
        let stays = |call: &UiCall| {
            call.is_called && !is_over && !has_failed && (call.ask.is_some() || !call.is_own)
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
        if let Some(text) = text {
            self.page.begin(out);
            self.close(out);
            self.end_turn(out);
            self.said += 1;
            let id = format!("said-{}", self.said);
            self.page.step(
                &UiStep::Said {
                    id: &id,
                    text: &text,
                },
                out,
            );
        }
    }

    /// Sources and images of a provider, which come as the members that chat completions have for
    /// them.
    fn details(&mut self, event: &Details<'_>, out: &mut Vec<u8>) {
        let found = details_for(&self.api, Api::OpenaiChat.name(), event, &mut |_| {});
        for (_, members) in found {
            self.members(&members, out);
        }
    }

    fn server_item(&mut self, event: &ServerItem<'_>, out: &mut Vec<u8>) {
        let (kind, data) = (event.kind.str(), event.data.text());
        if let Some((_, members)) = image_for(&self.api, Api::OpenaiChat.name(), &kind, &data) {
            self.members(&members, out);
        }
    }

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
                self.sources += 1;
                self.page.source(self.sources, &url, &title, out);
                self.keep(KeptPart::Source(url, title));
                self.split_kept();
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
                self.close(out);
                let step = UiStep::File {
                    url: &url,
                    media_type: &media_type,
                };
                self.page.step(&step, out);
                self.keep(KeptPart::File(url, media_type));
            }
        }
    }

    /// A source stands in the middle of a text, whose next piece goes on with the text: the two
    /// change places among what is kept.
    fn split_kept(&mut self) {
        if self.turn.open.is_some()
            && let [.., KeptPart::Text(..), _] = &self.turn.kept[..]
        {
            let last = self.turn.kept.len() - 1;
            self.turn.kept.swap(last - 1, last);
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

/// Whether arguments whose beginning was shown end as these.
fn holds(shown: &str, arguments: &str) -> bool {
    let minified = |json: &str| {
        let mut out = Vec::new();
        event::minify(&mut out, json);
        out
    };
    arguments.starts_with(shown)
        || (Raw::parse(shown).is_ok() && minified(shown) == minified(arguments))
}

impl UiPage {
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
        self.parts += 1;
        self.parts.to_string()
    }

    fn write_text(&mut self, kind: PartKind, id: &str, text: &str, out: &mut Vec<u8>) {
        let start = match kind {
            PartKind::Text => UiStep::TextStart { id },
            PartKind::Thinking => UiStep::ThinkingStart { id },
        };
        self.step(&start, out);
        if !text.is_empty() {
            self.add_text(kind, id, text, out);
        }
    }

    fn add_text(&mut self, kind: PartKind, id: &str, text: &str, out: &mut Vec<u8>) {
        let delta = match kind {
            PartKind::Text => UiStep::TextDelta { id, text },
            PartKind::Thinking => UiStep::ThinkingDelta { id, text },
        };
        self.step(&delta, out);
    }

    fn end_text(&mut self, kind: PartKind, id: &str, provider: Option<&str>, out: &mut Vec<u8>) {
        let end = match kind {
            PartKind::Text => UiStep::TextEnd { id },
            PartKind::Thinking => UiStep::ThinkingEnd { id, provider },
        };
        self.step(&end, out);
    }

    /// A call that has begun, as far as it has come.
    fn write_call(&mut self, call: &UiCall, out: &mut Vec<u8>) {
        self.step(&UiStep::CallStart { call: call.name() }, out);
        let (id, arguments) = (&*call.id, &*call.arguments);
        if call.is_called {
            let end = UiStep::CallEnd {
                call: call.name(),
                arguments,
                rest: arguments,
                provider: call.provider.as_deref(),
            };
            self.step(&end, out);
        } else if !arguments.is_empty() {
            let piece = arguments;
            self.step(&UiStep::CallDelta { id, piece }, out);
        }
    }

    /// A call that cannot run.
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

    fn source(&mut self, number: usize, url: &str, title: &str, out: &mut Vec<u8>) {
        let id = &format!("source-{number}");
        self.step(&UiStep::Source { id, url, title }, out);
    }
}
