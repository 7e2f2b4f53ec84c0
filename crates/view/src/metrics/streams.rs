//! The streams of a log, or of one answer, that have not ended: what is known of each until its end.

use super::words::{RETRACTED, outcome};
use event::payload::{Decision, Retract, ToolCall, ToolCallDelta, ToolResult, ToolUse};
use event::{Event, Kind, Raw, Text};
use std::collections::{HashMap, HashSet};

/// How many named streams are open at most. The events of further ones have no times, and their
/// calls count at once.
const MOST_STREAMS: usize = 10_000;

/// How many calls of one stream are kept until they can no longer be retracted. Further calls count at
/// once.
const MOST_CALLS: usize = 10_000;

/// How many calls that wait for a person are kept at most.
const MOST_WAITING: usize = 10_000;

/// The streams of a log, or of one answer, that have not ended.
#[derive(Debug, Default)]
pub struct OpenStreams {
    unnamed: OpenStream,
    named: HashMap<Box<str>, OpenStream>,
    /// The outcomes of calls that can no longer be retracted.
    settled: Vec<&'static str>,
    /// The calls that wait for a person, by the names of their streams and their ids.
    waiting: HashSet<(Box<str>, Box<str>)>,
}

/// The fields of an event that count; times in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamNews {
    /// The time since the last moment at which an event came.
    pub gap: Option<u64>,
    /// The time from the beginning of the stream until it is known that the stream has a call.
    pub detection: Option<u64>,
    /// Whether the event repeats the content of the previous event.
    pub is_repetition: bool,
}

#[derive(Debug, Default)]
struct OpenStream {
    is_open: bool,
    /// The time of the last event that has one.
    last: Option<u64>,
    /// Whether a call was named.
    has_call: bool,
    /// The calls that can still be retracted.
    calls: Vec<EmittedCall>,
    /// The event before was a `retract` that names its call by the id alone, for this reason.
    retracted: Option<Box<str>>,
}

#[derive(Debug)]
struct EmittedCall {
    choice: u32,
    index: Option<i64>,
    id: Box<str>,
    outcome: &'static str,
}

impl OpenStreams {
    /// Takes the next event, which came `at` so many microseconds after the beginning of its stream.
    #[inline]
    pub(super) fn push(&mut self, event: &Event<'_>, at: Option<u64>) -> StreamNews {
        let kind = event.kind();
        if !is_piece(kind) {
            self.note_waiting(event);
        }
        let name = event.stream().map(Raw::text);
        let stream = match name {
            None => &mut self.unnamed,
            Some(name) => {
                if !self.named.contains_key(name) {
                    if !kind.begins_stream() {
                        return StreamNews::default();
                    }
                    if self.named.len() >= MOST_STREAMS {
                        if kind == Kind::ToolCall {
                            self.settled.push(outcome_of(&ToolCall::read(event)));
                        }
                        return StreamNews::default();
                    }
                    self.named.insert(name.into(), OpenStream::default());
                }
                match self.named.get_mut(name) {
                    Some(stream) => stream,
                    None => return StreamNews::default(),
                }
            }
        };
        if kind == Kind::StreamStart {
            stream.end(&mut self.settled);
        }
        stream.is_open |= kind.begins_stream();
        if !stream.is_open {
            return StreamNews::default();
        }
        let mut news = stream.time(event, at);
        if !is_piece(kind) {
            news.is_repetition = stream.take(event, &mut self.settled);
            if kind == Kind::StreamEnd
                && let Some(name) = name
            {
                self.named.remove(name);
            }
        }
        news
    }

    /// All streams end.
    pub(super) fn finish(&mut self) {
        self.unnamed.end(&mut self.settled);
        for mut stream in std::mem::take(&mut self.named).into_values() {
            stream.end(&mut self.settled);
        }
    }

    /// The outcome of a call that can no longer be retracted.
    #[inline]
    pub(super) fn next_settled(&mut self) -> Option<&'static str> {
        self.settled.pop()
    }

    /// How many calls wait for a person.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn note_waiting(&mut self, event: &Event<'_>) {
        let (id, waits) = match event.kind() {
            Kind::ToolResult => {
                let result = ToolResult::read(event);
                (result.tool_id, result.status == "pending")
            }
            Kind::ToolUse => (ToolUse::read(event).tool_id, false),
            _ => return,
        };
        if self.waiting.is_empty() && !waits {
            return;
        }
        let stream = event.stream().map_or("", Raw::text);
        let call = (stream.into(), id.str().into());
        if !waits {
            self.waiting.remove(&call);
        } else if self.waiting.len() < MOST_WAITING {
            self.waiting.insert(call);
        }
    }
}

impl OpenStream {
    /// The times that an event brings.
    #[inline]
    fn time(&mut self, event: &Event<'_>, at: Option<u64>) -> StreamNews {
        let Some(at) = at else {
            return StreamNews::default();
        };
        let mut times = StreamNews::default();
        match self.last {
            // Events of one read, and those that a command derives from an event, have the same time.
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

    /// Takes an event that is not a piece of an answer. Returns whether it repeats the event before.
    fn take(&mut self, event: &Event<'_>, settled: &mut Vec<&'static str>) -> bool {
        let before = self.retracted.take();
        match event.kind() {
            Kind::ToolCall => self.emitted(event, settled),
            Kind::Retract => return self.retract(event, before, settled),
            Kind::StreamEnd => self.end(settled),
            _ => {}
        }
        false
    }

    fn emitted(&mut self, event: &Event<'_>, settled: &mut Vec<&'static str>) {
        let call = ToolCall::read(event);
        let outcome = outcome_of(&call);
        if self.calls.len() < MOST_CALLS {
            self.calls.push(EmittedCall {
                choice: event.choice(),
                index: call.index,
                id: call.tool_id.str().into(),
                outcome,
            });
        } else {
            settled.push(outcome);
        }
    }

    fn retract(
        &mut self,
        event: &Event<'_>,
        before: Option<Box<str>>,
        settled: &mut Vec<&'static str>,
    ) -> bool {
        let Retract {
            index,
            tool_id,
            reason,
        } = Retract::read(event);
        let id = tool_id.map(Text::str);
        // `tc-accumulate` names the call by its id, and passes the `retract` that came, which may
        // have the provider's index alone.
        if id.is_none() && before.is_some_and(|before| reason == *before) {
            return true;
        }
        let names = |call: &&mut EmittedCall| {
            call.choice == event.choice()
                && match &id {
                    Some(id) => *call.id == **id,
                    None => call.index.is_some() && call.index == index,
                }
        };
        match self.calls.iter_mut().rev().find(names) {
            Some(call) => call.outcome = RETRACTED,
            // It was only begun.
            None => settled.push(RETRACTED),
        }
        if id.is_some() && index.is_none() {
            self.retracted = Some(reason.str().into());
        }
        false
    }

    /// Ends the stream: its calls can no longer be retracted.
    fn end(&mut self, settled: &mut Vec<&'static str>) {
        settled.extend(self.calls.drain(..).map(|call| call.outcome));
        (self.is_open, self.last, self.has_call) = (false, None, false);
    }
}

/// Whether the event is a piece of an answer or of a result, of which there are many.
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

/// Whether it is known from this event on that the model calls a tool.
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

fn outcome_of(call: &ToolCall<'_>) -> &'static str {
    let code = call.error.map(|error| error.code.str());
    outcome(code.as_deref())
}
