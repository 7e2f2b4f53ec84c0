//! A recording as its meaning: each stream goes through the machines of `tag-parse` (in tag mode)
//! and `tc-accumulate`, so that a body and the log that these commands made of it give the same
//! result.

use super::lines::LineCounter;
use crate::read::{self, ReadSettings};
use crate::reading::{FullReading, calls_alone};
use anyhow::Result;
use api::RecordingForm;
use conversation::{Change, Talk, stream_of};
use event::payload::{
    ContentDelta, Error, Message, RefusalDelta, ServerItem, SessionStats, StreamEnd, StreamStart,
    Thinking, ToolCall,
};
use event::{Event, Kind, Raw, Streams, Text};
use score::difference::{
    CallNotes, Passage, RecordedArguments, RecordedCall, RecordedChoice, RecordedConversation,
    RecordedTurn, RecordedWord, Recording,
};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// Reads the recording `bytes` of the file at `path`. With `with_prompts`, messages that no turn
/// follows are a turn of their own.
///
/// # Errors
/// As [`read::each_event`].
pub(crate) fn recording(
    path: &Path,
    bytes: &[u8],
    settings: &ReadSettings,
    with_prompts: bool,
) -> Result<Recording> {
    let mut lines = LineCounter::of(bytes);
    let mut conversations: Vec<OpenConversation> = Vec::new();
    let mut places: Streams<usize> = Streams::default();
    let mut reading = FullReading::new();
    read::each_event(path, bytes, settings, &mut |event, origin| {
        let name = stream_of(event);
        let at = places.get(name).copied().unwrap_or(conversations.len());
        if at == conversations.len() {
            let shown = |name: Raw<'_>| name.str().map_or_else(|| name.text().into(), Into::into);
            conversations.push(OpenConversation::new(event.stream().map(shown)));
            places.insert(name, at);
        }
        let line = lines.number(origin.offset);
        conversations[at].take(at as u64, &event.unnamed(), line, &mut reading);
    })?;
    let finish =
        |(at, open): (usize, OpenConversation)| open.finish(at as u64, &mut reading, with_prompts);
    let conversations = conversations.into_iter().enumerate().map(finish);
    Ok(Recording {
        // Events between streams may lack the name of theirs.
        conversations: conversations.filter(|one| !one.turns.is_empty()).collect(),
        holds_results: RecordingForm::of(bytes) == RecordingForm::Log,
    })
}

/// The streams of one name while their events come.
struct OpenConversation {
    name: Option<String>,
    talk: Talk,
    /// What else is known of its calls, by their positions.
    notes: HashMap<usize, CallNotes>,
    turns: Vec<OpenRecordedTurn>,
    /// Whether a stream is open.
    is_open: bool,
    /// Whether the open stream names its tools.
    has_schema: bool,
    /// Messages of the system and the user since the last turn.
    prompts: Vec<(String, Passage)>,
    prompt_line: u64,
    /// The line of the last event.
    last_line: u64,
}

/// One turn while it is read, and the assistant's messages of its choices.
#[derive(Default)]
struct OpenRecordedTurn {
    turn: RecordedTurn,
    messages: HashMap<u32, RecordedChoice>,
    /// The choices and the positions of its calls.
    calls: Vec<(u32, usize)>,
    /// The positions of the calls of its stray results.
    strays: Vec<usize>,
}

impl OpenRecordedTurn {
    /// The choice of this number.
    fn choice(&mut self, number: u32) -> &mut RecordedChoice {
        let choices = &mut self.turn.choices;
        let at = choices.binary_search_by_key(&number, |choice| choice.number);
        let at = at.unwrap_or_else(|at| {
            let choice = RecordedChoice {
                number,
                ..RecordedChoice::default()
            };
            choices.insert(at, choice);
            at
        });
        &mut choices[at]
    }
}

impl OpenConversation {
    fn new(name: Option<String>) -> Self {
        OpenConversation {
            name,
            talk: calls_alone(true),
            notes: HashMap::new(),
            turns: Vec::new(),
            is_open: false,
            has_schema: false,
            prompts: Vec::new(),
            prompt_line: 0,
            last_line: 0,
        }
    }

    /// Takes the next event. `number` is the conversation's own for the reading.
    fn take(&mut self, number: u64, event: &Event<'_>, line: u64, reading: &mut FullReading) {
        let before = std::mem::replace(&mut self.last_line, line);
        if event.kind() == Kind::StreamStart {
            self.cut(number, before, reading);
        }
        if !self.is_open {
            if !event.kind().begins_stream() {
                return self.record(event, line, true);
            }
            let start = (event.kind() == Kind::StreamStart).then(|| StreamStart::read(event));
            self.has_schema = start.is_some_and(|start| start.tools.is_some());
            self.is_open = true;
            self.turn(line);
        }
        reading.push(number, event, &mut |event, is_passed| {
            self.record(event, line, is_passed)
        });
        self.is_open = event.kind() != Kind::StreamEnd;
    }

    fn turn(&mut self, line: u64) {
        self.turns.push(OpenRecordedTurn {
            turn: RecordedTurn {
                line,
                prompts: std::mem::take(&mut self.prompts),
                ..RecordedTurn::default()
            },
            ..OpenRecordedTurn::default()
        });
    }

    /// Ends a stream that has no `stream_end`.
    fn cut(&mut self, number: u64, line: u64, reading: &mut FullReading) {
        if !self.is_open {
            return;
        }
        reading.finish(number, &mut |event, is_passed| {
            self.record(event, line, is_passed)
        });
        self.is_open = false;
        if let Some(open) = self.turns.last_mut() {
            let text = "cut".to_owned();
            open.turn.finish.get_or_insert(RecordedWord { text, line });
        }
    }

    /// Takes an event that the machines passed or wrote.
    fn record(&mut self, event: &Event<'_>, line: u64, is_passed: bool) {
        let change = self.talk.push(event);
        match (event.kind(), change) {
            (Kind::Message, _) if is_passed => self.message(event, change, line),
            (Kind::Message, _) => {}
            (Kind::ToolResult, Change::Call(at, _)) => self.result(at, line),
            // A call that is cancelled later was made, and has a result that shows it.
            (Kind::Retract, Change::Call(at, _)) if self.is_open => {
                if let Some(open) = self.turns.last_mut() {
                    open.calls.retain(|(_, call)| *call != at);
                }
            }
            (Kind::ToolCall, Change::Call(at, _)) => {
                self.call(event.choice(), at, &ToolCall::read(event), line)
            }
            _ => {
                if let Some(open) = self.turns.last_mut() {
                    take(open, event, line);
                }
            }
        }
    }

    fn call(&mut self, number: u32, at: usize, event: &ToolCall<'_>, line: u64) {
        let Some(open) = self.turns.last_mut() else {
            return;
        };
        let is_object =
            |text: &String| RecordedArguments::of(text).json.is_some_and(Raw::is_object);
        // What the model wrote, unless only a repair made an object of it.
        let written = event.arguments.and(event.arguments_text);
        let written = written.map(|text| text.str().into_owned());
        let notes = CallNotes {
            line,
            written: written.filter(is_object),
            has_schema: self.has_schema,
            ..CallNotes::default()
        };
        // The recording has the call, and so do its deltas.
        if self.notes.insert(at, notes).is_none() {
            open.calls.push((number, at));
        }
    }

    fn message(&mut self, event: &Event<'_>, change: Change, line: u64) {
        Message::read(event).message.with(|message| {
            let role = message.get_str("role").unwrap_or_default();
            let text = || message.get("content").map(content).unwrap_or_default();
            match (&*role, change) {
                ("assistant", _) if self.is_open => {
                    let mut talk = calls_alone(true);
                    talk.push(event);
                    let talk = Rc::new(talk);
                    let call = |(at, _)| {
                        let notes = CallNotes {
                            line,
                            ..CallNotes::default()
                        };
                        recorded(&talk, at, notes)
                    };
                    let number = event.choice();
                    let choice = RecordedChoice {
                        calls: talk.calls().iter().map(call).collect(),
                        ..texts_of(message, number, line)
                    };
                    let open = self.turns.last_mut();
                    open.map(|open| open.messages.insert(number, choice));
                }
                // No stream came with the message, so it is the answer itself.
                ("assistant", Change::Turn(turn)) => {
                    let number = event.choice();
                    self.turn(line);
                    for at in &self.talk.turns()[turn].calls {
                        let notes = self.notes.entry(*at).or_default();
                        notes.line = line;
                    }
                    if let Some(open) = self.turns.last_mut() {
                        let calls = self.talk.turns()[turn].calls.iter();
                        open.calls = calls.map(|at| (number, *at)).collect();
                        *open.choice(number) = texts_of(message, number, line);
                    }
                }
                ("tool", Change::Call(at, _)) => {
                    if let Some(notes) = self.notes.get_mut(&at) {
                        notes.tool_message = Passage::of(text(), line);
                    }
                }
                ("assistant" | "tool", _) => {}
                _ => {
                    self.prompt_line = line;
                    let prompt = (role.into_owned(), Passage::of(text(), line));
                    self.prompts.push(prompt);
                }
            }
        });
    }

    fn result(&mut self, at: usize, line: u64) {
        if !self.notes.contains_key(&at) {
            if self.turns.is_empty() {
                self.turn(line);
            }
            if let Some(open) = self.turns.last_mut() {
                open.strays.push(at);
            }
        }
        // Of several results the last counts: a call that waited for an approval has two.
        self.notes.entry(at).or_default().result = Some(line);
    }

    fn finish(
        mut self,
        number: u64,
        reading: &mut FullReading,
        with_prompts: bool,
    ) -> RecordedConversation {
        self.cut(number, self.last_line, reading);
        if with_prompts && !self.prompts.is_empty() {
            self.turn(self.prompt_line);
        }
        let (talk, mut notes) = (Rc::new(self.talk), self.notes);
        let mut call = |at| recorded(&talk, at, notes.remove(&at).unwrap_or_default());
        let turns = self.turns.into_iter();
        RecordedConversation {
            name: self.name,
            turns: turns.map(|open| finished(open, &mut call)).collect(),
        }
    }
}

fn recorded(talk: &Rc<Talk>, at: usize, notes: CallNotes) -> RecordedCall {
    let talk = Rc::clone(talk);
    RecordedCall { talk, at, notes }
}

fn word(text: Text<'_>, line: u64) -> RecordedWord {
    let text = text.str().into_owned();
    RecordedWord { text, line }
}

/// Takes an event of a stream that is neither a call nor a message.
fn take(open: &mut OpenRecordedTurn, event: &Event<'_>, line: u64) {
    let number = event.choice();
    match event.kind() {
        Kind::ContentDelta => {
            let text = ContentDelta::read(event).text;
            open.choice(number).text.push(text, line);
        }
        Kind::RefusalDelta => {
            let text = RefusalDelta::read(event).text;
            open.choice(number).refusal.push(text, line);
        }
        Kind::Thinking => {
            let text = Thinking::read(event).text;
            open.choice(number).reasoning.push(text, line);
        }
        Kind::ServerItem => {
            let item = word(ServerItem::read(event).kind, line);
            open.turn.server_items.push(item);
        }
        Kind::Error => open.turn.errors.push(word(Error::read(event).code, line)),
        Kind::SessionStats => {
            let stats = SessionStats::read(event);
            for (name, count) in [
                ("prompt_tokens", stats.prompt_tokens),
                ("completion_tokens", stats.completion_tokens),
                ("total_tokens", stats.total_tokens),
                ("reasoning_tokens", stats.reasoning_tokens),
                ("cached_tokens", stats.cached_tokens),
            ] {
                let Some(count) = count else { continue };
                let text = count.to_string();
                open.turn.usage.retain(|(known, _)| *known != name);
                open.turn.usage.push((name, RecordedWord { text, line }));
            }
        }
        Kind::StreamEnd => {
            let text = StreamEnd::read(event).finish_reason.name().to_owned();
            open.turn.finish = Some(RecordedWord { text, line });
        }
        _ => {}
    }
}

/// The turn, once all of the recording was read; `call` gives the call at a position.
fn finished(
    mut open: OpenRecordedTurn,
    call: &mut impl FnMut(usize) -> RecordedCall,
) -> RecordedTurn {
    open.choice(0);
    for (number, at) in std::mem::take(&mut open.calls) {
        open.choice(number).calls.push(call(at));
    }
    open.turn.stray_results = open.strays.iter().map(|at| call(*at)).collect();
    for number in open.messages.keys().copied().collect::<Vec<_>>() {
        open.choice(number);
    }
    for choice in &mut open.turn.choices {
        let number = choice.number;
        if choice.calls.iter().all(|call| call.call().index.is_some()) {
            // A call that was complete first may have begun later.
            choice.calls.sort_by_key(|call| call.call().index);
        }
        for passage in [&mut choice.text, &mut choice.reasoning, &mut choice.refusal] {
            passage.finish();
        }
        let is_other = |message: &RecordedChoice| {
            message.text.text != choice.text.text
                || message.refusal.text != choice.refusal.text
                || !are_same(&message.calls, &choice.calls)
        };
        let message = open.messages.remove(&number).filter(is_other);
        choice.message = message.map(Box::new);
    }
    open.turn.choices.retain(|choice| {
        let texts = [&choice.text, &choice.reasoning, &choice.refusal];
        let has_text = texts.iter().any(|text| !text.text.is_empty());
        choice.number == 0 || has_text || !choice.calls.is_empty() || choice.message.is_some()
    });
    open.turn
}

/// Whether a message lists the calls of its stream. It repeats no call without a name, and has `{}`
/// for arguments that cannot be used.
fn are_same(message: &[RecordedCall], stream: &[RecordedCall]) -> bool {
    let named = stream.iter().filter(|call| !call.call().name.is_empty());
    let named: Vec<&RecordedCall> = named.collect();
    message.len() == named.len()
        && message.iter().zip(named).all(|(listed, call)| {
            let arguments = listed.used();
            let is_same = arguments == call.written() || arguments == call.used();
            listed.call().name == call.call().name && (is_same || call.error().is_some())
        })
}

/// The texts of an assistant's message.
fn texts_of(message: Raw<'_>, number: u32, line: u64) -> RecordedChoice {
    let passage = |key: &str| match message.get(key).map(content).unwrap_or_default() {
        text if text.is_empty() => Passage::default(),
        text => Passage::of(text, line),
    };
    RecordedChoice {
        number,
        text: passage("content"),
        reasoning: passage("reasoning"),
        refusal: passage("refusal"),
        ..RecordedChoice::default()
    }
}

/// The text of a message's content: a string, or the texts of its parts; parts of another kind as
/// their JSON.
fn content(value: Raw<'_>) -> String {
    match value.str() {
        Some(text) => text.into_owned(),
        None if value.is_array() => {
            let part = |part: Raw<'_>| {
                part.get_str("text")
                    .map_or_else(|| part.text().to_owned(), |text| text.into())
            };
            value.items().map(part).collect()
        }
        None if value.is_null() => String::new(),
        None => value.text().to_owned(),
    }
}
