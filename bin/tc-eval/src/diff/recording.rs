//! A recording as its meaning: each stream goes through the machines of `tag-parse` (in tag mode)
//! and `tc-accumulate`, so that a body and the log that these commands made of it give the same
//! result.

use super::lines::Lines;
use super::turn::{OpenTurn, content, result_of};
use crate::read::{self, ReadSettings};
use accumulate::{Accumulate, Options};
use anyhow::Result;
use api::RecordingForm;
use event::payload::{Message, Retract, StreamStart, ToolResult};
use event::{Chain, Event, Kind, Machine, Payload};
use score::difference::{Conversation, Passage, Recording};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use tag::Streams;

/// Reads the recording `bytes` of the file at `path`. With `with_prompts`, messages that no turn
/// follows are a turn of their own.
///
/// # Errors
/// As [`read::each_event`].
pub fn recording(
    path: &Path,
    bytes: &[u8],
    settings: &ReadSettings,
    with_prompts: bool,
) -> Result<Recording> {
    let mut lines = Lines::of(bytes);
    let mut reader = Reader::default();
    read::each_event(path, bytes, settings, &mut |event, origin| {
        reader.take(event, lines.number(origin.offset))
    })?;
    let conversations = reader
        .conversations
        .into_iter()
        .map(|conversation| conversation.finish(with_prompts));
    // Events between streams may lack the name of theirs.
    let conversations = conversations.filter(|conversation| !conversation.turns.is_empty());
    let holds_results = RecordingForm::of(bytes) == RecordingForm::Log;
    Ok(Recording {
        conversations: conversations.collect(),
        holds_results,
    })
}

/// The conversations while their events come.
#[derive(Default)]
struct Reader {
    conversations: Vec<OpenConversation>,
    /// Their places, by the names of their streams as JSON; "" is the unnamed stream.
    by_name: HashMap<Box<str>, usize>,
    options: Rc<Options>,
}

impl Reader {
    fn take(&mut self, event: &Event<'_>, line: u64) {
        let name = event.stream().map_or("", |name| name.text());
        let at = match self.by_name.get(name) {
            Some(at) => *at,
            None => {
                let name_of = event
                    .stream()
                    .map(|name| name.str().map_or_else(|| name.text().into(), Into::into));
                self.conversations.push(OpenConversation {
                    name: name_of,
                    ..OpenConversation::default()
                });
                self.by_name
                    .insert(name.into(), self.conversations.len() - 1);
                self.conversations.len() - 1
            }
        };
        self.conversations[at].take(event, line, &self.options);
    }
}

/// The streams of one name while their events come.
#[derive(Default)]
struct OpenConversation {
    name: Option<String>,
    turns: Vec<OpenTurn>,
    /// Whether a stream is open. Its machine is not in its place while it takes an event.
    is_open: bool,
    /// The machine of the open stream.
    machine: Option<Box<dyn Machine>>,
    /// Whether the open stream names its tools.
    has_schema: bool,
    /// Messages of the system and the user since the last turn.
    prompts: Vec<(String, Passage)>,
    prompt_line: u64,
    /// The line of the last event.
    last_line: u64,
    /// The turn of each call.
    turn_of: HashMap<String, usize>,
}

impl OpenConversation {
    fn take(&mut self, event: &Event<'_>, line: u64, options: &Rc<Options>) {
        let kind = event.kind();
        let before = std::mem::replace(&mut self.last_line, line);
        if kind == Kind::StreamStart {
            self.cut(before);
        }
        if self.machine.is_none() {
            if !kind.begins_stream() {
                return self.record(event, line, true);
            }
            self.begin(event, line, options);
        }
        if let Some(mut machine) = self.machine.take() {
            machine.push(
                event,
                &mut Recorder {
                    conversation: self,
                    event: Some(event),
                    line,
                },
            );
            self.is_open = kind != Kind::StreamEnd;
            self.machine = Some(machine).filter(|_| self.is_open);
        }
    }

    /// Begins the turn of the stream that `event` begins.
    fn begin(&mut self, event: &Event<'_>, line: u64, options: &Rc<Options>) {
        let start = (event.kind() == Kind::StreamStart).then(|| StreamStart::read(event));
        self.is_open = true;
        self.has_schema = start.is_some_and(|start| start.tools.is_some());
        self.turn(line);
        let accumulate = Accumulate::new(Rc::clone(options));
        let is_tagged = start
            .and_then(|start| start.tools_mode)
            .is_some_and(|mode| mode == "tag");
        self.machine = Some(if is_tagged {
            let mut accumulate = Some(accumulate);
            let options = Rc::clone(options);
            let make = move |_: &Event<'_>| {
                accumulate
                    .take()
                    .unwrap_or_else(|| Accumulate::new(Rc::clone(&options)))
            };
            Box::new(Chain::new(Streams::default().begin(event), make))
        } else {
            Box::new(accumulate)
        });
    }

    fn turn(&mut self, line: u64) {
        let mut turn = OpenTurn::new(line);
        turn.turn.prompts = std::mem::take(&mut self.prompts);
        self.turns.push(turn);
    }

    /// Ends a stream that has no `stream_end`.
    fn cut(&mut self, line: u64) {
        let Some(mut machine) = self.machine.take() else {
            return;
        };
        machine.finish(&mut Recorder {
            conversation: self,
            event: None,
            line,
        });
        self.is_open = false;
        if let Some(open) = self.turns.last_mut() {
            open.turn
                .finish
                .get_or_insert_with(|| score::difference::Word {
                    text: "cut".to_owned(),
                    line,
                });
        }
    }

    /// Takes an event that the machines passed (`is_recorded`) or wrote.
    fn record(&mut self, event: &Event<'_>, line: u64, is_recorded: bool) {
        match event.kind() {
            Kind::Message if is_recorded => self.message(event, line),
            Kind::Message => {}
            Kind::ToolResult => self.result(&ToolResult::read(event), line),
            // A call that is cancelled later was made, and has a result that shows it.
            Kind::Retract if self.is_open => {
                if let (Some(open), Some(id)) =
                    (self.turns.last_mut(), Retract::read(event).tool_id)
                {
                    open.retract(event.choice(), &id.str());
                }
            }
            _ => {
                let at = self.turns.len().wrapping_sub(1);
                let Some(open) = self.turns.last_mut() else {
                    return;
                };
                if let Some(id) = open.take(event, line, self.has_schema) {
                    self.turn_of.insert(id, at);
                }
            }
        }
    }

    fn message(&mut self, event: &Event<'_>, line: u64) {
        Message::read(event).message.with(|message| {
            let role = message.get_str("role").unwrap_or_default();
            let text = || message.get("content").map(content).unwrap_or_default();
            match &*role {
                "assistant" if self.is_open => {
                    if let Some(open) = self.turns.last_mut() {
                        open.message(event.choice(), message, line);
                    }
                }
                "assistant" => {
                    self.turn(line);
                    let at = self.turns.len() - 1;
                    let open = &mut self.turns[at];
                    open.message(event.choice(), message, line);
                    self.turn_of.extend(
                        open.is_message(event.choice())
                            .into_iter()
                            .map(|id| (id, at)),
                    );
                }
                "tool" => {
                    let id = message.get_str("tool_call_id").unwrap_or_default();
                    let call = self
                        .turn_of
                        .get(&*id)
                        .and_then(|at| self.turns[*at].call(&id));
                    if let Some(call) = call {
                        call.tool_message = Some(Passage::of(text(), line));
                    }
                }
                _ => {
                    self.prompt_line = line;
                    self.prompts
                        .push((role.into_owned(), Passage::of(text(), line)));
                }
            }
        });
    }

    fn result(&mut self, event: &ToolResult<'_>, line: u64) {
        let id = event.tool_id.str();
        let result = result_of(event, line);
        match self
            .turn_of
            .get(&*id)
            .and_then(|at| self.turns[*at].call(&id))
        {
            // Of several results the last counts: a call that waited for an approval has two.
            Some(call) => call.result = Some(result),
            None => {
                if self.turns.is_empty() {
                    self.turn(line);
                }
                if let Some(open) = self.turns.last_mut() {
                    open.turn
                        .stray_results
                        .push((event.tool_name.str().into_owned(), result));
                }
            }
        }
    }

    fn finish(mut self, with_prompts: bool) -> Conversation {
        self.cut(self.last_line);
        if with_prompts && !self.prompts.is_empty() {
            self.turn(self.prompt_line);
        }
        Conversation {
            name: self.name,
            turns: self.turns.into_iter().map(OpenTurn::finish).collect(),
        }
    }
}

/// Hands what the machines pass and write to the conversation.
struct Recorder<'r, 'e> {
    conversation: &'r mut OpenConversation,
    /// The event at hand; `None` at the end of the recording.
    event: Option<&'e Event<'e>>,
    line: u64,
}

impl event::Sink for Recorder<'_, '_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.conversation.record(event, self.line, true);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.conversation
            .record(&Event::of(payload, None, choice, None), self.line, false);
    }
}
