//! Converts the events of one choice to steps, in an order that every front can write.

use crate::answer::details::{DetailMembers, DetailsPlace};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{CallStep, CallStepKind, Dropped, Step, TextKind};
use crate::members::minified;
use event::payload::{FinishReason, ToolCall, ToolCallDelta};
use event::{Raw, Surrogates, Text};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Why the response must fail although the upstream continues.
#[derive(Debug)]
pub(crate) enum AnswerTrouble {
    /// A call was withdrawn after some of its bytes were sent.
    Withdrawn(String),
    /// A call's final name or arguments contradict the bytes already sent.
    Changed(String),
    /// A call has a form that no client can use.
    Unusable(String),
}

impl AnswerTrouble {
    /// Returns the failure to report.
    pub(crate) fn failure(&self) -> FailedAnswer {
        match self {
            AnswerTrouble::Withdrawn(name) => FailedAnswer::new(
                "call_withdrawn",
                &format!("the upstream withdrew a call of {name} after a part of it was sent"),
            ),
            AnswerTrouble::Changed(name) => FailedAnswer::new(
                "call_changed",
                &format!(
                    "the upstream's call of {name} ended with other arguments than it began with"
                ),
            ),
            AnswerTrouble::Unusable(message) => FailedAnswer::new("call_unusable", message),
        }
    }
}

/// An item that waits for the call before it.
#[derive(Debug)]
enum WaitingItem {
    /// Content other than a call.
    Block(Step<'static>),
    Call(HeldCall),
    /// A placeholder for a call that has not arrived, although one with a higher index has.
    Awaited,
    /// A withdrawn call.
    Nothing,
}

impl WaitingItem {
    /// Whether this is a call whose arguments have definite bytes.
    fn is_certain(&self) -> bool {
        matches!(self, WaitingItem::Call(call) if !call.arguments.is_empty())
    }
}

/// The limit up to which calls are sorted by index. A higher index is treated as an arbitrary
/// label.
const MOST_INDEXES: usize = 1024;

/// The state of one choice.
#[derive(Debug, Default)]
pub(crate) struct ChoiceSteps {
    has_begun: bool,
    /// Whether all content waits for the end.
    waits: bool,
    /// The waiting items: an incomplete call, and everything that came after it.
    queue: VecDeque<WaitingItem>,
    /// The number of complete calls.
    complete: usize,
    /// The number of items removed from the queue.
    left: usize,
    /// The number of calls truncated before any part of them was sent.
    unsent: u64,
    /// The number of calls and texts that came after a truncated call.
    behind_cut: u64,
    /// The position of each call, counted from the first item ever queued. It avoids a search in a
    /// long queue.
    places: HashMap<Box<str>, usize>,
    /// The position of each [`WaitingItem::Awaited`], by call index.
    awaited: HashMap<usize, usize>,
    /// One more than the highest index so far.
    indexes: usize,
    /// Whether the queue contains a call in the state [`ChoiceCallState::Whole`].
    has_whole: bool,
    /// A pending half of a surrogate pair for each [`TextKind`].
    halves: [Surrogates; 3],
    scratch: String,
}

type Fed = Result<(), AnswerTrouble>;

impl ChoiceSteps {
    /// Adds the content of an ended choice that was not sent to `dropped`.
    pub(super) fn left_out(&self, dropped: &mut Dropped) {
        dropped.cut_calls += self.unsent;
        dropped.behind_cut += self.behind_cut;
    }

    /// Whether `Begin` was emitted.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Creates a choice. `waits` delays all steps until its end.
    pub(super) fn new(waits: bool) -> ChoiceSteps {
        ChoiceSteps {
            waits,
            ..ChoiceSteps::default()
        }
    }

    /// Emits `Begin` if it was not emitted before.
    pub(super) fn begin(&mut self, out: &mut StepEmitter<'_, '_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.emit(&Step::Begin);
        }
    }

    /// Processes a piece of text, and the data that must be sent back to the provider with it.
    pub(super) fn piece(
        &mut self,
        kind: TextKind,
        text: Text<'_>,
        provider: Option<&str>,
        out: &mut StepEmitter<'_, '_>,
    ) -> Fed {
        let mut piece = std::mem::take(&mut self.scratch);
        self.halves[kind as usize].push_text(text, &mut piece);
        let step = Step::piece(kind, &piece, provider);
        let fed = step.map_or(Ok(()), |step| self.say(&step, out));
        piece.clear();
        self.scratch = piece;
        fed
    }

    /// Emits or queues a piece of text, or a step of a call that the service runs.
    pub(super) fn say(&mut self, step: &Step<'_>, out: &mut StepEmitter<'_, '_>) -> Fed {
        let is_blank = matches!(
            step,
            Step::Text { kind: TextKind::Answer, text, .. } if text.trim_ascii().is_empty()
        );
        if !is_blank {
            self.release(out)?;
        }
        let last = self.queue.back_mut();
        if last.is_none() && !self.waits {
            self.begin(out);
            out.emit(step);
        } else if let Some(WaitingItem::Block(block)) = last
            && block.join(step)
        {
            // The step was appended to the block.
        } else if !matches!(step, Step::Call(call) if call.kind == CallStepKind::Arguments) {
            // The complete call repeats the pieces of a service call's arguments.
            self.hold(WaitingItem::Block(step.to_kept()));
        }
        Ok(())
    }

    /// Processes members of the preceding text, or an item from the provider.
    pub(super) fn details(
        &mut self,
        place: DetailsPlace,
        members: DetailMembers,
        out: &mut StepEmitter<'_, '_>,
    ) -> Fed {
        if place == DetailsPlace::Item {
            self.release(out)?;
        }
        let step = Step::Details(place, Cow::Owned(members));
        if !self.queue.is_empty() || self.waits {
            self.hold(WaitingItem::Block(step));
        } else if place == DetailsPlace::Item {
            self.begin(out);
            out.emit(&step);
        } else {
            // These members do not start the response, so that a failure can still become the HTTP
            // status.
            (out.take)(out.model, out.number, &step);
        }
        Ok(())
    }

    /// Processes the next definite bytes of a call's arguments.
    pub(super) fn delta(
        &mut self,
        delta: &ToolCallDelta<'_>,
        out: &mut StepEmitter<'_, '_>,
    ) -> Fed {
        let Some(id) = delta.tool_id.map(Text::str).filter(|id| !self.has_left(id)) else {
            return Ok(());
        };
        self.release(out)?;
        self.with_call(&id, delta.index, ChoiceCallState::Open, |call| {
            if let Some(name) = delta.tool_name.filter(|_| call.name.is_empty()) {
                call.name = name.str().into_owned();
            }
            if let Some(provider) = delta.provider {
                call.provider = Some(provider.text().into_owned());
            }
            if call.state == ChoiceCallState::Open {
                delta
                    .arguments
                    .unwrap_or_default()
                    .append_to(&mut call.arguments);
            }
            Ok(())
        })?;
        self.drain(out)
    }

    /// Processes a call whose arguments have ended.
    pub(super) fn call(&mut self, event: &ToolCall<'_>, out: &mut StepEmitter<'_, '_>) -> Fed {
        let mut id = event.tool_id.str();
        if id.is_empty() {
            id = format!("call_{}", self.places.len()).into();
        }
        let is_blank = event.error.is_some_and(|error| error.code == "no_name")
            && event.arguments_text.is_none_or(Text::is_empty);
        if self.has_left(&id) {
            return Ok(());
        }
        if is_blank {
            return self.pass_over(event.index, out);
        }
        self.with_call(&id, event.index, ChoiceCallState::Whole, |call| {
            call.take(event).map_err(|unfit| match unfit {
                UnfitCall::Changed => AnswerTrouble::Changed(call.name.clone()),
                UnfitCall::Unusable(message) => AnswerTrouble::Unusable(message),
            })
        })?;
        self.drain(out)
    }

    /// Marks the index of a call that the client does not get, so that nothing waits for it.
    pub(super) fn pass_over(&mut self, index: Option<i64>, out: &mut StepEmitter<'_, '_>) -> Fed {
        if let Some(place) = self.place_of(index) {
            self.queue[place - self.left] = WaitingItem::Nothing;
        }
        self.drain(out)
    }

    /// Stops waiting for calls that have not arrived.
    pub(super) fn give_up(&mut self, out: &mut StepEmitter<'_, '_>) -> Fed {
        for place in std::mem::take(&mut self.awaited).into_values() {
            self.queue[place - self.left] = WaitingItem::Nothing;
        }
        self.drain(out)
    }

    /// Retracts a call.
    pub(super) fn retract(&mut self, id: &str, out: &mut StepEmitter<'_, '_>) -> Fed {
        if self.has_left(id) {
            return Err(AnswerTrouble::Withdrawn("a tool".to_owned()));
        }
        let Some(place) = self.places.get(id).map(|place| place - self.left) else {
            return Ok(());
        };
        if let Some(WaitingItem::Call(call)) = self.queue.get(place)
            && call.has_begun
        {
            return Err(AnswerTrouble::Withdrawn(call.name.clone()));
        }
        self.queue[place] = WaitingItem::Nothing;
        self.places.remove(id);
        self.drain(out)
    }

    /// Ends the choice. `reason` is the upstream's finish reason and `provider` its own name for
    /// it.
    ///
    /// A truncated call is left open and must be the last item, because a client would otherwise
    /// take it for a complete call. So the response ends at the first truncated call with definite
    /// bytes. Truncated calls without such bytes are dropped. The finish reason says that content
    /// is missing.
    pub(super) fn end(
        &mut self,
        reason: FinishReason,
        provider: Option<&str>,
        out: &mut StepEmitter<'_, '_>,
    ) -> Fed {
        let mut rest = String::new();
        self.halves[TextKind::Answer as usize].finish(&mut rest);
        if let Some(step) = Step::piece(TextKind::Answer, &rest, None) {
            self.say(&step, out)?;
        }
        self.waits = false;
        self.give_up(out)?;
        self.release(out)?;
        let mut is_cut = false;
        // The first item can only be a call that is open or was truncated.
        while !self.queue.is_empty() {
            is_cut = true;
            self.begin(out);
            if let Some(WaitingItem::Call(call)) =
                self.queue.front_mut().filter(|item| item.is_certain())
            {
                call.send(out);
                let behind = self
                    .queue
                    .drain(..)
                    .skip(1)
                    .filter(|item| !matches!(item, WaitingItem::Block(Step::Details(..))));
                self.behind_cut += behind
                    .filter(|item| !matches!(item, WaitingItem::Nothing))
                    .count() as u64;
            } else {
                self.unsent += 1;
                self.pop();
                self.drain(out)?;
            }
        }
        let given = reason;
        let reason = match reason {
            FinishReason::Length | FinishReason::ContentFilter => reason,
            _ if is_cut => FinishReason::Length,
            _ if self.complete > 0 => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        };
        self.begin(out);
        let fits = reason == given && matches!(reason, FinishReason::Stop | FinishReason::Length);
        let provider = provider.filter(|_| fits).map(Cow::from);
        out.emit(&Step::End { reason, provider });
        Ok(())
    }

    /// Passes the call with this id to `feed`. A new call is created in `state`, at the position of
    /// its index.
    fn with_call(
        &mut self,
        id: &str,
        index: Option<i64>,
        state: ChoiceCallState,
        feed: impl FnOnce(&mut HeldCall) -> Fed,
    ) -> Fed {
        if let Some(place) = self.places.get(id) {
            return match self.queue.get_mut(place - self.left) {
                Some(WaitingItem::Call(call)) => feed(call),
                _ => Ok(()),
            };
        }
        let mut call = HeldCall::new(id.to_owned(), state);
        feed(&mut call)?;
        self.has_whole |= call.state == ChoiceCallState::Whole;
        let place = self.place_of(index).unwrap_or_else(|| {
            self.hold(WaitingItem::Nothing);
            self.left + self.queue.len() - 1
        });
        self.places.insert(id.into(), place);
        self.queue[place - self.left] = WaitingItem::Call(call);
        Ok(())
    }

    /// Returns the position reserved for the call with this index, or `None`. Also reserves
    /// positions for lower indexes that have not arrived: a call without arguments is only complete
    /// at the end, and a later call may be complete before it.
    fn place_of(&mut self, index: Option<i64>) -> Option<usize> {
        let index = usize::try_from(index?)
            .ok()
            .filter(|index| *index < MOST_INDEXES)?;
        for lower in self.indexes..index {
            self.awaited.insert(lower, self.left + self.queue.len());
            self.hold(WaitingItem::Awaited);
        }
        self.indexes = self.indexes.max(index + 1);
        self.awaited.remove(&index)
    }

    /// Whether the call with this id was removed from the queue.
    fn has_left(&self, id: &str) -> bool {
        self.places.get(id).is_some_and(|place| *place < self.left)
    }

    /// Appends an item to the queue.
    fn hold(&mut self, item: WaitingItem) {
        self.queue.push_back(item);
    }

    fn pop(&mut self) {
        self.left += usize::from(self.queue.pop_front().is_some());
    }

    /// Allows complete calls to be sent, because other content than their native form has arrived.
    fn release(&mut self, out: &mut StepEmitter<'_, '_>) -> Fed {
        if self.waits || !std::mem::take(&mut self.has_whole) {
            return Ok(());
        }
        for item in &mut self.queue {
            if let WaitingItem::Call(call) = item
                && call.state == ChoiceCallState::Whole
            {
                call.state = ChoiceCallState::Complete;
            }
        }
        self.drain(out)
    }

    /// Emits the items at the front of the queue that no longer have to wait.
    fn drain(&mut self, out: &mut StepEmitter<'_, '_>) -> Fed {
        if self.waits {
            return Ok(());
        }
        loop {
            match self.queue.front() {
                None | Some(WaitingItem::Awaited) => return Ok(()),
                Some(WaitingItem::Call(call)) if !call.may_be_sent() => return Ok(()),
                Some(WaitingItem::Nothing) => {}
                Some(_) => self.begin(out),
            }
            match self.queue.front_mut() {
                Some(WaitingItem::Call(call)) => {
                    if !call.send(out) {
                        return Ok(());
                    }
                    self.complete += 1;
                }
                Some(WaitingItem::Block(step)) => out.emit(step),
                Some(WaitingItem::Awaited | WaitingItem::Nothing) | None => {}
            }
            self.pop();
        }
    }
}

/// How far a call has progressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceCallState {
    /// More of the call may arrive.
    Open,
    /// The call is complete, and no part of it was announced before. This is the case for a call in
    /// the text, which is retracted if the provider sends the same call natively right after it.
    Whole,
    /// The call is complete and may be sent.
    Complete,
    /// The call was truncated.
    Cut,
}

/// A call that is incomplete or waits for another call.
#[derive(Debug)]
pub(crate) struct HeldCall {
    pub id: String,
    pub name: String,
    /// The arguments so far.
    pub arguments: String,
    /// The number of argument bytes emitted so far.
    pub sent: usize,
    pub has_begun: bool,
    pub state: ChoiceCallState,
    /// Data that must be sent back to the provider with the call, as JSON.
    pub provider: Option<String>,
}

/// Why a finished call cannot be sent to a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnfitCall {
    /// The name or arguments contradict the bytes already sent.
    Changed,
    /// See [`CallVerdict::Unusable`].
    Unusable(String),
}

impl HeldCall {
    /// Creates a call without any bytes.
    pub(super) fn new(id: String, state: ChoiceCallState) -> HeldCall {
        let name = String::new();
        let arguments = String::new();
        HeldCall {
            id,
            name,
            arguments,
            sent: 0,
            has_begun: false,
            state,
            provider: None,
        }
    }

    /// Processes the end of the call.
    pub(super) fn take(&mut self, event: &ToolCall<'_>) -> Result<(), UnfitCall> {
        let all = match verdict(event) {
            CallVerdict::Cut => {
                self.state = ChoiceCallState::Cut;
                return Ok(());
            }
            CallVerdict::Unusable(message) => return Err(UnfitCall::Unusable(message)),
            CallVerdict::Arguments(all) => all,
        };
        let name = event.tool_name.str();
        if self.has_begun && (self.name != name || !all.starts_with(&self.arguments[..self.sent])) {
            return Err(UnfitCall::Changed);
        }
        self.name = name.into_owned();
        self.arguments = all;
        if let Some(data) = event.provider {
            self.provider = Some(data.text().into_owned());
        }
        if self.state == ChoiceCallState::Open {
            self.state = ChoiceCallState::Complete;
        }
        Ok(())
    }

    /// Whether [`HeldCall::send`] would emit anything.
    pub(super) fn may_be_sent(&self) -> bool {
        match self.state {
            ChoiceCallState::Open => self.sent < self.arguments.len(),
            ChoiceCallState::Complete => true,
            ChoiceCallState::Whole | ChoiceCallState::Cut => false,
        }
    }

    /// Emits the part that can be sent. Returns whether the call has ended. A call starts with its
    /// first argument byte, so that a truncated call never has empty arguments, which many clients
    /// read as `{}`.
    pub(super) fn send(&mut self, out: &mut StepEmitter<'_, '_>) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.emit(&self.step(CallStepKind::Begin, ""));
        }
        if let Some(more) = self
            .arguments
            .get(self.sent..)
            .filter(|more| !more.is_empty())
        {
            out.emit(&self.step(CallStepKind::Arguments, more));
            self.sent = self.arguments.len();
        }
        let is_complete = self.state == ChoiceCallState::Complete;
        if is_complete {
            out.emit(&self.step(CallStepKind::Called, &self.arguments));
        }
        is_complete
    }

    fn step<'s>(&'s self, kind: CallStepKind, text: &'s str) -> Step<'s> {
        Step::Call(CallStep {
            kind,
            is_own: false,
            id: (&self.id).into(),
            name: (&self.name).into(),
            text: text.into(),
            provider: self.provider.as_deref().map(Cow::from),
        })
    }
}

/// The meaning of a `tool_call` event for a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// The client gets these arguments: a JSON object on one line.
    Arguments(String),
    /// The call was truncated.
    Cut,
    /// No client can use the call: its arguments are not a JSON object, or it has no name.
    Unusable(String),
}

/// Checks the arguments of a `tool_call`. Arguments that violate their schema or contain duplicate
/// keys are still JSON, so they are left for the client to judge.
pub(crate) fn verdict(call: &ToolCall<'_>) -> CallVerdict {
    let Some(error) = call.error else {
        if call.tool_name.is_empty() {
            return CallVerdict::Unusable("a call came without a name".to_owned());
        }
        let arguments = call
            .arguments
            .map(|json| json.text().into_owned())
            .filter(|json| json.starts_with('{'));
        return CallVerdict::Arguments(arguments.unwrap_or_else(|| "{}".to_owned()));
    };
    if error.code == "incomplete" {
        return CallVerdict::Cut;
    }
    let text = call.arguments_text.unwrap_or_default().str();
    match Raw::parse(text.trim_ascii()) {
        _ if call.tool_name.is_empty() => {
            CallVerdict::Unusable("a call came without a name".to_owned())
        }
        Ok(value) if value.is_object() => CallVerdict::Arguments(minified(value)),
        _ => CallVerdict::Unusable(error.message.str().into_owned()),
    }
}

/// Called with the upstream's model name, a choice's number, and the choice's next step.
pub(crate) type TakeStep<'t> = dyn FnMut(&str, u32, &Step<'_>) + 't;

/// Emits the steps of one choice, and records that the response has started.
pub(crate) struct StepEmitter<'e, 't> {
    pub model: &'e str,
    pub number: u32,
    pub has_begun: &'e mut bool,
    pub has_content: &'e mut bool,
    pub take: &'e mut TakeStep<'t>,
}

impl StepEmitter<'_, '_> {
    pub(super) fn emit(&mut self, step: &Step<'_>) {
        *self.has_begun = true;
        *self.has_content |= *step != Step::Begin;
        (self.take)(self.model, self.number, step);
    }
}
