//! The state machine of `tc-accumulate`, which dispatches each event to the stream.

use crate::options::AccumulateOptions;
use crate::stream::{OpenStream, SOURCE};
use event::payload::{
    ContentDelta, FinishReason, Message, RefusalDelta, StreamEnd, Thinking, Warning,
};
use event::{Event, Json, Kind, Machine, Sink};
use std::rc::Rc;

/// Merges the deltas of one stream.
#[derive(Debug)]
pub struct Accumulate {
    stream: OpenStream,
}

impl Accumulate {
    /// Returns a machine for one stream.
    pub fn new(options: Rc<AccumulateOptions>) -> Self {
        Accumulate {
            stream: OpenStream::new(options),
        }
    }
}

impl Machine for Accumulate {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let stream = &mut self.stream;
        let mut is_passed = true;
        let keeps_text = !stream.options.no_message && !stream.is_over;
        let keeps = !stream.is_over;
        match event.kind() {
            Kind::StreamStart => stream.start(event, out),
            Kind::ContentDelta if keeps_text => {
                let delta = ContentDelta::read(event);
                let draft = &mut stream.choice_of(event).draft;
                draft.half.push_text(delta.text, &mut draft.content);
                out.pass();
                stream.count(|meter| meter.take_text(event.choice(), &delta), out);
                return;
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
            Kind::ToolCallDelta => return stream.delta(event, out),
            Kind::ToolCall if keeps => stream.passed(event),
            Kind::ToolCallPartial if keeps => stream.choice_of(event).has_partials = true,
            Kind::Retract => {
                let is_named = stream.retracted(event, out);
                // An index is the provider's label, which live deltas do not carry.
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
            Kind::RefusalDelta | Kind::Thinking if keeps_text => {
                self.stream.count(|meter| meter.take(event), out);
            }
            Kind::ToolCall | Kind::Warning => self.stream.count(|meter| meter.take(event), out),
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.stream.end(FinishReason::Cut, out);
    }
}
