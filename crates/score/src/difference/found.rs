//! A difference, and its description in words.

use event::{quoted, safe_json};
use serde::Serialize;
use std::fmt::Write as _;

/// A difference between two recordings, A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The place in the conversation.
    #[serde(flatten)]
    pub at: Locus,
    /// The kind of difference.
    #[serde(flatten)]
    pub what: What,
    /// The position of the first character that differs, counted from 1; `None` unless texts
    /// differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character: Option<u64>,
    /// The value in A.
    pub a: Side,
    /// The value in B.
    pub b: Side,
}

/// A place in a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Locus {
    /// The name of the conversation; `None` unless the recordings contain several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The turn, counted from 1; 0 means the conversation as a whole.
    pub turn: u64,
    /// The number of the choice.
    pub choice: u32,
    /// Whether the difference is in the assistant's message rather than in the stream before it.
    #[serde(rename = "message")]
    pub in_message: bool,
    /// The call, counted from 1; `None` outside a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
}

/// The kind of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", content = "name", rename_all = "snake_case")]
pub enum What {
    /// A conversation as a whole.
    Conversation,
    /// A turn as a whole.
    Turn,
    /// A choice as a whole.
    Choice,
    /// A message with this role.
    Prompt(String),
    /// The answer's text.
    Text,
    /// The reasoning.
    Reasoning,
    /// The refusal.
    Refusal,
    /// A call as a whole.
    Call,
    /// The name of a call's tool.
    Tool,
    /// An argument, by its path; an empty path means all arguments.
    Argument(String),
    /// The error for which a call must not run.
    CallError,
    /// The status of a result.
    Result,
    /// The output of a result.
    Output,
    /// The text of a result that the model reads.
    ToolMessage,
    /// The result of a call that the recording does not contain, by tool name.
    StrayResult(String),
    /// An item that the provider ran itself.
    ServerItem,
    /// An error of the stream.
    Error,
    /// The finish reason.
    Finish,
    /// A token count, by name.
    Usage(String),
}

/// The value in one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The value, ready to be shown: long values are cut, and hidden characters are escaped. `None`
    /// if the recording lacks it.
    pub value: Option<String>,
    /// The line with the value; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl Side {
    /// Returns a side with a value and its line.
    pub(super) fn of(value: String, line: Option<u64>) -> Self {
        Side {
            value: Some(value),
            line,
        }
    }
}

impl Difference {
    /// Returns the difference as one line of text; `names` are the names of A and B.
    pub fn words(&self, names: [&str; 2]) -> String {
        let mut out = self.at.words();
        out.push_str(&self.subject());
        match self.character {
            Some(at) => {
                let _ = write!(out, " differs at character {at}: ");
            }
            None => out.push_str(" is "),
        }
        for (side, letter, name) in [(&self.a, 'A', names[0]), (&self.b, 'B', names[1])] {
            let join = if letter == 'A' { "" } else { " and " };
            let _ = match (&side.value, side.line) {
                (None, _) => write!(out, "{join}missing in {letter}"),
                (Some(value), None) => {
                    write!(out, "{join}{value} in {letter} ({})", safe_name(name))
                }
                (Some(value), Some(line)) => write!(
                    out,
                    "{join}{value} in {letter} ({}:{line})",
                    safe_name(name)
                ),
            };
        }
        out
    }

    fn subject(&self) -> String {
        match &self.what {
            What::Conversation => "the conversation".to_owned(),
            What::Turn => "the turn".to_owned(),
            What::Choice => "the choice".to_owned(),
            What::Prompt(role) => format!("the message of {}", safe_name(role)),
            What::Text => "the text".to_owned(),
            What::Reasoning => "the reasoning".to_owned(),
            What::Refusal => "the refusal".to_owned(),
            What::Call => "the call".to_owned(),
            What::Tool => "the tool".to_owned(),
            What::Argument(path) if path.is_empty() => "the argument list".to_owned(),
            What::Argument(path) => format!("argument {}", safe_name(path)),
            What::CallError => "the error of the call".to_owned(),
            What::Result => "the status of the result".to_owned(),
            What::Output => "the output".to_owned(),
            What::ToolMessage => "the tool message".to_owned(),
            What::StrayResult(tool) => format!(
                "a result of {} for a call that is not recorded",
                safe_name(tool)
            ),
            What::ServerItem => "what the provider ran itself".to_owned(),
            What::Error => "the error of the stream".to_owned(),
            What::Finish => "finish".to_owned(),
            What::Usage(name) => name.clone(),
        }
    }
}

impl Locus {
    fn words(&self) -> String {
        let mut parts = Vec::new();
        if let Some(stream) = &self.stream {
            parts.push(format!("stream {}", safe_json(&quoted(stream))));
        }
        if self.turn > 0 {
            parts.push(format!("turn {}", self.turn));
        }
        if self.choice > 0 {
            parts.push(format!("choice {}", self.choice));
        }
        if self.in_message {
            parts.push("the message".to_owned());
        }
        if let Some(call) = self.call {
            parts.push(format!("call {call}"));
        }
        if parts.is_empty() {
            String::new()
        } else {
            parts.join(", ") + ": "
        }
    }
}

/// Returns the name of a file, a tool or an argument in a form that is safe to show.
fn safe_name(name: &str) -> String {
    crate::visible(name, 200)
}
