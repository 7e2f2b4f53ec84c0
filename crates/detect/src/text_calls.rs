//! Calls that are written as text, for the checkers that count them.

use crate::checker::{CallFilter, Meaning, StreamEnding};
use event::payload::{ContentDelta, Retract, StreamEnd, ToolCallDelta};
use event::{Emitted, Event, Machine, Payload, SinkOf};
use tag::Tag;

/// What a choice of a stream holds, in its order.
pub(crate) enum ChoicePart<'f, 'e> {
    /// An event, whose text is the answer's just as it is.
    Event(&'f Event<'e>),
    /// Text of the answer that is not a part of a call.
    Text(&'f str),
    /// A call that is written as text and counts, and what it is.
    Call(String),
}

/// Reads the text of one choice for calls.
pub(crate) struct TextCalls {
    /// `None`: the text is not read, or has ended.
    tag: Option<Tag>,
    counts: CallCounts,
}

/// The calls that were found.
struct CallCounts {
    calls: CallFilter,
    /// How many counted.
    counted: u64,
    /// The indexes of those that hold.
    held: Vec<i64>,
}

impl TextCalls {
    /// Reads text by `tag`; without it text is text. `calls` decides which calls count.
    pub(crate) fn new(tag: Option<Tag>, calls: CallFilter) -> Self {
        TextCalls {
            tag,
            counts: CallCounts {
                calls,
                counted: 0,
                held: Vec::new(),
            },
        }
    }

    /// Takes the next event, and gives what it holds to `take`, with what was held back before it.
    #[inline]
    pub(crate) fn push<'e>(&mut self, event: &Event<'e>, take: &mut dyn FnMut(ChoicePart<'_, 'e>)) {
        let TextCalls { tag, counts } = self;
        match tag {
            Some(tag) => tag.push(
                event,
                &mut SinkOf(|emitted| match emitted {
                    Emitted::Passed => take(ChoicePart::Event(event)),
                    Emitted::Written(choice, payload) => counts.found(choice, payload, take),
                }),
            ),
            None => take(ChoicePart::Event(event)),
        }
    }

    /// Handles the end of the stream, and gives what was held back to `take`.
    pub(crate) fn end(&mut self, ending: StreamEnding, take: &mut dyn FnMut(ChoicePart<'_, '_>)) {
        let Some(mut tag) = self.tag.take() else {
            return;
        };
        let counts = &mut self.counts;
        let mut sink = SinkOf(|emitted| {
            if let Emitted::Written(choice, payload) = emitted {
                counts.found(choice, payload, take);
            }
        });
        match ending {
            StreamEnding::Cut => tag.finish(&mut sink),
            StreamEnding::Stream(finish_reason) => {
                let end = StreamEnd {
                    finish_reason,
                    ..StreamEnd::default()
                };
                tag.push(&Event::of(&end.into(), None, 0, None), &mut sink);
            }
        }
    }

    /// Whether a call of the text holds.
    pub(crate) fn holds(&self) -> bool {
        !self.counts.held.is_empty()
    }

    /// See [`Checker::overturned`](crate::Checker::overturned).
    pub(crate) fn overturned(&self) -> Option<bool> {
        (self.counts.counted > 0).then_some(!self.holds())
    }
}

impl CallCounts {
    /// Takes what the parser found, and gives it to `take`.
    fn found<'e>(
        &mut self,
        choice: u32,
        payload: &Payload<'_>,
        take: &mut dyn FnMut(ChoicePart<'_, 'e>),
    ) {
        match payload {
            Payload::ContentDelta(ContentDelta { text, .. }) => take(ChoicePart::Text(&text.str())),
            Payload::Retract(Retract {
                index: Some(index), ..
            }) => self.held.retain(|held| held != index),
            Payload::ToolCallDelta(ToolCallDelta {
                index: Some(index),
                tool_name: Some(_),
                ..
            }) => {
                let event = Event::of(payload, None, choice, None);
                if let Meaning::Call(what) = self.calls.meaning(&event) {
                    self.counted += 1;
                    self.held.push(*index);
                    take(ChoicePart::Call(format!("{what}, written as text")));
                }
            }
            _ => {}
        }
    }
}
