//! One turn of a conversation: the part of a choice from one beginning to the next.

use crate::stream_of;
use event::Event;
use event::payload::{FinishReason, SessionStats};
use std::collections::{HashMap, VecDeque};

/// A stream, by its name as JSON (empty for the unnamed stream), and one of its choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Who {
    /// The name of the stream.
    pub stream: Box<str>,
    /// The index of the choice.
    pub choice: u32,
}

impl Who {
    /// Returns the stream and the choice of an event.
    pub fn of(event: &Event<'_>) -> Self {
        Who {
            stream: stream_of(event).into(),
            choice: event.choice(),
        }
    }

    /// Whether the event belongs to this stream and choice.
    #[inline]
    pub fn is(&self, event: &Event<'_>) -> bool {
        self.choice == event.choice() && self.shares_stream(event)
    }

    /// Whether the event belongs to this stream.
    #[inline]
    pub fn shares_stream(&self, event: &Event<'_>) -> bool {
        let stream = stream_of(event);
        // An empty boxed string has no memory of its own. On some processors comparing it costs as
        // much as the rest of the event, although it has no bytes.
        match stream.is_empty() {
            true => self.stream.is_empty(),
            false => *self.stream == *stream,
        }
    }
}

/// One turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// The stream and the choice of the turn.
    pub who: Who,
    /// The answer so far, or the output of a call that is the answer.
    pub text: String,
    /// The reasoning so far.
    pub reasoning: String,
    /// The refusal so far.
    pub refusal: String,
    /// The positions of the turn's calls.
    pub calls: Vec<usize>,
    /// How the turn's stream ended; `None` if no end has arrived.
    pub finish: Option<FinishReason>,
    /// The last error as its code and its message.
    pub error: Option<[String; 2]>,
    /// The sums of the turn's token counts; no other usage data is kept.
    pub usage: SessionStats,
    /// Whether no event of the turn has arrived yet: a user's message, or the beginning of a stream
    /// with other choices, began the turn.
    pub is_fresh: bool,
    /// Whether pieces of the turn have arrived, which its message will repeat.
    pub is_streaming: bool,
    /// Whether the turn is a message without any events.
    pub is_message: bool,
    /// Whether the next turn of the same choice has begun.
    pub is_past: bool,
    /// Whether a `stream_start` has begun the next turn of the stream.
    pub is_closed: bool,
    pub(crate) choice: usize,
    /// Names other than ids by which events of the turn may refer to calls.
    pub(crate) names: CallNames,
}

impl Turn {
    /// Whether no more output of the model is expected in this turn.
    pub fn has_ended(&self) -> bool {
        !self.is_streaming && (self.is_closed || self.is_message || self.finish.is_some())
    }
}

/// A way for an event to name a call of its turn without an id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallName {
    /// The provider's label on the deltas of a call that is arriving.
    Label(Option<i64>),
    /// The index of a merged call in its turn.
    Index(i64),
    /// The tool of a call that is arriving and has no id.
    ArrivingTool(Box<str>),
    /// The tool of a call whose first event was its `tool_call`.
    WholeTool(Box<str>),
}

/// The calls of a turn by their names other than ids. Some names may be outdated.
///
/// Most turns have few calls, so names are compared one by one, without a map.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallNames {
    /// The latest names, oldest first.
    latest: Vec<(CallName, usize)>,
    /// All earlier names.
    earlier: HashMap<CallName, VecDeque<usize>>,
}

/// How many names are compared one by one: about as many as cost the time of one map look-up.
const COMPARED: usize = 32;

impl CallNames {
    /// Gives the call at this position an additional name.
    pub(crate) fn add(&mut self, name: CallName, at: usize) {
        if self.latest.len() == COMPARED {
            for (name, at) in self.latest.drain(..) {
                self.earlier.entry(name).or_default().push_back(at);
            }
        }
        self.latest.push((name, at));
    }

    /// Removes all names of all calls.
    pub(crate) fn clear(&mut self) {
        *self = CallNames::default();
    }

    fn among_latest(&self, name: &CallName) -> impl DoubleEndedIterator<Item = usize> {
        let named = self.latest.iter().filter(move |(of, _)| of == name);
        named.map(|(_, at)| *at)
    }

    /// Returns the call that was given this name last.
    pub(crate) fn get(&self, name: &CallName) -> Option<usize> {
        let latest = self.among_latest(name).next_back();
        latest.or_else(|| self.earlier.get(name)?.back().copied())
    }

    /// Returns the last call that was given this name and satisfies `is`. A call that fails `is`
    /// now must not satisfy it later.
    pub(crate) fn last(&mut self, name: &CallName, is: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(at) = self.among_latest(name).rfind(|at| is(*at)) {
            return Some(at);
        }
        let places = self.earlier.get_mut(name)?;
        while places.back().is_some_and(|at| !is(*at)) {
            places.pop_back();
        }
        places.back().copied()
    }

    /// Returns the first call that was given this name and satisfies `is`.
    pub(crate) fn first(&mut self, name: &CallName, is: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(places) = self.earlier.get_mut(name) {
            while places.front().is_some_and(|at| !is(*at)) {
                places.pop_front();
            }
            if let Some(at) = places.front() {
                return Some(*at);
            }
        }
        self.among_latest(name).find(|at| is(*at))
    }
}
