//! A recording by its meaning: texts, calls, results and the finish, without the ids, times and
//! pieces in which it was recorded.

use super::text;
use super::value;
use conversation::{Call, Talk};
use event::{Index, Raw, Surrogates, Text};
use std::rc::Rc;

/// A recording: a body, a tape or a log.
#[derive(Debug, Default)]
pub struct Recording {
    /// The streams of one name are one conversation, in the order in which the names appear.
    pub conversations: Vec<RecordedConversation>,
    /// Whether results of calls could be recorded: a log holds them, a body and a tape do not.
    pub holds_results: bool,
}

/// The streams of one name.
#[derive(Debug, Default)]
pub struct RecordedConversation {
    /// The name of the streams; `None` for unnamed ones.
    pub name: Option<String>,
    /// Its turns, in order.
    pub turns: Vec<RecordedTurn>,
}

/// One request and its answer.
#[derive(Debug, Default)]
pub struct RecordedTurn {
    /// The line at which it begins.
    pub line: u64,
    /// The messages of the system and of the user since the turn before: the role, and the text.
    pub prompts: Vec<(String, Passage)>,
    /// The choices of the answer, sorted by their numbers.
    pub choices: Vec<RecordedChoice>,
    /// The finish reason; `None` where the recording cannot show it.
    pub finish: Option<RecordedWord>,
    /// The kinds of what the provider ran itself.
    pub server_items: Vec<RecordedWord>,
    /// The codes of the errors of the stream.
    pub errors: Vec<RecordedWord>,
    /// Counts of tokens, by the names of the protocol's fields.
    pub usage: Vec<(&'static str, RecordedWord)>,
    /// Calls of which the recording holds nothing but the result.
    pub stray_results: Vec<RecordedCall>,
}

/// One choice of an answer.
#[derive(Debug, Default)]
pub struct RecordedChoice {
    /// Its number.
    pub number: u32,
    /// The text of the answer.
    pub text: Passage,
    /// The reasoning.
    pub reasoning: Passage,
    /// A refusal that the provider keeps apart from the text.
    pub refusal: Passage,
    /// The calls, in the order in which they began.
    pub calls: Vec<RecordedCall>,
    /// The assistant's message, where it holds something else than the stream before it.
    pub message: Option<Box<RecordedChoice>>,
}

/// What a recording tells of a call beside the conversation.
#[derive(Debug, Default)]
pub struct CallNotes {
    /// The line at which the call was known.
    pub line: u64,
    /// The arguments that the model wrote, where those of the call are their repair.
    pub written: Option<String>,
    /// Whether the arguments were compared with the schema of the tool, so that the absence of an
    /// error means something.
    pub has_schema: bool,
    /// The line of its result.
    pub result: Option<u64>,
    /// What the model reads of the result.
    pub tool_message: Passage,
}

/// A call of a tool: its place in the conversation, and what else is known of it.
#[derive(Debug)]
pub struct RecordedCall {
    /// The conversation.
    pub talk: Rc<Talk>,
    /// The position of the call in it.
    pub at: usize,
    /// What else is known.
    pub notes: CallNotes,
}

impl RecordedCall {
    /// The call.
    pub fn call(&self) -> &Call {
        &self.talk.calls()[self.at]
    }

    /// The arguments that the model wrote.
    pub fn written(&self) -> RecordedArguments<'_> {
        let written = self.notes.written.as_deref();
        written.map_or_else(|| self.used(), RecordedArguments::of)
    }

    /// The arguments with which the call runs, which a message repeats.
    pub fn used(&self) -> RecordedArguments<'_> {
        RecordedArguments::of(&self.call().arguments)
    }

    /// The code of the error for which the call must not run.
    pub fn error(&self) -> Option<&str> {
        Some(&self.call().refusal.as_ref()?.code)
    }

    /// How the call ended, and what the model gets to read.
    pub(super) fn result(&self) -> Option<(RecordedWord, Passage)> {
        let line = self.notes.result?;
        let answer = self.call().answer.as_ref()?;
        let text = answer.status.clone();
        let output = Passage::of(answer.output.clone(), line);
        Some((RecordedWord { text, line }, output))
    }

    /// The name of the tool and the arguments on one line: cut where they are long, and without
    /// hidden characters.
    pub fn request(&self) -> String {
        let written = self.written();
        let arguments = match written.json {
            Some(value) => value::shown(value),
            None => text::beginning(written.text),
        };
        format!("{} {arguments}", text::name(&self.call().name))
    }
}

/// The arguments of a call: JSON, or a text that is not JSON or was cut.
#[derive(Clone, Copy, Debug)]
pub struct RecordedArguments<'r> {
    /// As they are written.
    pub(super) text: &'r str,
    /// Their value; `None` where they are not JSON, or nested deeper than the protocol allows.
    pub json: Option<Raw<'r>>,
}

impl<'r> RecordedArguments<'r> {
    /// The arguments that `text` holds. Empty text is the empty object, as in the protocol.
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

/// A word of the recording.
#[derive(Debug, Default)]
pub struct RecordedWord {
    /// The word.
    pub text: String,
    /// Its line.
    pub line: u64,
}

/// A text that was recorded in pieces, between which a surrogate pair may be cut.
#[derive(Debug, Default)]
pub struct Passage {
    /// The text so far.
    pub text: String,
    /// Where each piece ends in the text, in bytes, and the line that it comes from.
    pieces: Vec<(usize, u64)>,
    half: Surrogates,
}

impl Passage {
    /// A text of one line of the recording.
    pub fn of(text: String, line: u64) -> Self {
        Passage {
            pieces: vec![(text.len(), line)],
            text,
            half: Surrogates::default(),
        }
    }

    /// Takes the next piece.
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

    /// The line that the byte at `at` comes from; of the end, that of the last piece. `None`
    /// without any text.
    pub fn line(&self, at: usize) -> Option<u64> {
        let piece = self.pieces.partition_point(|(end, _)| *end <= at);
        let piece = self.pieces.get(piece).or(self.pieces.last());
        piece.map(|(_, line)| *line)
    }
}
