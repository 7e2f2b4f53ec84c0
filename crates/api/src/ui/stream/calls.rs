//! The calls of a stream: each starts, becomes complete, may need approval, runs, and has a result
//! or is retracted.

use super::turn::{KeptPart, MOST_RESETS, TurnState};
use super::{StepOutput, UiStream};
use crate::answer::step::TextKind;
use crate::answer::turn::choice::{AnswerTrouble, CallVerdict, verdict};
use crate::ui::step::{UiAsk, UiCallName, UiResult, UiStep};
use event::payload::{
    Approval, Retract, Status, ToolCall, ToolCallDelta, ToolProgress, ToolResult, Verdict,
};
use event::{Raw, Text};

/// The progress of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallState {
    /// The call's name is not yet known.
    #[default]
    Unnamed,
    /// The start of the call was written.
    Named,
    /// The call is complete.
    Called,
    /// The call was started or needs approval, so it cannot be retracted.
    Started,
    /// An earlier answer showed the call, and may have requested its approval.
    Earlier,
}

/// A call without a result.
#[derive(Debug, Default)]
pub(super) struct UiCall {
    pub(super) id: String,
    name: String,
    /// The arguments so far.
    arguments: String,
    provider: Option<String>,
    pub(super) is_own: bool,
    pub(super) state: CallState,
    has_progress: bool,
    /// The last request for its approval.
    ask: Option<UiAsk>,
    /// The user's decision on that request: whether the call was approved. `None` if the user has
    /// not decided.
    answer: Option<bool>,
}

impl UiCall {
    pub(super) fn name(&self) -> UiCallName<'_> {
        UiCallName {
            id: &self.id,
            name: &self.name,
            is_own: self.is_own,
        }
    }

    /// Returns the request for approval that the user has not answered, if any.
    pub(super) fn open_ask(&self) -> Option<&UiAsk> {
        self.ask.as_ref().filter(|_| self.answer.is_none())
    }
}

impl UiStream {
    pub(super) fn find(&mut self, id: &str) -> Option<&mut UiCall> {
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }

    /// Removes and returns a call that has ended.
    fn take(&mut self, id: &str) -> Option<UiCall> {
        let at = self.calls.iter().rposition(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    /// Returns the index of the call `id`, creating the call if needed.
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

    /// Returns the call `id` if the client has it. If the stream continues a message, the client
    /// has the calls of the earlier answer.
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

    pub(super) fn delta(&mut self, delta: &ToolCallDelta<'_>, out: &mut Vec<u8>) {
        let Some(id) = delta.tool_id.map(Text::str).filter(|id| !id.is_empty()) else {
            return;
        };
        let at = self.place_of(&id);
        if self.calls[at].state >= CallState::Called {
            return;
        }
        // Called before the piece is appended, because rewritten parts must not contain it yet.
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

    /// Writes the start of a call once its name is known, with the arguments that arrived before
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

    pub(super) fn call(&mut self, event: &ToolCall<'_>, out: &mut Vec<u8>) {
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
        // The service rejects arguments that violate its tool's schema. For its own tools, the
        // client checks the arguments itself.
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

    pub(super) fn progress(&mut self, event: &ToolProgress<'_>, out: &mut Vec<u8>) {
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

    pub(super) fn result(&mut self, event: &ToolResult<'_>, out: &mut Vec<u8>) {
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

    /// Handles a call that needs approval.
    fn ask(&mut self, id: &str, event: &ToolResult<'_>, out: &mut Vec<u8>) {
        // After the reason, the summary contains the terminal commands to answer the request. Logs
        // of earlier versions have the second wording.
        let summary = event.output_summary.str();
        let reason = [" It needs approval", " It waits for a person"]
            .iter()
            .find_map(|rest| summary.split_once(rest))
            .map_or(&*summary, |(reason, _)| reason);
        let ask = UiAsk {
            id: UiAsk::id_of(id, &event.hash.map(Text::str).unwrap_or_default()),
            reason: reason.to_owned(),
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

    pub(super) fn approval(&mut self, event: &Approval<'_>, out: &mut Vec<u8>) {
        let id = &*event.tool_id.str();
        let ask = &*UiAsk::id_of(id, &event.hash.str());
        let is_approved = match Verdict::of(&event.decision.str()) {
            Some(Verdict::Approved) => true,
            Some(Verdict::Denied) => false,
            // The user supplied the call's result, which follows.
            Some(Verdict::Answered) | None => return,
        };
        // A policy rule decided, so no user was asked.
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

    /// Handles a retracted call. The whole turn is retracted with it, unless a part of the turn
    /// cannot be retracted: then the call ends as failed.
    pub(super) fn retract(&mut self, event: &Retract<'_>, out: &mut Vec<u8>) {
        let Some(id) = event.tool_id.map(Text::str) else {
            return;
        };
        let resets = self.output.writer.resets();
        let may_reset = resets
            && self.turn.state == TurnState::Open
            && self.turn.resets < MOST_RESETS
            && !self.turn.is_fixed;
        // A call that was started is not retracted, because its result follows.
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

    /// Ends a call that will have no result.
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

    /// Ends the calls that will have no result. Calls that wait for approval or for the client are
    /// kept, unless the answer has failed or `is_over` is true.
    pub(super) fn end_calls(&mut self, is_over: bool, out: &mut Vec<u8>) {
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
}

impl StepOutput {
    /// Writes the current state of a call that has started.
    pub(super) fn write_call(&mut self, call: &UiCall, out: &mut Vec<u8>) {
        self.step(&UiStep::CallStart { call: call.name() }, out);
        let (id, piece) = (&*call.id, &*call.arguments);
        if call.state >= CallState::Called {
            self.call_end(call, "", out);
        } else if !piece.is_empty() {
            self.step(&UiStep::CallDelta { id, piece }, out);
        }
    }

    /// Writes the end of a call. `before` is the part of the arguments already written.
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

    /// Writes the reason why a call cannot run.
    pub(super) fn call_error(&mut self, call: &UiCall, message: &str, out: &mut Vec<u8>) {
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
}
