//! A conversation, assembled from the events of a log: turns and calls.
//!
//! [`Talk`] is the only place that decides which turn and which call an event belongs to. All code
//! that shows, counts or looks up the contents of a log is a *projection*: a function of the `Talk`
//! and the [`Change`] of an event, or of the final `Talk`. A projection stores positions and what
//! it has written, but no calls of its own. This crate displays nothing and accesses neither files
//! nor the clock.
//!
//! A projection may assume:
//!
//! * An id names a call within its turn. A call that begins after the next `stream_start`, or after
//!   a `retract` of its id, is a different call, even with the same id. Events of a run
//!   (`tool_use`, `tool_progress`, `tool_result`, a `tool` message) name the latest call with their
//!   stream, choice and id, even after the call's turn, because tools may run longer than the turn.
//!   `call_N` names the call without an id at index N of the turn. A run whose id matches no call
//!   becomes a call of its own.
//! * Duplicate events of a stage count once: deltas and the `tool_call` merged from them, the
//!   message that repeats a stream, a `retract` by index and by id, a `tool` message and its
//!   `tool_result`.
//! * A message of the assistant without a stream is a turn of its own ([`Turn::is_message`]), so a
//!   log that contains only messages has the same turns and calls as a log of events.
//! * Positions of turns and calls are in the order of their first events, and are never reused. A
//!   turn and its calls are kept until [`Talk::forget`]. [`Call::turn`] always names a turn that is
//!   kept.
//! * A [`Change`] names the turn or the call that the event is about. A `stream_start` closes the
//!   turns of its stream, and a `stream_end` ends the arguments of the calls of its turn. To see
//!   their effect on other calls of the stream, read [`Talk::open_calls`] before the event and the
//!   calls after it.
//! * Each event takes the same time, however many turns and calls there are. Memory grows with the
//!   turns that are not forgotten and with the contents that [`Keep`] selects.

mod call;
mod kept;
mod text;
mod turn;

pub use call::{Answer, Call, CallState, Refusal};
pub use kept::Kept;
pub use text::{content, json, plain};
pub use turn::{Turn, Who};

use turn::CallName;

use event::payload::{
    Approval, ContentDelta, Error, FinishReason, Message, RefusalDelta, Retract, SessionStats,
    StreamEnd, Thinking, ToolCall, ToolCallDelta, ToolCallPartial, ToolProgress, ToolResult,
    ToolUse,
};
use event::{Choices, Event, Kind, Raw, Streams, Text};
use std::collections::{HashMap, VecDeque};

/// Returns the name of the event's stream as JSON; the name of the unnamed stream is empty.
#[inline]
pub fn stream_of<'e>(event: &Event<'e>) -> &'e str {
    event.stream().map_or("", Raw::text)
}

/// The contents of a conversation to keep, in addition to its turns and calls.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Keep the texts of the current turn of each choice.
    pub text: bool,
    /// Keep the arguments of calls and their repairs. If they are not kept, a call whose deltas no
    /// stage has merged counts as complete at the end of its stream.
    pub arguments: bool,
    /// Keep the outputs of calls and their progress.
    pub results: bool,
}

/// The part of the conversation that an event has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change: the event belongs to no turn, or to no known call.
    Nothing,
    /// The turn at this position changed.
    Turn(usize),
    /// The call at this position changed.
    Call(usize, CallChange),
}

/// The part of a call that an event has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallChange {
    /// The arguments so far changed.
    Arguments,
    /// The call's `tool_call` arrived.
    Merged,
    /// The call was started.
    Started,
    /// The progress changed.
    Progress,
    /// A result arrived.
    Answered,
    /// The call was withdrawn.
    Retracted,
    /// The call was approved or refused.
    Judged,
    /// No change: the event repeats what is already known about the call.
    Repeated,
}

/// A conversation.
#[derive(Debug)]
pub struct Talk {
    keep: Keep,
    turns: Kept<Turn>,
    calls: Kept<Call>,
    choices: Kept<ChoiceTurns>,
    /// The positions of each stream's choices in `choices`.
    streams: Streams<Choices<usize>>,
    /// The position of the previous event's turn, which is nearly always the turn of the next
    /// event.
    now: usize,
}

/// The turns of one choice of a stream.
#[derive(Clone, Debug, Default)]
pub struct ChoiceTurns {
    /// The stream and the choice.
    pub who: Who,
    /// The positions of the turns that are kept, the current turn last.
    pub turns: VecDeque<usize>,
    /// The position of the latest call with each id.
    ids: HashMap<Box<str>, usize>,
    /// The call that was named last, because the next event is likely to name it again.
    latest: Option<usize>,
}

impl Talk {
    /// Creates an empty conversation.
    pub fn new(keep: Keep) -> Talk {
        Talk {
            keep,
            turns: Kept::default(),
            calls: Kept::default(),
            choices: Kept::default(),
            streams: Streams::default(),
            now: 0,
        }
    }

    /// Returns the turns that are kept.
    #[inline]
    pub fn turns(&self) -> &Kept<Turn> {
        &self.turns
    }

    /// Returns the calls of the turns that are kept.
    #[inline]
    pub fn calls(&self) -> &Kept<Call> {
        &self.calls
    }

    /// Returns the choices of all streams in the order of their first turns, without choices whose
    /// turns are all forgotten.
    pub fn choices(&self) -> impl Iterator<Item = &ChoiceTurns> {
        self.choices.iter().map(|(_, choice)| choice)
    }

    /// Returns the stream and the choice of a call.
    pub fn who(&self, call: &Call) -> Option<&Who> {
        self.turns.get(call.turn).map(|turn| &turn.who)
    }

    /// Returns the choice that the event belongs to, or `None` if the choice is unknown.
    pub fn choice_of(&self, event: &Event<'_>) -> Option<&ChoiceTurns> {
        let now = self.turns.get(self.now);
        if let Some(turn) = now.filter(|turn| turn.who.is(event)) {
            return self.choices.get(turn.choice);
        }
        let choices = self.streams.get(stream_of(event))?;
        self.choices.get(choices[choices.find(event.choice())?])
    }

    /// Returns the current turn of the event's stream and choice.
    pub fn turn_of(&self, event: &Event<'_>) -> Option<&Turn> {
        let at = self.choice_of(event)?.turns.back()?;
        self.turns.get(*at)
    }

    /// Whether the event's choice is in the middle of a streamed turn, which a message would
    /// repeat.
    pub fn is_streaming(&self, event: &Event<'_>) -> bool {
        self.turn_of(event).is_some_and(|turn| turn.is_streaming)
    }

    /// Returns the position of the latest call with this id in the event's stream and choice.
    pub fn call_of(&self, event: &Event<'_>, id: &str) -> Option<usize> {
        self.call_in(self.choice_of(event)?, id)
    }

    /// Returns the position of the latest call with this id in a choice of the stream named
    /// `stream` (see [`stream_of`]).
    pub fn latest(&self, stream: &str, choice: u32, id: &str) -> Option<usize> {
        let choices = self.streams.get(stream)?;
        let choice = choices[choices.find(choice)?];
        self.call_in(self.choices.get(choice)?, id)
    }

    fn call_in(&self, choice: &ChoiceTurns, id: &str) -> Option<usize> {
        let placed = || {
            let place = id.strip_prefix("call_")?.parse().ok()?;
            let turn = self.turns.get(*choice.turns.back()?)?;
            let at = match turn.is_message {
                true => *turn.calls.get(usize::try_from(place).ok()?)?,
                false => turn.names.get(&CallName::Index(place))?,
            };
            let call = self.calls.get(at)?;
            call.id.is_empty().then_some(at)
        };
        let is_latest = |at: &usize| self.calls.get(*at).is_some_and(|call| call.id == id);
        let latest = || choice.latest.filter(is_latest);
        let known = || latest().or_else(|| choice.ids.get(id).copied());
        placed().or_else(known)
    }

    /// Returns the positions of the calls that the next `stream_start` of the event's stream will
    /// close.
    pub fn open_calls(&self, event: &Event<'_>) -> Vec<usize> {
        let turns = self.turns_of_stream(stream_of(event)).into_iter();
        let turns = turns.map(|turn| &self.turns[turn]);
        let calls = turns.filter(|turn| !turn.is_closed);
        let mut calls: Vec<usize> = calls.flat_map(|turn| &turn.calls).copied().collect();
        calls.sort_unstable();
        calls
    }

    /// Returns the positions of the turns of all choices of a stream, given its name (see
    /// [`stream_of`]).
    pub fn turns_of_stream(&self, stream: &str) -> Vec<usize> {
        let choices = self.stream_choices(stream).into_iter();
        let choices = choices.filter_map(|choice| self.choices.get(choice));
        choices.flat_map(|choice| &choice.turns).copied().collect()
    }

    /// Whether any call is running.
    pub fn any_runs(&self) -> bool {
        let mut calls = self.calls.iter();
        calls.any(|(_, call)| call.was_started && call.answer.is_none())
    }

    /// Applies the next event.
    pub fn push(&mut self, event: &Event<'_>) -> Change {
        match event.kind() {
            Kind::ContentDelta => {
                self.wrote(event, ContentDelta::read(event).text, |turn| &mut turn.text)
            }
            Kind::Thinking => self.wrote(event, Thinking::read(event).text, |turn| {
                &mut turn.reasoning
            }),
            Kind::RefusalDelta => self.wrote(event, RefusalDelta::read(event).text, |turn| {
                &mut turn.refusal
            }),
            Kind::ToolCallDelta => self.delta(event, &ToolCallDelta::read(event)),
            Kind::ToolCallPartial => self.partial(event, &ToolCallPartial::read(event)),
            Kind::ToolCall => self.merged(event, &ToolCall::read(event)),
            Kind::ToolUse => self.used(event, &ToolUse::read(event)),
            Kind::ToolProgress => self.progressed(event, &ToolProgress::read(event)),
            Kind::ToolResult => self.ended(event, &ToolResult::read(event)),
            Kind::Retract => self.retract(event, &Retract::read(event)),
            Kind::Approval => {
                let id = Approval::read(event).tool_id.str();
                let call = self.call_of(event, &id);
                call.map_or(Change::Nothing, |at| Change::Call(at, CallChange::Judged))
            }
            Kind::Message => {
                let message = Message::read(event).message;
                message.with(|message| self.message(event, message))
            }
            Kind::StreamStart => self.stream_start(event),
            Kind::StreamEnd => self.stream_end(event, StreamEnd::read(event).finish_reason),
            Kind::SessionStats => {
                let (at, turn) = self.touch(event);
                turn.usage.add(&SessionStats::read(event));
                Change::Turn(at)
            }
            Kind::Error => {
                let error = Error::read(event);
                let error = [error.code, error.message].map(|text| text.str().into_owned());
                let (at, turn) = self.touch(event);
                turn.error = Some(error);
                Change::Turn(at)
            }
            _ => Change::Nothing,
        }
    }

    /// Marks the log as ended: no further events of any call will arrive.
    pub fn finish(&mut self) {
        for at in 0..self.calls.end() {
            if let Some(call) = self.calls.get_mut(at) {
                call.end_arguments();
                (call.is_closed, call.is_over) = (true, true);
            }
        }
    }

    /// Removes a turn and its calls. A later event that belongs to this turn begins a new turn.
    pub fn forget(&mut self, turn: usize) {
        let Some(old) = self.turns.remove(turn) else {
            return;
        };
        let Some(choice) = self.choices.get_mut(old.choice) else {
            return;
        };
        for at in old.calls {
            if let Some(call) = self.calls.remove(at)
                && choice.ids.get(&*call.id) == Some(&at)
            {
                choice.ids.remove(&*call.id);
            }
        }
        match choice.turns.front() == Some(&turn) {
            true => _ = choice.turns.pop_front(),
            false => choice.turns.retain(|at| *at != turn),
        }
        if choice.turns.is_empty() {
            self.choices.remove(old.choice);
            if self.stream_choices(&old.who.stream).is_empty() {
                self.streams.remove(&old.who.stream);
            }
        }
    }

    // Turns

    /// Returns the position of the event's choice, which is added if it is new.
    #[inline]
    fn choice(&mut self, event: &Event<'_>) -> usize {
        let new = self.choices.end();
        let stream = self.streams.of(stream_of(event));
        let place = stream.place(event.choice(), || new);
        let at = stream[place];
        if self.choices.get(at).is_some() {
            return at;
        }
        stream[place] = new;
        self.choices.push(ChoiceTurns {
            who: Who::of(event),
            ..ChoiceTurns::default()
        })
    }

    /// Begins the next turn of a choice and returns its position.
    fn begin(&mut self, choice: usize) -> usize {
        let at = self.turns.end();
        let turns = &mut self.choices[choice];
        if let Some(last) = turns.turns.back() {
            let last = &mut self.turns[*last];
            end_arguments(last, &mut self.calls);
            last.is_past = true;
            (last.text, last.reasoning, last.refusal) = Default::default();
            last.names.clear();
        }
        turns.turns.push_back(at);
        self.turns.push(Turn {
            who: turns.who.clone(),
            is_fresh: true,
            choice,
            ..Turn::default()
        })
    }

    /// Returns the position of the current turn of a choice, which is begun if there is none.
    #[inline]
    fn current(&mut self, choice: usize) -> usize {
        match self.choices[choice].turns.back() {
            // A past turn comes last if the turn after it was forgotten.
            Some(at) if !self.turns[*at].is_past => *at,
            _ => self.begin(choice),
        }
    }

    /// Returns the position of the turn that the event belongs to.
    #[inline]
    fn turn(&mut self, event: &Event<'_>) -> usize {
        let now = self.turns.get(self.now);
        if !now.is_some_and(|turn| !turn.is_past && turn.who.is(event)) {
            let choice = self.choice(event);
            self.now = self.current(choice);
        }
        self.now
    }

    /// Returns the event's turn and its position, and marks the turn as no longer fresh.
    #[inline]
    fn touch(&mut self, event: &Event<'_>) -> (usize, &mut Turn) {
        let at = self.turn(event);
        let turn = &mut self.turns[at];
        turn.is_fresh = false;
        (at, turn)
    }

    #[inline]
    fn wrote(
        &mut self,
        event: &Event<'_>,
        text: Text<'_>,
        of: fn(&mut Turn) -> &mut String,
    ) -> Change {
        let keep = self.keep.text;
        let (at, turn) = self.touch(event);
        turn.is_streaming = true;
        if keep {
            text.append_to(of(turn));
        }
        Change::Turn(at)
    }

    /// Returns the positions of the choices of a stream.
    fn stream_choices(&self, stream: &str) -> Vec<usize> {
        let choices = self.streams.get(stream);
        let choices = choices.into_iter().flat_map(|choices| choices.iter());
        let is_kept = |at: &usize| self.choices.get(*at).is_some();
        choices.copied().filter(is_kept).collect()
    }

    fn stream_start(&mut self, event: &Event<'_>) -> Change {
        for choice in self.stream_choices(stream_of(event)) {
            let current = self.current(choice);
            if !self.turns[current].is_fresh {
                self.begin(choice);
            }
            self.close(choice);
        }
        Change::Turn(self.touch(event).0)
    }

    /// Closes all turns of a choice except the current one.
    fn close(&mut self, choice: usize) {
        for at in self.choices[choice].turns.iter().rev().skip(1) {
            let turn = &mut self.turns[*at];
            if turn.is_closed {
                break;
            }
            (turn.is_closed, turn.is_streaming) = (true, false);
            end_arguments(turn, &mut self.calls);
            for at in &turn.calls {
                self.calls[*at].is_closed = true;
            }
        }
    }

    fn stream_end(&mut self, event: &Event<'_>, reason: FinishReason) -> Change {
        let (at, turn) = self.touch(event);
        turn.finish = Some(reason);
        for choice in self.stream_choices(stream_of(event)) {
            let current = self.current(choice);
            let turn = &mut self.turns[current];
            turn.is_streaming = false;
            if reason == FinishReason::Cancelled {
                for at in &turn.calls {
                    self.calls[*at].is_cancelled |= self.calls[*at].answer.is_none();
                }
            }
            end_arguments(turn, &mut self.calls);
        }
        Change::Turn(at)
    }

    fn message(&mut self, event: &Event<'_>, message: Raw<'_>) -> Change {
        match message.get_str("role").as_deref() {
            Some("user") => {
                let mut at = self.turn(event);
                let turn = &self.turns[at];
                if !turn.is_fresh && !turn.is_streaming {
                    at = self.begin(turn.choice);
                }
                Change::Turn(at)
            }
            Some("assistant") => self.assistant(event, message),
            Some("tool") => self.tool(event, message),
            _ => Change::Nothing,
        }
    }

    fn assistant(&mut self, event: &Event<'_>, message: Raw<'_>) -> Change {
        let at = self.turn(event);
        let turn = &mut self.turns[at];
        let was_streamed = std::mem::take(&mut turn.is_streaming);
        if !was_streamed && !turn.is_fresh {
            let choice = turn.choice;
            self.begin(choice);
        }
        let keep = self.keep;
        let (at, turn) = self.touch(event);
        turn.is_message |= !was_streamed;
        if keep.text && !was_streamed {
            turn.text = content(message);
            turn.refusal = plain(message.get("refusal"));
            turn.reasoning = plain(message.get("reasoning"));
        }
        // The message of a stream adds only the calls that no event of the stream had.
        let mut calls = self.turns[at].calls.iter();
        let has_nameless = calls.any(|at| self.calls[*at].id.is_empty());
        for call in message.get("tool_calls").into_iter().flat_map(Raw::items) {
            let id = call.get_str("id");
            let is_known = |id: &str| has_nameless || self.in_turn(event, id).is_some();
            if was_streamed && id.as_deref().is_none_or(is_known) {
                continue;
            }
            let function = call.get("function").unwrap_or(call);
            let call_at = self.new_call(event, id.as_deref(), &plain(function.get("name")));
            let new = &mut self.calls[call_at];
            new.state = CallState::Called;
            if keep.arguments {
                new.arguments = plain(function.get("arguments"));
            }
        }
        Change::Turn(at)
    }

    /// Applies a `tool` message, which is the result of a call that has no `tool_result` in the
    /// log.
    fn tool(&mut self, event: &Event<'_>, message: Raw<'_>) -> Change {
        let Some(id) = message.get_str("tool_call_id") else {
            return Change::Nothing;
        };
        let at = self.ran(event, &id, || plain(message.get("name")));
        let keep = self.keep.results;
        let call = &mut self.calls[at];
        // A call that waits has no answer yet: a client or a person may supply the answer as a
        // message.
        if call.has_ended() && call.state != CallState::Waiting {
            return Change::Call(at, CallChange::Repeated);
        }
        call.answer(Answer {
            status: "answered".to_owned(),
            output: if keep {
                content(message)
            } else {
                String::new()
            },
            ..Answer::default()
        });
        Change::Call(at, CallChange::Answered)
    }

    // Calls

    fn delta(&mut self, event: &Event<'_>, delta: &ToolCallDelta<'_>) -> Change {
        self.touch(event).1.is_streaming = true;
        let (id, name) = match event.names_call() {
            true => (delta.tool_id.map(Text::str), delta.tool_name.map(Text::str)),
            false => (None, None),
        };
        let id = id.as_deref().filter(|id| !id.is_empty());
        let known = match id {
            Some(id) => self.open(event, id),
            None => self.last(event, &CallName::Label(delta.index), |call| {
                call.is_arriving() && call.index == delta.index
            }),
        };
        if known.is_none()
            && id.is_none()
            && let Some(name) = name.as_deref()
            && let whole = CallName::WholeTool(name.into())
            && let Some(at) = self.last(event, &whole, |call| call.came_whole && !call.is_closed)
        {
            self.calls[at].came_whole = false;
            return Change::Call(at, CallChange::Repeated);
        }
        let at = match known {
            Some(at) if self.calls[at].is_arriving() => at,
            // The call's `tool_call` has already arrived.
            Some(at) => return Change::Call(at, CallChange::Repeated),
            None if id.is_none() && name.is_none() => return Change::Nothing,
            None => self.new_call(event, id, name.as_deref().unwrap_or_default()),
        };
        let keep = self.keep.arguments;
        let call = &mut self.calls[at];
        let has_label = known.is_none() || call.index != delta.index;
        call.index = delta.index;
        call.from_text |= delta.from_text;
        let name = name.filter(|name| call.name.is_empty() && !name.is_empty());
        if let Some(name) = name.as_deref() {
            name.clone_into(&mut call.name);
        }
        if let Some(arguments) = delta.arguments.filter(|_| keep) {
            arguments.append_to(&mut call.arguments);
        }
        let has_id = !call.id.is_empty();
        if has_label {
            self.name(event, CallName::Label(delta.index), at);
        }
        if let Some(name) = name.filter(|_| !has_id) {
            self.name(event, CallName::ArrivingTool(name.into()), at);
        }
        Change::Call(at, CallChange::Arguments)
    }

    /// Sets the arguments so far, which are shown until the call is complete.
    fn partial(&mut self, event: &Event<'_>, partial: &ToolCallPartial<'_>) -> Change {
        self.touch(event).1.is_streaming = true;
        let id = partial.tool_id.str();
        let known = self.open(event, &id);
        let at = known.unwrap_or_else(|| self.new_call(event, Some(&id), &partial.tool_name.str()));
        let keep = self.keep.arguments;
        let call = &mut self.calls[at];
        if !call.is_arriving() {
            return Change::Call(at, CallChange::Repeated);
        }
        if keep {
            call.arguments = json(partial.arguments);
        }
        Change::Call(at, CallChange::Arguments)
    }

    fn merged(&mut self, event: &Event<'_>, whole: &ToolCall<'_>) -> Change {
        self.touch(event).1.is_streaming = true;
        let (id, name) = (whole.tool_id.str(), whole.tool_name.str());
        // A call without an id gets an id when its deltas are merged: take the first call of this
        // tool that has no id.
        let known = self.open(event, &id).or_else(|| {
            self.first(event, &CallName::ArrivingTool((*name).into()), |call| {
                call.is_arriving() && call.id.is_empty() && call.name == name
            })
        });
        let at = known.unwrap_or_else(|| self.new_call(event, Some(&id), ""));
        self.identify(at, &id);
        if let Some(index) = whole.index {
            self.name(event, CallName::Index(index), at);
        }
        if known.is_none() {
            self.name(event, CallName::WholeTool((*name).into()), at);
        }
        let keep = self.keep.arguments;
        let call = &mut self.calls[at];
        call.is_merged = true;
        call.came_whole |= known.is_none();
        call.name = name.into_owned();
        call.index = whole.index;
        if keep {
            call.arguments = match whole.arguments {
                None => whole.arguments_text.unwrap_or_default().str().into_owned(),
                arguments => json(arguments),
            };
            call.repairs = whole.repairs.map(|list| list.text().into_owned());
        }
        if let Some(error) = whole.error {
            call.refusal = Some(Refusal {
                code: error.code.str().into_owned(),
                message: error.message.str().into_owned(),
            });
        }
        if let CallState::Arriving | CallState::Called | CallState::Incomplete = call.state {
            call.state = match whole.error {
                Some(_) => CallState::Refused,
                None => CallState::Called,
            };
        }
        Change::Call(at, CallChange::Merged)
    }

    /// Returns the position of the call that an event of a run names, which is added if it is
    /// unknown.
    fn ran(&mut self, event: &Event<'_>, id: &str, name: impl Fn() -> String) -> usize {
        let known = self.call_of(event, id);
        let Some(at) = known else {
            return self.new_call(event, Some(id), &name());
        };
        self.identify(at, id);
        self.choices[self.turns[self.calls[at].turn].choice].latest = Some(at);
        at
    }

    fn used(&mut self, event: &Event<'_>, used: &ToolUse<'_>) -> Change {
        let name = || used.tool_name.str().into_owned();
        let at = self.ran(event, &used.tool_id.str(), name);
        let keep = self.keep.arguments;
        let call = &mut self.calls[at];
        if call.state == CallState::Running {
            return Change::Call(at, CallChange::Repeated);
        }
        (call.state, call.was_started) = (CallState::Running, true);
        call.answer = None;
        if keep && call.arguments.is_empty() {
            call.arguments = used.input_summary.str().into_owned();
        }
        Change::Call(at, CallChange::Started)
    }

    fn progressed(&mut self, event: &Event<'_>, progress: &ToolProgress<'_>) -> Change {
        let name = || progress.tool_name.str().into_owned();
        let at = self.ran(event, &progress.tool_id.str(), name);
        let text = progress.text.str();
        if self.keep.results
            && let Some(line) = text.lines().rfind(|line| !line.trim().is_empty())
        {
            line.clone_into(&mut self.calls[at].progress);
        }
        Change::Call(at, CallChange::Progress)
    }

    fn ended(&mut self, event: &Event<'_>, result: &ToolResult<'_>) -> Change {
        let name = || result.tool_name.str().into_owned();
        let at = self.ran(event, &result.tool_id.str(), name);
        let keep = self.keep;
        let call = &mut self.calls[at];
        let answer = Answer::of(result, keep.results);
        if call.answer.as_ref() == Some(&answer) {
            return Change::Call(at, CallChange::Repeated);
        }
        call.answer(answer);
        if let Some(hash) = result.hash.filter(|_| keep.results) {
            call.hash = Some(hash.str().into_owned());
        }
        if result.return_directly && keep.text {
            self.touch(event).1.text = result.output.str().into_owned();
        }
        Change::Call(at, CallChange::Answered)
    }

    fn retract(&mut self, event: &Event<'_>, retract: &Retract<'_>) -> Change {
        let at = match retract.tool_id {
            Some(id) => self.call_of(event, &id.str()),
            None => retract.index.and_then(|index| {
                let names = [CallName::Label(Some(index)), CallName::Index(index)];
                let latest =
                    names.map(|name| self.last(event, &name, |call| call.index == Some(index)));
                latest.into_iter().max()?
            }),
        };
        let Some(at) = at else {
            return Change::Nothing;
        };
        let call = &mut self.calls[at];
        // The call was already retracted: a stage retracts once by index and once by id.
        if call.retracted.is_some() {
            return Change::Call(at, CallChange::Repeated);
        }
        call.retracted = Some(retract.reason.str().into_owned());
        if !call.has_ended() {
            call.state = CallState::Retracted;
        }
        Change::Call(at, CallChange::Retracted)
    }

    /// Returns the call with this id in the current turn. Some servers restart the numbers of calls
    /// in each turn.
    fn in_turn(&self, event: &Event<'_>, id: &str) -> Option<usize> {
        let at = self.call_of(event, id)?;
        let call = self.calls.get(at)?;
        (!call.is_closed).then_some(at)
    }

    /// Like `in_turn`, but returns `None` for a retracted call: its id then begins a new call.
    fn open(&self, event: &Event<'_>, id: &str) -> Option<usize> {
        let at = self.in_turn(event, id)?;
        (self.calls[at].state != CallState::Retracted).then_some(at)
    }

    /// Returns the latest call of the event's turn that has this name and satisfies `is`.
    fn last(
        &mut self,
        event: &Event<'_>,
        name: &CallName,
        is: impl Fn(&Call) -> bool,
    ) -> Option<usize> {
        let (turn, calls) = (self.turn(event), &self.calls);
        let is = |at| calls.get(at).is_some_and(&is);
        self.turns[turn].names.last(name, is)
    }

    /// Returns the first call of the event's turn that has this name and satisfies `is`.
    fn first(
        &mut self,
        event: &Event<'_>,
        name: &CallName,
        is: impl Fn(&Call) -> bool,
    ) -> Option<usize> {
        let (turn, calls) = (self.turn(event), &self.calls);
        let is = |at| calls.get(at).is_some_and(&is);
        self.turns[turn].names.first(name, is)
    }

    /// Adds a name by which later events of this turn may refer to the call.
    fn name(&mut self, event: &Event<'_>, name: CallName, at: usize) {
        let turn = self.turn(event);
        self.turns[turn].names.add(name, at);
    }

    fn new_call(&mut self, event: &Event<'_>, id: Option<&str>, name: &str) -> usize {
        let at = self.calls.end();
        let (turn_at, turn) = self.touch(event);
        turn.calls.push(at);
        self.calls.push(Call {
            turn: turn_at,
            name: name.to_owned(),
            ..Call::default()
        });
        match id.filter(|id| !id.is_empty()) {
            Some(id) => self.identify(at, id),
            None => self.name(event, CallName::ArrivingTool(name.into()), at),
        }
        at
    }

    /// Sets the id of the call unless it already has an id.
    fn identify(&mut self, at: usize, id: &str) {
        let call = &mut self.calls[at];
        if call.id.is_empty() && !id.is_empty() {
            id.clone_into(&mut call.id);
            let choice = &mut self.choices[self.turns[call.turn].choice];
            choice.ids.insert(id.into(), at);
            choice.latest = Some(at);
        }
    }
}

/// Ends the arguments of the turn's calls: a call whose deltas no stage has merged is then either
/// complete or incomplete for good.
fn end_arguments(turn: &Turn, calls: &mut Kept<Call>) {
    turn.calls.iter().for_each(|at| calls[*at].end_arguments());
}
