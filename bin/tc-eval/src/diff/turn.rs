//! One turn while it is read.

use event::payload::{
    ContentDelta, Error, RefusalDelta, ServerItem, SessionStats, StreamEnd, Thinking, ToolCall,
    ToolResult,
};
use event::{Choices, Event, Kind, Raw, Surrogates, Text};
use score::difference::{self as meaning, Arguments, Passage, Word};
use std::collections::HashMap;

/// One turn while it is read.
#[derive(Debug, Default)]
pub struct OpenTurn {
    pub turn: meaning::Turn,
    choices: Choices<OpenChoice>,
}

/// One choice while it is read.
#[derive(Debug, Default)]
struct OpenChoice {
    text: OpenPassage,
    reasoning: OpenPassage,
    refusal: OpenPassage,
    calls: Vec<OpenCall>,
    by_id: HashMap<String, usize>,
    /// The assistant's message of the recording, and the ids of its calls.
    message: Option<(meaning::Choice, Vec<String>)>,
}

/// A text that comes in pieces, between which a surrogate pair may be cut.
#[derive(Debug, Default)]
struct OpenPassage {
    passage: Passage,
    half: Surrogates,
}

impl OpenPassage {
    fn push(&mut self, text: Text<'_>, line: u64) {
        let half = &mut self.half;
        self.passage.push(line, |out| half.push_text(text, out));
    }

    fn finish(mut self) -> Passage {
        let half = &mut self.half;
        if let Some(line) = self.passage.line(usize::MAX) {
            self.passage.push(line, |out| half.finish(out));
        }
        self.passage
    }
}

/// A call while its turn is read.
#[derive(Debug, Default)]
struct OpenCall {
    call: meaning::Call,
    index: Option<i64>,
    is_retracted: bool,
    /// The arguments with which the call runs, which a message repeats: after a repair they are not
    /// those that the model wrote.
    used: Option<Arguments>,
}

impl OpenTurn {
    /// A turn that begins at `line`.
    pub fn new(line: u64) -> Self {
        OpenTurn {
            turn: meaning::Turn {
                line,
                ..Default::default()
            },
            choices: Choices::default(),
        }
    }

    /// Takes an event of the stream. `has_schema` says whether arguments were compared with the
    /// tools of the stream. Returns the id of a call that the event holds.
    pub fn take(&mut self, event: &Event<'_>, line: u64, has_schema: bool) -> Option<String> {
        let word = |text: Text<'_>| Word {
            text: text.str().into_owned(),
            line,
        };
        match event.kind() {
            Kind::ContentDelta => self
                .choice(event)
                .text
                .push(ContentDelta::read(event).text, line),
            Kind::RefusalDelta => self
                .choice(event)
                .refusal
                .push(RefusalDelta::read(event).text, line),
            Kind::Thinking => self
                .choice(event)
                .reasoning
                .push(Thinking::read(event).text, line),
            Kind::ToolCall => {
                return self
                    .choice(event)
                    .call(&ToolCall::read(event), line, has_schema);
            }
            Kind::ServerItem => self
                .turn
                .server_items
                .push(word(ServerItem::read(event).kind)),
            Kind::Error => self.turn.errors.push(word(Error::read(event).code)),
            Kind::SessionStats => self.usage(&SessionStats::read(event), line),
            Kind::StreamEnd => {
                let text = StreamEnd::read(event).finish_reason.name().to_owned();
                self.turn.finish = Some(Word { text, line });
            }
            _ => {}
        }
        None
    }

    fn choice(&mut self, event: &Event<'_>) -> &mut OpenChoice {
        self.choices.of(event.choice())
    }

    fn usage(&mut self, stats: &SessionStats, line: u64) {
        for (name, count) in [
            ("prompt_tokens", stats.prompt_tokens),
            ("completion_tokens", stats.completion_tokens),
            ("total_tokens", stats.total_tokens),
            ("reasoning_tokens", stats.reasoning_tokens),
            ("cached_tokens", stats.cached_tokens),
        ] {
            let Some(count) = count else { continue };
            self.turn.usage.retain(|(known, _)| *known != name);
            self.turn.usage.push((
                name,
                Word {
                    text: count.to_string(),
                    line,
                },
            ));
        }
    }

    /// Takes the assistant's message of the recording.
    pub fn message(&mut self, choice: u32, message: Raw<'_>, line: u64) {
        self.choices.of(choice).message = Some(choice_of(message, choice, line));
    }

    /// Makes the message the answer itself, since no stream came with it. Returns the ids of its
    /// calls.
    pub fn is_message(&mut self, choice: u32) -> Vec<String> {
        let open = self.choices.of(choice);
        let Some((message, ids)) = open.message.take() else {
            return Vec::new();
        };
        (
            open.text.passage,
            open.reasoning.passage,
            open.refusal.passage,
        ) = (message.text, message.reasoning, message.refusal);
        open.by_id = ids.iter().cloned().zip(0..).collect();
        open.calls = message
            .calls
            .into_iter()
            .map(|call| OpenCall {
                call,
                ..OpenCall::default()
            })
            .collect();
        ids
    }

    /// Takes back the call of an id.
    pub fn retract(&mut self, choice: u32, id: &str) {
        let open = self.choices.of(choice);
        if let Some(at) = open.by_id.get(id) {
            open.calls[*at].is_retracted = true;
        }
    }

    /// The call of an id in any choice.
    pub fn call(&mut self, id: &str) -> Option<&mut meaning::Call> {
        self.choices.iter_mut().find_map(|open| {
            let at = open.by_id.get(id)?;
            Some(&mut open.calls.get_mut(*at)?.call)
        })
    }

    /// The turn, once all of the recording was read.
    pub fn finish(mut self) -> meaning::Turn {
        self.choices.of(0);
        let mut choices = std::mem::take(&mut self.choices);
        for (number, open) in choices.by_number() {
            let choice = std::mem::take(open).finish(number);
            if number == 0 || !is_empty(&choice) {
                self.turn.choices.push(choice);
            }
        }
        self.turn
    }
}

impl OpenChoice {
    fn call(&mut self, event: &ToolCall<'_>, line: u64, has_schema: bool) -> Option<String> {
        let text = event.arguments_text.map(Text::str);
        let used = event.arguments.map(|json| Arguments::of(&json.text()));
        // What the model wrote, unless only a repair made JSON of it.
        let written = text.map(|text| Arguments::of(&text));
        let arguments = match (&used, written) {
            (Some(used), Some(Arguments::Text(_)) | None) => used.clone(),
            (Some(used), Some(Arguments::Json(value)))
                if !matches!(value, meaning::Value::Object(_)) =>
            {
                used.clone()
            }
            (_, Some(written)) => written,
            (None, None) => Arguments::default(),
        };
        let call = meaning::Call {
            line,
            name: event.tool_name.str().into_owned(),
            arguments,
            error: event.error.map(|error| error.code.str().into_owned()),
            has_schema,
            ..Default::default()
        };
        let open = OpenCall {
            call,
            index: event.index,
            is_retracted: false,
            used,
        };
        let id = event.tool_id.str().into_owned();
        match self.by_id.get(&id).filter(|_| !id.is_empty()) {
            // The recording has the call, and so do its deltas.
            Some(at) => self.calls[*at] = open,
            None => {
                self.by_id.insert(id.clone(), self.calls.len());
                self.calls.push(open);
            }
        }
        Some(id).filter(|id| !id.is_empty())
    }

    fn finish(mut self, number: u32) -> meaning::Choice {
        self.calls.retain(|open| !open.is_retracted);
        if self.calls.iter().all(|open| open.index.is_some()) {
            // A call that was complete first may have begun later.
            self.calls.sort_by_key(|open| open.index);
        }
        let [text, reasoning, refusal] =
            [self.text, self.reasoning, self.refusal].map(OpenPassage::finish);
        let message = self.message.map(|(message, _)| message).filter(|message| {
            let is_same = message.text.text == text.text && message.refusal.text == refusal.text;
            !is_same || !are_same(&message.calls, &self.calls)
        });
        let calls = self.calls.into_iter().map(|open| open.call).collect();
        meaning::Choice {
            number,
            text,
            reasoning,
            refusal,
            calls,
            message: message.map(Box::new),
        }
    }
}

fn is_empty(choice: &meaning::Choice) -> bool {
    let texts = [&choice.text, &choice.reasoning, &choice.refusal];
    texts.iter().all(|text| text.is_empty()) && choice.calls.is_empty() && choice.message.is_none()
}

/// Whether a message lists the calls of its stream. It repeats no call without a name, and has `{}`
/// for arguments that cannot be used.
fn are_same(message: &[meaning::Call], stream: &[OpenCall]) -> bool {
    let mut named = stream.iter().filter(|open| !open.call.name.is_empty());
    let all = message.iter().all(|call| {
        named.next().is_some_and(|open| {
            let arguments = &call.arguments;
            let is_same =
                *arguments == open.call.arguments || Some(arguments) == open.used.as_ref();
            call.name == open.call.name && (is_same || open.call.error.is_some())
        })
    });
    all && named.next().is_none()
}

/// What an assistant's message holds, and the ids of its calls.
fn choice_of(message: Raw<'_>, number: u32, line: u64) -> (meaning::Choice, Vec<String>) {
    let passage = |key: &str| {
        let text = message.get(key).map(content).unwrap_or_default();
        if text.is_empty() {
            Passage::default()
        } else {
            Passage::of(text, line)
        }
    };
    let (mut calls, mut ids) = (Vec::new(), Vec::new());
    for call in message.get("tool_calls").into_iter().flat_map(Raw::items) {
        let function = call.get("function").unwrap_or(call);
        let arguments = function
            .get("arguments")
            .map_or_else(Arguments::default, |arguments| match arguments.str() {
                Some(text) => Arguments::of(&text),
                None => Arguments::of(arguments.text()),
            });
        let name = function.get_str("name").unwrap_or_default().into_owned();
        calls.push(meaning::Call {
            line,
            name,
            arguments,
            ..Default::default()
        });
        ids.push(call.get_str("id").unwrap_or_default().into_owned());
    }
    let [text, reasoning, refusal] = ["content", "reasoning", "refusal"].map(passage);
    (
        meaning::Choice {
            number,
            text,
            reasoning,
            refusal,
            calls,
            message: None,
        },
        ids,
    )
}

/// The text of a message's content: a string, or the texts of its parts; parts of another kind as
/// their JSON.
pub fn content(value: Raw<'_>) -> String {
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

/// The result that an event holds.
pub fn result_of(event: &ToolResult<'_>, line: u64) -> meaning::ToolResult {
    let status = Word {
        text: event.status.str().into_owned(),
        line,
    };
    meaning::ToolResult {
        status,
        output: Passage::of(event.output.str().into_owned(), line),
    }
}
