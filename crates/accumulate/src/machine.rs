//! The machine of `tc-accumulate`: each event to the part of the stream that takes it.

use crate::call::Emission;
use crate::judge;
use crate::judge::Rules;
use crate::message::AssistantMessage;
use crate::options::{EmitOn, Options};
use crate::stream::{OpenStream, SOURCE};
use event::payload::{
    self, Commit, ContentDelta, FinishReason, Message, RefusalDelta, Retract, StreamEnd, Thinking,
    Warning,
};
use event::{Event, Json, Kind, Machine, Sink};
use std::rc::Rc;

/// Merges the deltas of one stream.
#[derive(Debug)]
pub struct Accumulate {
    stream: OpenStream,
}

impl Accumulate {
    /// A machine for one stream.
    pub fn new(options: Rc<Options>) -> Self {
        Accumulate {
            stream: OpenStream::new(options),
        }
    }
}

impl Machine for Accumulate {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let stream = &mut self.stream;
        let mut is_passed = true;
        let (keeps_text, keeps) = (
            !stream.options.no_message && !stream.is_over,
            !stream.is_over,
        );
        match event.kind() {
            Kind::StreamStart => stream.start(event, out),
            Kind::ContentDelta if keeps_text => {
                let draft = &mut stream.choice_of(event).draft;
                draft
                    .half
                    .push_text(ContentDelta::read(event).text, &mut draft.content);
            }
            Kind::RefusalDelta if keeps_text => {
                let draft = &mut stream.choice_of(event).draft;
                draft
                    .refusal_half
                    .push_text(RefusalDelta::read(event).text, &mut draft.refusal);
            }
            Kind::Thinking if keeps_text => {
                let choice = stream.choice_of(event);
                let Thinking { text, provider } = Thinking::read(event);
                let begun = choice.calls.list.len()
                    + choice
                        .earlier
                        .as_ref()
                        .map_or(0, |earlier| earlier.waiting());
                choice
                    .draft
                    .think(text, provider.map(Json::text).as_deref(), begun);
            }
            Kind::ToolCallDelta => {
                if keeps {
                    stream.delta(event, out);
                }
                is_passed &= stream.options.keep_deltas && !stream.options.live;
            }
            Kind::ToolCall if keeps => stream.passed(event),
            Kind::ToolCallPartial if keeps => stream.choice_of(event).has_partials = true,
            Kind::Retract => {
                let is_named = stream.retracted(event, out);
                // An index is the provider's label, which no live delta has.
                is_passed &= if stream.options.live {
                    is_named && event.get("tool_id").is_some()
                } else {
                    is_named || stream.options.keep_deltas
                };
            }
            Kind::Message if Message::read(event).is_of("assistant") => {
                stream.choice_of(event).has_message = true
            }
            Kind::Warning if keeps => {
                let warning = Warning::read(event);
                if warning.source == SOURCE {
                    let choice = stream.choice_of(event);
                    let message = warning.message.str().into_owned();
                    choice.bytes += message.len() + size_of::<String>();
                    choice.earlier.get_or_insert_default().warning(message);
                }
            }
            Kind::Error => stream.failed(event),
            Kind::StreamEnd => stream.end(StreamEnd::read(event).finish_reason, out),
            _ => {}
        }
        if is_passed {
            out.pass();
        }
        match event.kind() {
            Kind::ToolCall if !keeps && is_passed => self.stream.refuse(event, out),
            Kind::StreamEnd => {}
            _ => self.stream.count(event.choice(), out),
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.stream.end(FinishReason::Cut, out);
    }

    fn kept(&self) -> usize {
        self.stream.kept
    }
}

impl OpenStream {
    /// Ends the stream: open calls are final or were cut, and the message confirms those that hold.
    pub fn end(&mut self, reason: FinishReason, out: &mut dyn Sink) {
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
            if call.emission != Emission::Waiting {
                continue;
            }
            if whole {
                call.settle();
            }
            // A text with an open bracket or quote was cut, whatever the finish reason is. A call
            // that was balanced before the cut is complete; where the user waits for `final`, the
            // provider must have closed it, too.
            let closed = self.options.emit_on != EmitOn::Final
                || call.level_at_end() == Some(Commit::Sealed);
            let balanced = call.is_balanced() && closed && !reason.is_failure();
            let commit = if whole {
                Commit::Final
            } else {
                call.level_at_end().unwrap_or(Commit::Balanced)
            };
            if call.name.is_empty() && call.is_blank() {
                judge::judge(
                    call,
                    Rules {
                        repair: false,
                        tools: None,
                    },
                );
            } else if !(whole && (call.is_closed() || call.is_blank()) || balanced) {
                judge::incomplete(call, reason.name());
            }
            self.emit(at, i, commit, out);
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
                },
            );
            failed = out.lost();
        }
        if failed {
            for call in choice
                .calls
                .list
                .iter_mut()
                .filter(|c| matches!(c.emission, Emission::Emitted | Emission::Passed))
            {
                if writes {
                    let tool_id = Some((&call.id).into());
                    out.emit(
                        choice.number,
                        Retract {
                            index: None,
                            tool_id,
                            reason: "stream_failed".into(),
                        },
                    );
                }
                call.emission = Emission::Retracted;
            }
        }
    }

    /// Retracts a call that comes after nothing is kept any more, since no call of this stream
    /// holds.
    pub fn refuse(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let tool_id = payload::ToolCall::read(event).tool_id;
        if !tool_id.is_empty() {
            let retract = Retract {
                index: None,
                tool_id: Some(tool_id),
                reason: "stream_failed".into(),
            };
            out.emit(event.choice(), retract);
        }
    }

    /// Takes an `error` of the input. The error of a line that was too long means that an event of
    /// this stream is missing.
    pub fn failed(&mut self, event: &Event<'_>) {
        self.lost |= payload::Error::read(event).code == "line_too_long";
    }
}
