//! How a stream ends: what holds, what is taken back, the message, and the whole response.

use super::Accumulate;
use crate::EmitOn;
use crate::call::Told;
use crate::failure::Failure;
use crate::judge::{self, Bench};
use crate::message::Committed;
use crate::shape::{self, Shape, Whole};
use event::payload::{self, Commit, FinishReason, Message, Retract};
use event::{Event, Json, Sink, Text};

impl Accumulate {
    /// The stream has ended: what is open is final or was cut, and the message commits what holds.
    pub(super) fn end(&mut self, reason: FinishReason, out: &mut dyn Sink) {
        if self.choices.is_empty() && self.started {
            self.choice(0);
        }
        for at in 0..self.choices.len() {
            self.end_choice(at, reason, out);
        }
    }

    fn end_choice(&mut self, at: usize, reason: FinishReason, out: &mut dyn Sink) {
        let reason = if self.lost { FinishReason::Error } else { reason };
        let whole = reason.is_whole();
        for i in 0..self.choices[at].calls.list.len() {
            let call = &mut self.choices[at].calls.list[i];
            if call.told != Told::No {
                continue;
            }
            if whole {
                call.settle();
            }
            // A text with an open bracket or quote was cut, whatever the finish reason says. A call that was balanced
            // before the cut is whole; where the user waits for `final`, it must have been closed too.
            let closed = self.options.emit_on != EmitOn::Final || call.level() == Some(Commit::Sealed);
            let balanced = call.is_balanced() && closed && !reason.is_failure();
            let commit = if whole { Commit::Final } else { call.level().unwrap_or(Commit::Balanced) };
            if call.name.is_empty() && call.is_blank() {
                judge::judge(call, Bench { repair: false, tools: None });
            } else if !(whole && (call.is_closed() || call.is_blank()) || balanced) {
                judge::incomplete(call, reason.name());
            }
            self.emit(at, i, commit, out);
        }
        let choice = &mut self.choices[at];
        if let Some(before) = &mut choice.before {
            choice.calls.list.extend(before.rest());
        }
        let mut failed = reason.is_failure() || self.lost;
        let writes = !choice.committed && self.options.shape.is_none();
        if writes && !failed {
            let message = Committed { draft: &choice.draft, calls: &choice.calls.list };
            out.emit(choice.number, Message { message: Json::Made(&message) });
            failed = out.lost();
        }
        if failed {
            for call in choice.calls.list.iter_mut().filter(|c| matches!(c.told, Told::Emitted | Told::Passed)) {
                if writes {
                    let tool_id = Some((&call.id).into());
                    out.emit(choice.number, Retract { index: None, tool_id, reason: "stream_failed".into() });
                }
                call.told = Told::Retracted;
            }
        }
    }

    /// An `error` in the input. One of a line that was too long means that an event of this stream is missing.
    pub(super) fn failed(&mut self, event: &Event<'_>) {
        let error = payload::Error::read(event);
        let [code, message] = [error.code, error.message].map(Text::str);
        self.lost |= code == "line_too_long";
        if self.options.shape.is_some() && self.error.is_none() {
            self.error = Some(Failure { code: code.into_owned(), message: message.into_owned() });
        }
    }

    /// `--as`: the whole response on one line.
    pub(super) fn respond(&mut self, shape: Shape, reason: FinishReason, out: &mut dyn Sink) {
        let mut choices: Vec<_> = self
            .choices
            .iter()
            .map(|c| shape::Part { number: c.number, draft: &c.draft, calls: &c.calls.list })
            .collect();
        let reason = if self.lost { FinishReason::Error } else { reason };
        // Clients take the first of the list, whichever choice's words came first.
        choices.sort_by_key(|part| part.number);
        let whole = Whole {
            id: &self.response,
            model: &self.model,
            parts: &choices,
            reason,
            stats: self.stats,
            error: self.error.as_ref(),
        };
        out.line(&shape.response(&whole));
    }
}
