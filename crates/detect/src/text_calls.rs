//! Calls that the model wrote as text, for the checkers that count them.

use crate::checker::{CallFilter, Meaning, StreamEnding};
use event::payload::{ContentDelta, Retract, StreamEnd, ToolCallDelta};
use event::{Emitted, Event, Machine, Payload, SinkOf};
use tag::Tag;

/// A part of one choice of a stream; parts arrive in stream order.
pub(crate) enum ChoicePart<'f, 'e> {
    /// An event that was forwarded unchanged, so that any text in it belongs to the answer.
    Event(&'f Event<'e>),
    /// Text of the answer that does not belong to a call.
    Text(&'f str),
    /// A call that the model wrote as text and that counts, with its description.
    Call(String),
}

/// Searches the text of one choice for calls.
pub(crate) struct TextCalls {
    /// The parser; `None` if the text is not searched, or has ended.
    tag: Option<Tag>,
    counts: CallCounts,
}

/// The calls found so far.
struct CallCounts {
    calls: CallFilter,
    /// The number of calls that counted, including retracted ones.
    counted: u64,
    /// The indexes of the calls that were not retracted.
    held: Vec<i64>,
}

impl TextCalls {
    /// Searches text with `tag`; if it is `None`, no text is a call. `calls` decides which calls
    /// count.
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

    /// Handles the next event. Passes its parts to `take`, preceded by text that was held back
    /// earlier.
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

    /// Handles the end of the stream, and passes the text that was held back to `take`.
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

    /// Whether a call found in the text was not retracted.
    pub(crate) fn holds(&self) -> bool {
        !self.counts.held.is_empty()
    }

    /// See [`Checker::overturned`](crate::Checker::overturned).
    pub(crate) fn overturned(&self) -> Option<bool> {
        (self.counts.counted > 0).then_some(!self.holds())
    }
}

impl CallCounts {
    /// Handles an event that the parser emitted, and passes it to `take`.
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
