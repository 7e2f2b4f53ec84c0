//! One difference, and how it is put into words.

use event::{quoted, safe_json};
use serde::Serialize;
use std::fmt::Write as _;

/// One difference between two recordings, A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The place in the conversation.
    #[serde(flatten)]
    pub at: Locus,
    /// What differs.
    #[serde(flatten)]
    pub what: What,
    /// The first character that differs, from 1 on, where texts differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character: Option<u64>,
    /// What A has.
    pub a: Side,
    /// What B has.
    pub b: Side,
}

/// A place in a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Locus {
    /// The name of the conversation, where the recordings hold several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The turn, from 1 on; 0 is the conversation as a whole.
    pub turn: u64,
    /// The choice.
    pub choice: u32,
    /// Whether the difference is in the assistant's message and not in the stream before it.
    #[serde(rename = "message")]
    pub in_message: bool,
    /// The call, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", content = "name", rename_all = "snake_case")]
pub enum What {
    /// A conversation as a whole.
    Conversation,
    /// A turn as a whole.
    Turn,
    /// A choice as a whole.
    Choice,
    /// A message of this role.
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
    /// One argument, by its path, or all of them, with an empty path.
    Argument(String),
    /// The error for which a call must not run.
    CallError,
    /// The status of a result.
    Result,
    /// The output of a result.
    Output,
    /// What the model reads of a result.
    ToolMessage,
    /// The result of a call that the recording does not hold, by its tool.
    StrayResult(String),
    /// What the provider ran itself.
    ServerItem,
    /// An error of the stream.
    Error,
    /// The finish reason.
    Finish,
    /// A count of tokens.
    Usage(String),
}

/// What one recording has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The value, ready to be shown: cut where it is long, and without hidden characters. `None`
    /// where the recording lacks it.
    pub value: Option<String>,
    /// The line that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl Side {
    /// A value and its line.
    pub(super) fn of(value: String, line: Option<u64>) -> Self {
        Side {
            value: Some(value),
            line,
        }
    }
}

impl Difference {
    /// The difference in one line of words; `names` are the names of A and B.
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

/// A name of a file, a tool or an argument as it is shown.
fn safe_name(name: &str) -> String {
    crate::visible(name, 200)
}
