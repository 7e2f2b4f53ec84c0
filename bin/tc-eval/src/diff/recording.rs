//! A recording as its meaning: each stream goes through the machines of `tag-parse` (in tag mode)
//! and `tc-accumulate`, so that a body and the log that these commands made of it give the same
//! result.

use super::lines::LineCounter;
use crate::read::{self, ReadSettings};
use crate::reading::FullReading;
use anyhow::Result;
use api::RecordingForm;
use event::payload::{
    ContentDelta, Error, Message, RefusalDelta, Retract, ServerItem, SessionStats, StreamEnd,
    StreamStart, Thinking, ToolCall, ToolResult,
};
use event::{Event, Kind, Raw, Text};
use score::difference::{
    self as meaning, Passage, RecordedArguments, RecordedCall, RecordedChoice,
    RecordedConversation, RecordedTurn, RecordedWord, Recording,
};
use std::collections::HashMap;
use std::path::Path;

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
    // Their places, by the names of their streams as JSON; "" is the unnamed stream.
    let mut by_name: HashMap<Box<str>, usize> = HashMap::new();
    let mut reading = FullReading::new();
    read::each_event(path, bytes, settings, &mut |event, origin| {
        let name = event.stream().map_or("", |name| name.text());
        let at = by_name.get(name).copied().unwrap_or_else(|| {
            let shown = |name: Raw<'_>| name.str().map_or_else(|| name.text().into(), Into::into);
            conversations.push(OpenConversation {
                name: event.stream().map(shown),
                ..OpenConversation::default()
            });
            by_name.insert(name.into(), conversations.len() - 1);
            conversations.len() - 1
        });
        let line = lines.number(origin.offset);
        conversations[at].take(at as u64, event, line, &mut reading);
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
#[derive(Default)]
struct OpenConversation {
    name: Option<String>,
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
    /// The turn, the choice and the place of each call.
    calls: HashMap<String, (usize, u32, usize)>,
}

/// One turn while it is read, and the assistant's messages of its choices.
#[derive(Default)]
struct OpenRecordedTurn {
    turn: RecordedTurn,
    messages: HashMap<u32, RecordedChoice>,
    retracted: Vec<(u32, usize)>,
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
        match event.kind() {
            Kind::Message if is_passed => self.message(event, line),
            Kind::Message => {}
            Kind::ToolResult => self.result(&ToolResult::read(event), line),
            // A call that is cancelled later was made, and has a result that shows it.
            Kind::Retract if self.is_open => {
                let id = Retract::read(event).tool_id.map(Text::str);
                let call = id.and_then(|id| self.calls.get(&*id));
                if let (Some((turn, choice, at)), Some(last)) =
                    (call, self.turns.len().checked_sub(1))
                    && *turn == last
                {
                    self.turns[last].retracted.push((*choice, *at));
                }
            }
            Kind::ToolCall => self.call(event.choice(), &ToolCall::read(event), line),
            _ => {
                if let Some(open) = self.turns.last_mut() {
                    take(open, event, line);
                }
            }
        }
    }

    fn call(&mut self, number: u32, event: &ToolCall<'_>, line: u64) {
        let Some(last) = self.turns.len().checked_sub(1) else {
            return;
        };
        let used = event
            .arguments
            .map(|json| RecordedArguments::of(&json.text()));
        // What the model wrote, unless only a repair made an object of it.
        let written = event
            .arguments_text
            .map(|text| RecordedArguments::of(&text.str()));
        let is_object = |written: &RecordedArguments| written.json().is_some_and(Raw::is_object);
        let arguments = match (&used, written) {
            (Some(used), written) => written.filter(is_object).unwrap_or_else(|| used.clone()),
            (None, written) => written.unwrap_or_default(),
        };
        let id = event.tool_id.str().into_owned();
        let call = RecordedCall {
            line,
            index: event.index,
            name: event.tool_name.str().into_owned(),
            arguments,
            used,
            error: event.error.map(|error| error.code.str().into_owned()),
            has_schema: self.has_schema,
            id: id.clone(),
            ..RecordedCall::default()
        };
        let calls = &mut self.turns[last].choice(number).calls;
        match self
            .calls
            .get(&id)
            .filter(|known| (known.0, known.1) == (last, number))
        {
            // The recording has the call, and so do its deltas.
            Some((_, _, at)) if !id.is_empty() => calls[*at] = call,
            _ => {
                calls.push(call);
                self.calls.insert(id, (last, number, calls.len() - 1));
            }
        }
    }

    /// The call of an id.
    fn called(&mut self, id: &str) -> Option<&mut RecordedCall> {
        let (turn, choice, at) = *self.calls.get(id).filter(|_| !id.is_empty())?;
        self.turns[turn].choice(choice).calls.get_mut(at)
    }

    fn message(&mut self, event: &Event<'_>, line: u64) {
        Message::read(event).message.with(|message| {
            let role = message.get_str("role").unwrap_or_default();
            let text = || message.get("content").map(content).unwrap_or_default();
            match &*role {
                "assistant" => {
                    let number = event.choice();
                    let choice = choice_of(message, number, line);
                    if self.is_open {
                        let open = self.turns.last_mut();
                        open.map(|open| open.messages.insert(number, choice));
                        return;
                    }
                    // No stream came with the message, so it is the answer itself.
                    self.turn(line);
                    let turn = self.turns.len() - 1;
                    let ids = choice.calls.iter().map(|call| call.id.clone());
                    let places = (0..).map(|at| (turn, number, at));
                    self.calls.extend(ids.zip(places));
                    *self.turns[turn].choice(number) = choice;
                }
                "tool" => {
                    let id = message.get_str("tool_call_id").unwrap_or_default();
                    if let Some(call) = self.called(&id) {
                        call.tool_message = Passage::of(text(), line);
                    }
                }
                _ => {
                    self.prompt_line = line;
                    let prompt = (role.into_owned(), Passage::of(text(), line));
                    self.prompts.push(prompt);
                }
            }
        });
    }

    fn result(&mut self, event: &ToolResult<'_>, line: u64) {
        let result = meaning::ToolResult {
            status: word(event.status, line),
            output: Passage::of(event.output.str().into_owned(), line),
        };
        // Of several results the last counts: a call that waited for an approval has two.
        if let Some(call) = self.called(&event.tool_id.str()) {
            call.result = Some(result);
            return;
        }
        if self.turns.is_empty() {
            self.turn(line);
        }
        if let Some(open) = self.turns.last_mut() {
            let stray = (event.tool_name.str().into_owned(), result);
            open.turn.stray_results.push(stray);
        }
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
        RecordedConversation {
            name: self.name,
            turns: self.turns.into_iter().map(finished).collect(),
        }
    }
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

/// The turn, once all of the recording was read.
fn finished(mut open: OpenRecordedTurn) -> RecordedTurn {
    open.choice(0);
    for number in open.messages.keys().copied().collect::<Vec<_>>() {
        open.choice(number);
    }
    for choice in &mut open.turn.choices {
        let number = choice.number;
        let is_kept = |at: usize| !open.retracted.contains(&(number, at));
        let calls = (0..).zip(std::mem::take(&mut choice.calls));
        let calls = calls.filter(|(at, _)| is_kept(*at));
        choice.calls = calls.map(|(_, call)| call).collect();
        if choice.calls.iter().all(|call| call.index.is_some()) {
            // A call that was complete first may have begun later.
            choice.calls.sort_by_key(|call| call.index);
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
    let named: Vec<&RecordedCall> = stream.iter().filter(|call| !call.name.is_empty()).collect();
    message.len() == named.len()
        && message.iter().zip(named).all(|(listed, call)| {
            let arguments = &listed.arguments;
            let is_same = *arguments == call.arguments || Some(arguments) == call.used.as_ref();
            listed.name == call.name && (is_same || call.error.is_some())
        })
}

/// What an assistant's message holds.
fn choice_of(message: Raw<'_>, number: u32, line: u64) -> RecordedChoice {
    let passage = |key: &str| match message.get(key).map(content).unwrap_or_default() {
        text if text.is_empty() => Passage::default(),
        text => Passage::of(text, line),
    };
    let call = |call: Raw<'_>| {
        let function = call.get("function").unwrap_or(call);
        let arguments = function
            .get("arguments")
            .map(|arguments| match arguments.str() {
                Some(text) => RecordedArguments::of(&text),
                None => RecordedArguments::of(arguments.text()),
            });
        RecordedCall {
            line,
            id: call.get_str("id").unwrap_or_default().into_owned(),
            name: function.get_str("name").unwrap_or_default().into_owned(),
            arguments: arguments.unwrap_or_default(),
            ..RecordedCall::default()
        }
    };
    let calls = message.get("tool_calls").into_iter().flat_map(Raw::items);
    RecordedChoice {
        number,
        text: passage("content"),
        reasoning: passage("reasoning"),
        refusal: passage("refusal"),
        calls: calls.map(call).collect(),
        message: None,
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
