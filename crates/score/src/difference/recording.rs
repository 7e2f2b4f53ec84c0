//! The meaning of a recording: texts, calls, results and finish reasons, without ids, times and the
//! pieces in which they arrived.

use super::text;
use super::value;
use conversation::{Call, Talk};
use event::{Index, Raw, Surrogates, Text};
use std::rc::Rc;

/// A recording: a body, a tape or a log.
#[derive(Debug, Default)]
pub struct Recording {
    /// The conversations, each made of the streams with one name, in the order in which the names
    /// appear.
    pub conversations: Vec<RecordedConversation>,
    /// Whether the recording can contain results of calls: a log can, a body and a tape cannot.
    pub holds_results: bool,
}

/// The streams with one name.
#[derive(Debug, Default)]
pub struct RecordedConversation {
    /// The name of the streams; `None` if they are unnamed.
    pub name: Option<String>,
    /// The turns, in order.
    pub turns: Vec<RecordedTurn>,
}

/// A request with its answer.
#[derive(Debug, Default)]
pub struct RecordedTurn {
    /// The line at which the turn starts.
    pub line: u64,
    /// The system and user messages since the previous turn: the role and the text of each.
    pub prompts: Vec<(String, Passage)>,
    /// The choices of the answer, sorted by their numbers.
    pub choices: Vec<RecordedChoice>,
    /// The finish reason; `None` if the recording cannot show it.
    pub finish: Option<RecordedWord>,
    /// The kinds of the items that the provider ran itself.
    pub server_items: Vec<RecordedWord>,
    /// The error codes of the stream.
    pub errors: Vec<RecordedWord>,
    /// Token counts, by the field names of the protocol.
    pub usage: Vec<(&'static str, RecordedWord)>,
    /// Calls of which the recording contains only the result.
    pub stray_results: Vec<RecordedCall>,
}

/// One choice of an answer.
#[derive(Debug, Default)]
pub struct RecordedChoice {
    /// The number of the choice.
    pub number: u32,
    /// The text of the answer.
    pub text: Passage,
    /// The reasoning.
    pub reasoning: Passage,
    /// The refusal, if the provider separates it from the text.
    pub refusal: Passage,
    /// The calls, in the order in which they started.
    pub calls: Vec<RecordedCall>,
    /// The assistant's message; `None` unless it differs from the stream before it.
    pub message: Option<Box<RecordedChoice>>,
}

/// Facts about a recorded call that the conversation does not store.
#[derive(Debug, Default)]
pub struct CallNotes {
    /// The line at which the call became known.
    pub line: u64,
    /// The arguments that the model wrote; `None` if they were not repaired.
    pub written: Option<String>,
    /// Whether the arguments were checked against the tool's schema, so that the absence of an
    /// error is meaningful.
    pub has_schema: bool,
    /// The line of the result; `None` without a result.
    pub result: Option<u64>,
    /// The text of the result that the model reads.
    pub tool_message: Passage,
}

/// A tool call: its position in the conversation, and further facts about it.
#[derive(Debug)]
pub struct RecordedCall {
    /// The conversation that contains the call.
    pub talk: Rc<Talk>,
    /// The index of the call in the conversation.
    pub at: usize,
    /// Further facts about the call.
    pub notes: CallNotes,
}

impl RecordedCall {
    /// Returns the call.
    pub fn call(&self) -> &Call {
        &self.talk.calls()[self.at]
    }

    /// Returns the arguments that the model wrote.
    pub fn written(&self) -> RecordedArguments<'_> {
        let written = self.notes.written.as_deref();
        written.map_or_else(|| self.used(), RecordedArguments::of)
    }

    /// Returns the arguments with which the call runs, which a message repeats.
    pub fn used(&self) -> RecordedArguments<'_> {
        RecordedArguments::of(&self.call().arguments)
    }

    /// Returns the code of the error that prevents the call from running; `None` if there is no
    /// error.
    pub fn error(&self) -> Option<&str> {
        Some(&self.call().refusal.as_ref()?.code)
    }

    /// Returns the status and the output of the call; `None` without a result.
    pub(super) fn result(&self) -> Option<(RecordedWord, Passage)> {
        let line = self.notes.result?;
        let answer = self.call().answer.as_ref()?;
        let text = answer.status.clone();
        let output = Passage::of(answer.output.clone(), line);
        Some((RecordedWord { text, line }, output))
    }

    /// Returns the tool name and the arguments on one line; long arguments are cut, and hidden
    /// characters are escaped.
    pub fn request(&self) -> String {
        let written = self.written();
        let arguments = match written.json {
            Some(value) => value::shown(value),
            None => text::beginning(written.text),
        };
        format!("{} {arguments}", text::name(&self.call().name))
    }
}

/// The arguments of a call: JSON, or text that is invalid JSON or was cut off.
#[derive(Clone, Copy, Debug)]
pub struct RecordedArguments<'r> {
    /// The arguments as written.
    pub(super) text: &'r str,
    /// The parsed value; `None` if the text is not JSON, or is nested deeper than the protocol
    /// allows.
    pub json: Option<Raw<'r>>,
}

impl<'r> RecordedArguments<'r> {
    /// Parses the arguments in `text`. Empty text means the empty object, as in the protocol.
    pub fn of(text: &'r str) -> Self {
        let (text, json) = match text.trim_ascii() {
            "" => ("{}", "{}"),
            json => (text, json),
        };
        let is_json = Raw::indexed(json, &mut Index::default()).is_ok();
        RecordedArguments {
            text,
            json: Raw::parse(json).ok().filter(|_| is_json),
        }
    }
}

impl PartialEq for RecordedArguments<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.json, other.json) {
            (Some(a), Some(b)) => json::equal(a, b),
            (a, b) => a.is_some() == b.is_some() && self.text == other.text,
        }
    }
}

/// A short string of the recording, with its line.
#[derive(Debug, Default)]
pub struct RecordedWord {
    /// The string.
    pub text: String,
    /// The line number.
    pub line: u64,
}

/// A text recorded in pieces; a surrogate pair may be split between two pieces.
#[derive(Debug, Default)]
pub struct Passage {
    /// The text so far.
    pub text: String,
    /// The end of each piece, as a byte offset in the text, with the line that contains the piece.
    pieces: Vec<(usize, u64)>,
    half: Surrogates,
}

impl Passage {
    /// Returns a text from a single line of the recording.
    pub fn of(text: String, line: u64) -> Self {
        Passage {
            pieces: vec![(text.len(), line)],
            text,
            half: Surrogates::default(),
        }
    }

    /// Appends the next piece.
    pub fn push(&mut self, text: Text<'_>, line: u64) {
        self.half.push_text(text, &mut self.text);
        match self.pieces.last_mut() {
            Some((end, last)) if *last == line => *end = self.text.len(),
            _ => self.pieces.push((self.text.len(), line)),
        }
    }

    /// Handles the end of the text.
    pub fn finish(&mut self) {
        self.half.finish(&mut self.text);
        if let Some((end, _)) = self.pieces.last_mut() {
            *end = self.text.len();
        }
    }

    /// Returns the line with the byte at offset `at`; for the end of the text, the line of the last
    /// piece. Returns `None` if there is no text.
    pub fn line(&self, at: usize) -> Option<u64> {
        let piece = self.pieces.partition_point(|(end, _)| *end <= at);
        let piece = self.pieces.get(piece).or(self.pieces.last());
        piece.map(|(_, line)| *line)
    }
}
