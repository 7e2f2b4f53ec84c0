//! The open streams of a log or of one response, with the state that metrics need until each ends.

use super::words::{RETRACTED, outcome};
use conversation::{Call, CallChange, CallState, Change, Keep, Talk, stream_of};
use event::payload::{Decision, StreamStart, ToolCallDelta, ToolResult, ToolUse};
use event::{Event, Kind, Payload, Streams};
use std::collections::HashMap;

/// Maximum number of open streams. Events of further streams are counted without times.
const MOST_STREAMS: usize = 10_000;

/// Maximum number of calls kept until they can no longer be retracted or no longer wait for a
/// person. When it is reached, all of them are counted at once.
const MOST_CALLS: usize = 10_000;

/// The open streams of a log or of one response.
#[derive(Debug)]
pub struct OpenStreams {
    open: Streams<OpenStream>,
    /// The calls of these streams.
    talk: Talk,
    /// The turns with calls that wait for a person, each with how many of its calls were counted.
    waiting: HashMap<usize, usize>,
    /// The outcomes to count: those of calls that can no longer be retracted.
    settled: Vec<&'static str>,
}

/// The measurements of one event; times in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamNews {
    /// The time since the last event of the stream that came at another time.
    pub gap: Option<u64>,
    /// The time from the start of the stream to the first event that names a call.
    pub detection: Option<u64>,
    /// Whether the event repeats an earlier one.
    pub is_repetition: bool,
}

#[derive(Debug, Default)]
struct OpenStream {
    /// The time of the last event that has a time.
    last: Option<u64>,
    /// Whether an event has named a call.
    has_call: bool,
}

impl Default for OpenStreams {
    fn default() -> Self {
        let talk = Talk::new(Keep {
            text: false,
            arguments: false,
            results: false,
        });
        OpenStreams {
            open: Streams::default(),
            talk,
            waiting: HashMap::new(),
            settled: Vec::new(),
        }
    }
}

impl OpenStreams {
    /// Processes the next event. `at` is its time in microseconds since the start of its stream.
    #[inline]
    pub(super) fn push(&mut self, event: &Event<'_>, at: Option<u64>) -> StreamNews {
        let (kind, name) = (event.kind(), stream_of(event));
        if kind == Kind::StreamStart {
            self.end(name);
        }
        if kind.begins_stream()
            && self.open.get(name).is_none()
            && (name.is_empty() || self.open.len() < MOST_STREAMS)
        {
            self.open.insert(name, OpenStream::default());
            // A filter in the middle of a pipe may not see the start of a stream, and an earlier
            // turn may still wait.
            if !self.talk.turns().is_empty() {
                let start = Payload::StreamStart(StreamStart::default());
                self.talk.push(&Event::of(&start, event.stream(), 0, None));
            }
        }
        let stream = self.open.get_mut(name);
        let is_open = stream.is_some();
        let mut news = stream.map_or_else(StreamNews::default, |stream| stream.time(event, at));
        if !is_piece(kind) || kind == Kind::ToolCallDelta && event.names_call() {
            news.is_repetition = self.take(event, is_open);
        }
        news
    }

    /// Processes an event about calls. Returns whether it repeats an earlier event.
    fn take(&mut self, event: &Event<'_>, is_open: bool) -> bool {
        match event.kind() {
            Kind::ToolCall | Kind::ToolCallDelta => {
                self.talk.push(event);
                if self.talk.calls().len() >= MOST_CALLS {
                    self.settle_all();
                }
            }
            Kind::Retract if is_open => match self.talk.push(event) {
                Change::Call(_, change) => return change == CallChange::Repeated,
                // The call was only begun.
                _ => self.settled.push(RETRACTED),
            },
            Kind::ToolUse => self.ran(event, &ToolUse::read(event).tool_id.str(), false),
            Kind::ToolResult => {
                let result = ToolResult::read(event);
                self.ran(event, &result.tool_id.str(), result.status == "pending");
            }
            Kind::StreamEnd => self.end(stream_of(event)),
            _ => {}
        }
        false
    }

    /// Processes an event about the run of the call `id`; `waits` is whether the call now waits for
    /// a person.
    fn ran(&mut self, event: &Event<'_>, id: &str, waits: bool) {
        // Calls that are no longer kept were counted already.
        if (waits || self.talk.call_of(event, id).is_some())
            && let Change::Call(at, _) = self.talk.push(event)
        {
            let turn = self.talk.calls()[at].turn;
            if self.waiting.contains_key(&turn) || self.open.get(stream_of(event)).is_none() {
                self.settle(turn);
            }
        }
    }

    /// Ends a stream: its calls can no longer be retracted.
    fn end(&mut self, name: &str) {
        if self.open.remove(name).is_some() {
            for turn in self.talk.turns_of_stream(name) {
                self.settle(turn);
            }
        }
    }

    /// Counts the calls of a turn, and forgets the turn unless one of its calls waits for a person.
    fn settle(&mut self, turn: usize) {
        let Some(calls) = self.talk.turns().get(turn).map(|turn| &turn.calls) else {
            return;
        };
        let all = || calls.iter().map(|at| &self.talk.calls()[*at]);
        let counted = self.waiting.get(&turn).copied().unwrap_or_default();
        let outcomes = all().skip(counted).filter_map(outcome_of);
        self.settled.extend(outcomes);
        if all().any(|call| call.state == CallState::Waiting) {
            self.waiting.insert(turn, calls.len());
        } else {
            self.waiting.remove(&turn);
            self.talk.forget(turn);
        }
    }

    fn settle_all(&mut self) {
        let turns: Vec<usize> = self.talk.turns().iter().map(|(at, _)| at).collect();
        let is_full = self.waiting.len() >= MOST_CALLS / 2;
        for turn in turns {
            self.settle(turn);
            if is_full {
                self.waiting.remove(&turn);
                self.talk.forget(turn);
            }
        }
    }

    /// Ends all streams.
    pub(super) fn finish(&mut self) {
        self.settle_all();
        self.open = Streams::default();
    }

    /// Returns the outcome of the next call that can no longer be retracted; `None` if there is
    /// none.
    #[inline]
    pub(super) fn next_settled(&mut self) -> Option<&'static str> {
        self.settled.pop()
    }

    /// Returns how many calls wait for a person.
    pub fn waiting(&self) -> u64 {
        let calls = self.talk.calls().iter();
        let waiting = calls.filter(|(_, call)| call.state == CallState::Waiting);
        waiting.count() as u64
    }
}

impl OpenStream {
    /// Returns the times that an event adds.
    #[inline]
    fn time(&mut self, event: &Event<'_>, at: Option<u64>) -> StreamNews {
        let Some(at) = at else {
            return StreamNews::default();
        };
        let mut times = StreamNews::default();
        match self.last {
            // Events from one read have the same time, and so have events that a command derives
            // from an event.
            Some(last) if at <= last => {}
            last => {
                times.gap = last.map(|last| at - last);
                self.last = Some(at);
            }
        }
        if !self.has_call && names_call(event) {
            self.has_call = true;
            times.detection = Some(at);
        }
        times
    }
}

/// Returns the outcome of a call that was merged or retracted; `None` for any other call.
fn outcome_of(call: &Call) -> Option<&'static str> {
    if call.retracted.is_some() {
        return Some(RETRACTED);
    }
    let code = call.refusal.as_ref().map(|refusal| &*refusal.code);
    call.is_merged.then(|| outcome(code))
}

/// Whether the event is a piece of a response or a result, the most frequent kinds.
fn is_piece(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ContentDelta
            | Kind::Thinking
            | Kind::RefusalDelta
            | Kind::ToolCallDelta
            | Kind::ToolCallPartial
            | Kind::ToolProgress
            | Kind::ServerItem
            | Kind::Details
    )
}

/// Whether this event shows that the model calls a tool.
fn names_call(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::ToolCallDelta => {
            event.names_call()
                && ToolCallDelta::read(event)
                    .tool_name
                    .is_some_and(|name| !name.is_empty())
        }
        Kind::ToolCall => true,
        Kind::Decision => Decision::read(event).tool_call,
        _ => false,
    }
}
