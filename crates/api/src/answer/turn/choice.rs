//! One choice: what its events become, in the one order that a front can write.

use crate::answer::details::{DetailMembers, DetailsPlace};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{CallStep, CallStepKind, Dropped, Step, TextKind};
use crate::members::minified;
use event::payload::{FinishReason, ToolCall, ToolCallDelta};
use event::{Raw, Surrogates, Text};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Why the answer cannot go on, although the upstream goes on.
#[derive(Debug)]
pub(crate) enum AnswerTrouble {
    /// A call was withdrawn of which bytes were sent.
    Withdrawn(String),
    /// The final arguments or the name of a call are not what its sent bytes began.
    Changed(String),
    /// No client can use a call.
    Unusable(String),
}

impl AnswerTrouble {
    /// The failure of the answer.
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

/// Something that waits for the call before it.
#[derive(Debug)]
enum WaitingItem {
    /// Anything but a call.
    Block(Step<'static>),
    Call(HeldCall),
    /// The place of a call of which nothing has come, although one with a higher index has.
    Awaited,
    /// A call that was withdrawn.
    Nothing,
}

impl WaitingItem {
    /// Whether this is a call of which bytes of the arguments are certain.
    fn is_certain(&self) -> bool {
        matches!(self, WaitingItem::Call(call) if !call.arguments.is_empty())
    }
}

/// How many calls are put into the order of their indexes. An index beyond is a label like any
/// other.
const MOST_INDEXES: usize = 1024;

/// One choice.
#[derive(Debug, Default)]
pub(crate) struct ChoiceSteps {
    has_begun: bool,
    /// Everything waits for the end.
    waits: bool,
    /// What waits: a call that is not complete, and all that came behind it.
    queue: VecDeque<WaitingItem>,
    /// How many calls are complete.
    complete: usize,
    /// How many items have left the queue.
    left: usize,
    /// How many calls were cut before the client got anything of them.
    unsent: u64,
    /// How many calls and pieces of text came behind a call that was cut.
    behind_cut: u64,
    /// The place of each call, counted from the first item of all: a queue of many calls is not
    /// searched.
    places: HashMap<Box<str>, usize>,
    /// The place of each [`WaitingItem::Awaited`], by the index of its call.
    awaited: HashMap<usize, usize>,
    /// One more than the highest index so far.
    indexes: usize,
    /// A call in the queue is [`ChoiceCallState::Whole`].
    has_whole: bool,
    /// Half a surrogate pair at the end of each [`TextKind`].
    halves: [Surrogates; 3],
    scratch: String,
}

type Fed = Result<(), AnswerTrouble>;

impl ChoiceSteps {
    /// Counts what of a choice that has ended the client did not get.
    pub(super) fn left_out(&self, dropped: &mut Dropped) {
        dropped.cut_calls += self.unsent;
        dropped.behind_cut += self.behind_cut;
    }

    /// Whether `Begin` was emitted.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// A choice before its first event. `waits`: nothing is emitted before its end.
    pub(super) fn new(waits: bool) -> ChoiceSteps {
        ChoiceSteps {
            waits,
            ..ChoiceSteps::default()
        }
    }

    /// Emits `Begin`, once.
    pub(super) fn begin(&mut self, out: &mut StepEmitter<'_, '_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.emit(&Step::Begin);
        }
    }

    /// Takes the next piece of a text, and what must go back to the provider with it.
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

    /// Takes a piece of text, or a step of a call of the service.
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
            // It is a part of the block now.
        } else if !matches!(step, Step::Call(call) if call.kind == CallStepKind::Arguments) {
            // The pieces of a call of the service come again with the whole call.
            self.hold(WaitingItem::Block(step.to_kept()));
        }
        Ok(())
    }

    /// Takes members of the text before them, or an item of the provider's.
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
            // They do not begin the answer, whose failure may still become the status of the
            // response.
            (out.take)(out.model, out.number, &step);
        }
        Ok(())
    }

    /// Takes the next certain bytes of a call's arguments.
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

    /// Takes a call whose arguments have ended.
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
            if let Some(place) = self.place_of(event.index) {
                self.queue[place - self.left] = WaitingItem::Nothing;
            }
            return self.drain(out);
        }
        self.with_call(&id, event.index, ChoiceCallState::Whole, |call| {
            call.take(event).map_err(|unfit| match unfit {
                UnfitCall::Changed => AnswerTrouble::Changed(call.name.clone()),
                UnfitCall::Unusable(message) => AnswerTrouble::Unusable(message),
            })
        })?;
        self.drain(out)
    }

    /// The call of this index is no call of the client: nothing waits for it.
    pub(super) fn pass_over(&mut self, index: Option<i64>, out: &mut StepEmitter<'_, '_>) -> Fed {
        if let Some(place) = self.place_of(index) {
            self.queue[place - self.left] = WaitingItem::Nothing;
        }
        self.drain(out)
    }

    /// Nothing waits any more for calls of which nothing has come.
    pub(super) fn give_up(&mut self, out: &mut StepEmitter<'_, '_>) -> Fed {
        for place in std::mem::take(&mut self.awaited).into_values() {
            self.queue[place - self.left] = WaitingItem::Nothing;
        }
        self.drain(out)
    }

    /// Takes back a call.
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

    /// Ends the choice: the upstream gives `reason`, and `provider` as its own word for it.
    ///
    /// A call that was cut is left open, and nothing may follow it: a client would take it for a
    /// whole one. So the answer ends with the first one of which a byte is certain; of one without
    /// that the client gets nothing. The finish reason says that something is missing.
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
        for place in std::mem::take(&mut self.awaited).into_values() {
            self.queue[place - self.left] = WaitingItem::Nothing;
        }
        self.release(out)?;
        self.drain(out)?;
        let mut is_cut = false;
        // Only a call that is open or was cut is left at the front.
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

    /// Gives the call of an id to `feed`; a call that has not come yet begins in `state`, at the
    /// place of its index.
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

    /// The place that waits for the call of this index, if any. Calls with lower indexes that have
    /// not come get such places: a call without arguments is complete only at the end, and a later
    /// one may be complete before it.
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

    /// Whether the call of this id has left the queue.
    fn has_left(&self, id: &str) -> bool {
        self.places.get(id).is_some_and(|place| *place < self.left)
    }

    /// Lets something wait.
    fn hold(&mut self, item: WaitingItem) {
        self.queue.push_back(item);
    }

    fn pop(&mut self) {
        self.left += usize::from(self.queue.pop_front().is_some());
    }

    /// Calls that were held whole may be sent: something other than their own native form has come.
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

    /// Emits what need not wait any more.
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

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceCallState {
    /// More of it may come.
    Open,
    /// It is complete, and nothing of it was announced before. A call in the text is like this, and
    /// it is taken back if the provider sends the same natively just behind it.
    Whole,
    /// It is complete, and may be sent.
    Complete,
    /// It was cut.
    Cut,
}

/// A call that is not complete, or waits for another one.
#[derive(Debug)]
pub(crate) struct HeldCall {
    pub id: String,
    pub name: String,
    /// All of its arguments so far.
    pub arguments: String,
    /// How many bytes of the arguments were emitted.
    pub sent: usize,
    pub has_begun: bool,
    pub state: ChoiceCallState,
    /// What must go back to the provider with it, as JSON.
    pub provider: Option<String>,
}

/// Why the end of a call does not fit a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnfitCall {
    /// It has another name or other arguments than the sent bytes began.
    Changed,
    /// See [`CallVerdict::Unusable`].
    Unusable(String),
}

impl HeldCall {
    /// A call before its first bytes.
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

    /// Handles the end of the call.
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

    /// Whether [`HeldCall::send`] emits anything.
    pub(super) fn may_be_sent(&self) -> bool {
        match self.state {
            ChoiceCallState::Open => self.sent < self.arguments.len(),
            ChoiceCallState::Complete => true,
            ChoiceCallState::Whole | ChoiceCallState::Cut => false,
        }
    }

    /// Emits what can be sent. Returns whether the call has ended. The call begins with its first
    /// byte of arguments, so that one which is cut never has the empty arguments that many clients
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

/// What an event `tool_call` means for a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// The client gets these arguments: a JSON object on one line.
    Arguments(String),
    /// The call was cut.
    Cut,
    /// Its arguments are not a JSON object, or it has no name: no client can use it.
    Unusable(String),
}

/// Reads what a `tool_call` says of its arguments. Arguments that do not fit their schema, or in
/// which a key appears twice, are JSON: the client judges them by itself.
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

/// Takes the upstream's name of the model, the number of a choice, and its next step.
pub(crate) type TakeStep<'t> = dyn FnMut(&str, u32, &Step<'_>) + 't;

/// Emits the steps of one choice, and notes that the answer has begun.
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
