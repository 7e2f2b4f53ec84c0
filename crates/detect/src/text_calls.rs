//! Calls that are written as text, for the checkers that count them.

use crate::checker::{CallFilter, Meaning, StreamEnding};
use event::payload::{ContentDelta, Retract, StreamEnd, ToolCallDelta};
use event::{Event, Machine, Payload, Sink};
use tag::Tag;

/// What a choice of a stream holds, in its order.
pub(crate) enum Found<'f, 'e> {
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
    counts: Counts,
}

/// The calls that were found.
struct Counts {
    calls: CallFilter,
    /// How many counted.
    counted: u64,
    /// The indexes of those that hold.
    held: Vec<i64>,
}

impl TextCalls {
    /// Reads text by `tag`; without it text is text. `calls` decides which calls count.
    pub fn new(tag: Option<Tag>, calls: CallFilter) -> Self {
        TextCalls {
            tag,
            counts: Counts {
                calls,
                counted: 0,
                held: Vec::new(),
            },
        }
    }

    /// Takes the next event, and gives what it holds to `take`, with what was held back before it.
    #[inline]
    pub fn push<'e>(&mut self, event: &Event<'e>, take: &mut dyn FnMut(Found<'_, 'e>)) {
        match &mut self.tag {
            Some(tag) => tag.push(
                event,
                &mut Taken {
                    event: Some(event),
                    counts: &mut self.counts,
                    take,
                },
            ),
            None => take(Found::Event(event)),
        }
    }

    /// Takes the end of the stream, and gives what was held back to `take`.
    pub fn end(&mut self, ending: StreamEnding, take: &mut dyn FnMut(Found<'_, '_>)) {
        let Some(mut tag) = self.tag.take() else {
            return;
        };
        let mut taken = Taken {
            event: None,
            counts: &mut self.counts,
            take,
        };
        match ending {
            StreamEnding::Cut => tag.finish(&mut taken),
            StreamEnding::Stream(finish_reason) => {
                let end = StreamEnd {
                    finish_reason,
                    provider_finish_reason: None,
                }
                .into();
                tag.push(&Event::of(&end, None, 0, None), &mut taken);
            }
        }
    }

    /// Whether a call of the text holds.
    pub fn holds(&self) -> bool {
        !self.counts.held.is_empty()
    }

    /// See [`Checker::overturned`](crate::Checker::overturned).
    pub fn overturned(&self) -> Option<bool> {
        (self.counts.counted > 0).then_some(!self.holds())
    }
}

/// What the parser finds, on its way to a checker.
struct Taken<'t, 'e> {
    /// The event at hand; none at the end.
    event: Option<&'t Event<'e>>,
    counts: &'t mut Counts,
    take: &'t mut dyn FnMut(Found<'_, 'e>),
}

impl Sink for Taken<'_, '_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            (self.take)(Found::Event(event));
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        match payload {
            Payload::ContentDelta(ContentDelta { text, .. }) => {
                (self.take)(Found::Text(&text.str()))
            }
            Payload::Retract(Retract {
                index: Some(index), ..
            }) => self.counts.held.retain(|held| held != index),
            Payload::ToolCallDelta(ToolCallDelta {
                index: Some(index),
                tool_name: Some(_),
                ..
            }) => {
                if let Meaning::Call(what) = self
                    .counts
                    .calls
                    .meaning(&Event::of(payload, None, choice, None))
                {
                    self.counts.counted += 1;
                    self.counts.held.push(*index);
                    (self.take)(Found::Call(format!("{what}, written as text")));
                }
            }
            _ => {}
        }
    }
}
