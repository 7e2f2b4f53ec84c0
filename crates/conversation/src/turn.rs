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
    #[inline]
    pub fn is(&self, event: &Event<'_>) -> bool {
        self.choice == event.choice() && self.shares_stream(event)
    }

    /// Whether the event is of the stream.
    #[inline]
    pub fn shares_stream(&self, event: &Event<'_>) -> bool {
        let stream = stream_of(event);
        // The text of an empty box is at no address. Comparing it costs some processors as much as
        // the rest of the event, though it has no bytes.
        match stream.is_empty() {
            true => self.stream.is_empty(),
            false => *self.stream == *stream,
        }
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
    /// The calls that an event of the turn may name in another way than by their ids.
    pub(crate) names: CallNames,
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

/// The calls of a turn by such names. Some names are outdated.
///
/// Most turns have few calls: their names are compared one by one, without a map.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallNames {
    /// The latest names, in the order in which they were given.
    latest: Vec<(CallName, usize)>,
    /// Those before them.
    earlier: HashMap<CallName, VecDeque<usize>>,
}

/// How many names are compared one by one: about as many as take the time of a look-up in a map.
const COMPARED: usize = 32;

impl CallNames {
    /// From now on the call at this position has this name.
    pub(crate) fn add(&mut self, name: CallName, at: usize) {
        if self.latest.len() == COMPARED {
            for (name, at) in self.latest.drain(..) {
                self.earlier.entry(name).or_default().push_back(at);
            }
        }
        self.latest.push((name, at));
    }

    /// No call has a name any more.
    pub(crate) fn clear(&mut self) {
        *self = CallNames::default();
    }

    fn among_latest(&self, name: &CallName) -> impl DoubleEndedIterator<Item = usize> {
        let named = self.latest.iter().filter(move |(of, _)| of == name);
        named.map(|(_, at)| *at)
    }

    /// The call that was given this name last.
    pub(crate) fn get(&self, name: &CallName) -> Option<usize> {
        let latest = self.among_latest(name).next_back();
        latest.or_else(|| self.earlier.get(name)?.back().copied())
    }

    /// The call that was given this name last of those for which `is` holds. It must not hold later
    /// for a call for which it does not hold now.
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

    /// The first such call.
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
