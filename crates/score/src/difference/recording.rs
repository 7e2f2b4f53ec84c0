//! A recording by its meaning: texts, calls, results and the finish, without the ids, times and
//! pieces in which it was recorded.

use super::text;
use super::value;
use event::{Index, Raw, Surrogates, Text};

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
    /// Results of calls that the recording does not hold, by the names of their tools.
    pub stray_results: Vec<(String, ToolResult)>,
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

/// A call of a tool.
#[derive(Debug, Default)]
pub struct RecordedCall {
    /// The line at which the call was known.
    pub line: u64,
    /// Its id, by which results and messages name it.
    pub id: String,
    /// Its place among the calls of its choice, where the recording has it.
    pub index: Option<i64>,
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub arguments: RecordedArguments,
    /// The arguments with which the call runs, which a message repeats: after a repair they are not
    /// those that the model wrote.
    pub used: Option<RecordedArguments>,
    /// The code of the error for which the call must not run.
    pub error: Option<String>,
    /// Whether the arguments were compared with the schema of the tool, so that the absence of an
    /// error means something.
    pub has_schema: bool,
    /// The result.
    pub result: Option<ToolResult>,
    /// What the model reads of the result.
    pub tool_message: Passage,
}

impl RecordedCall {
    /// The name of the tool and the arguments on one line: cut where they are long, and without
    /// hidden characters.
    pub fn request(&self) -> String {
        let arguments = match self.arguments.json() {
            Some(value) => value::shown(value),
            None => text::beginning(&self.arguments.text),
        };
        format!("{} {arguments}", text::name(&self.name))
    }
}

/// The arguments of a call: JSON, or a text that is not JSON or was cut.
#[derive(Clone, Debug, Default)]
pub struct RecordedArguments {
    /// As they are written.
    pub(super) text: String,
    is_json: bool,
}

impl RecordedArguments {
    /// The arguments that `text` holds. Empty text is the empty object, as in the protocol.
    pub fn of(text: &str) -> Self {
        let text = match text.trim_ascii() {
            "" => "{}",
            _ => text,
        };
        RecordedArguments {
            text: text.to_owned(),
            is_json: Raw::indexed(text.trim_ascii(), &mut Index::default()).is_ok(),
        }
    }

    /// Their value; `None` where they are not JSON, or nested deeper than the protocol allows.
    pub fn json(&self) -> Option<Raw<'_>> {
        Raw::parse(self.text.trim_ascii())
            .ok()
            .filter(|_| self.is_json)
    }
}

impl PartialEq for RecordedArguments {
    fn eq(&self, other: &Self) -> bool {
        match (self.json(), other.json()) {
            (Some(a), Some(b)) => json::equal(a, b),
            (a, b) => a.is_some() == b.is_some() && self.text == other.text,
        }
    }
}

/// The result of a call.
#[derive(Debug, Default)]
pub struct ToolResult {
    /// How the call ended.
    pub status: RecordedWord,
    /// What the model gets to read.
    pub output: Passage,
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
