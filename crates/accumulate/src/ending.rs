//! The end of a stream: the last calls, retractions, and the message.

use crate::call::Emission;
use crate::judge::CallRefusal;
use crate::message::AssistantMessage;
use crate::options::EmitOn;
use crate::stream::OpenStream;
use event::payload::{self, Commit, FinishReason, Message, Retract, RetractReason};
use event::{Event, Json, Sink};

impl OpenStream {
    /// Ends the stream. Each open call is final or was cut; the message commits the calls that were
    /// not cut.
    pub(crate) fn end(&mut self, reason: FinishReason, out: &mut dyn Sink) {
        if self.choices.is_empty() && self.started {
            self.choice(0);
        }
        for at in 0..self.choices.len() {
            self.end_choice(at, reason, out);
        }
    }

    fn end_choice(&mut self, at: usize, reason: FinishReason, out: &mut dyn Sink) {
        let reason = if self.lost {
            FinishReason::Error
        } else {
            reason
        };
        let whole = reason.is_whole();
        for i in 0..self.choices[at].calls.list.len() {
            let call = &mut self.choices[at].calls.list[i];
            if !call.is_waiting() {
                continue;
            }
            if whole {
                call.settle();
            }
            // Some servers end a stream with a delta that has only a new id; it is not a call.
            if call.name.is_empty() && call.is_blank() {
                continue;
            }
            // Text with an open bracket or quote was cut, whatever the finish reason is. A call
            // that was balanced before the cut is complete; with `--emit-on final`, the provider
            // must also have closed it.
            let closed = self.options.emit_on != EmitOn::Final
                || call.level_at_end() == Some(Commit::Sealed);
            let balanced = call.is_balanced() && closed && !reason.is_failure();
            let commit = if whole {
                Commit::Final
            } else {
                call.level_at_end().unwrap_or(Commit::Balanced)
            };
            let is_complete = whole && (call.is_closed() || call.is_blank()) || balanced;
            let refusal = (!is_complete).then(|| CallRefusal::incomplete(call, reason));
            self.emit(at, i, commit, refusal, out);
        }
        let choice = &mut self.choices[at];
        choice.draft.finish();
        if let Some(earlier) = &mut choice.earlier {
            choice.calls.list.extend(earlier.rest());
        }
        let mut failed = reason.is_failure() || self.lost;
        let writes = !choice.has_message;
        if writes && !failed && !self.options.no_message {
            let message = AssistantMessage {
                draft: &choice.draft,
                calls: &choice.calls.list,
            };
            out.emit(
                choice.number,
                Message {
                    message: Json::Made(&message),
                    ..Message::default()
                },
            );
            failed = out.lost();
        }
        if failed {
            for call in choice.calls.list.iter_mut().filter(|c| c.emission.holds()) {
                if writes {
                    let tool_id = Some((&call.id).into());
                    out.emit(
                        choice.number,
                        Retract {
                            index: None,
                            tool_id,
                            reason: RetractReason::StreamFailed.name().into(),
                        },
                    );
                }
                call.emission = Emission::Retracted;
            }
        }
    }

    /// Retracts a call that arrived after the stream exceeded its limit, since every call of this
    /// stream is retracted.
    pub(crate) fn refuse(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let tool_id = payload::ToolCall::read(event).tool_id;
        if !tool_id.is_empty() {
            let retract = Retract {
                index: None,
                tool_id: Some(tool_id),
                reason: RetractReason::StreamFailed.name().into(),
            };
            out.emit(event.choice(), retract);
        }
    }

    /// Handles an `error` event of the input. `line_too_long` means that an event of this stream is
    /// missing.
    pub(crate) fn failed(&mut self, event: &Event<'_>) {
        self.lost |= payload::Error::read(event).code == "line_too_long";
    }
}
