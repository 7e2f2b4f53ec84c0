//! One turn of a conversation: a choice of a stream between its beginning and the next one.

use crate::stream_of;
use event::Event;
use event::payload::{FinishReason, SessionStats};
use std::collections::{HashMap, VecDeque};

/// A stream, by its name as JSON (the unnamed stream has an empty one), and one of its choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Who {
    /// The stream.
    pub stream: Box<str>,
    /// The choice.
    pub choice: u32,
}

impl Who {
    /// Those of an event.
    pub fn of(event: &Event<'_>) -> Self {
        Who {
            stream: stream_of(event).into(),
            choice: event.choice(),
        }
    }

    /// Whether the event is theirs.
    pub fn is(&self, event: &Event<'_>) -> bool {
        self.choice == event.choice() && self.shares_stream(event)
    }

    /// Whether the event is of the stream.
    pub fn shares_stream(&self, event: &Event<'_>) -> bool {
        *self.stream == *stream_of(event)
    }
}

/// One turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Whose it is.
    pub who: Who,
    /// The answer so far, or the output of a call that is the answer.
    pub text: String,
    /// The reasoning so far.
    pub reasoning: String,
    /// The refusal so far.
    pub refusal: String,
    /// The positions of its calls.
    pub calls: Vec<usize>,
    /// How its stream ended.
    pub finish: Option<FinishReason>,
    /// The last error: its code and its message.
    pub error: Option<[String; 2]>,
    /// The sums of its counts of tokens; of the rest nothing is kept.
    pub usage: SessionStats,
    /// No event of the turn has come: it was begun by a user's message, or by the beginning of a
    /// stream with other choices.
    pub is_fresh: bool,
    /// Pieces of it have come, which its message will repeat.
    pub is_streaming: bool,
    /// It is a message, without any events.
    pub is_message: bool,
    /// The next turn of its choice has begun.
    pub is_past: bool,
    /// The next turn of its stream has begun with a `stream_start`.
    pub is_closed: bool,
    pub(crate) choice: usize,
    /// The calls that an event of the turn may name in another way than by their ids. Some names are
    /// outdated.
    pub(crate) names: HashMap<CallName, VecDeque<usize>>,
}

impl Turn {
    /// Whether nothing more of the model is expected in it.
    pub fn has_ended(&self) -> bool {
        !self.is_streaming && (self.is_closed || self.is_message || self.finish.is_some())
    }
}

/// How an event names a call of its turn, beside its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallName {
    /// The provider's label on the deltas of a call that is arriving.
    Label(Option<i64>),
    /// The place of a merged call in its turn.
    Index(i64),
    /// The tool of a call that is arriving and has no id.
    ArrivingTool(Box<str>),
    /// The tool of a call whose first event was its `tool_call`.
    WholeTool(Box<str>),
}
