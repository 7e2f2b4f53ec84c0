//! One call of a conversation, put together from its events.

use super::who::Who;
use crate::escape::one_line;
use crate::value::plain;
use event::{Event, Raw};

/// The length of the brief form of arguments, in columns: that of the widest card.
pub const BRIEF: usize = 120;

/// The state of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Its arguments are still coming.
    Arriving,
    /// The model has asked for it; nothing runs it yet.
    Called,
    /// It must not run: the code of `tool_call.error`.
    Refused(String),
    Running,
    /// A `retract` has withdrawn it.
    Retracted,
    /// It has a result: the status of `tool_result`.
    Ended(String),
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct CallCard {
    pub who: Who,
    /// The provider's label on its deltas, until the merged call comes; then the position of the
    /// call.
    pub index: Option<i64>,
    pub id: String,
    pub name: String,
    /// Its arguments as JSON, or the text that came in their place.
    pub arguments: String,
    /// The arguments on one short line: `city: Oslo, days: 3`.
    pub brief: String,
    pub state: CallState,
    /// The complete output, once there is a result.
    pub output: String,
    /// A line for people: the summary of the result, or the last line of a running tool.
    pub summary: String,
    pub duration_ms: Option<f64>,
    pub exit_code: Option<i64>,
    pub is_cached: bool,
    /// Whether its result is the answer and is not shown as such yet.
    pub is_answer: bool,
    /// Whether no event can change it any more.
    pub is_closed: bool,
    /// Whether a command ran it, or still does.
    pub was_started: bool,
    /// Whether its stream was cancelled.
    pub is_cancelled: bool,
    /// Whether the input ended while it ran.
    pub is_lost: bool,
    /// Whether its first event was its `tool_call`. Where deltas are kept, the delta that completed
    /// it follows.
    pub came_whole: bool,
    /// Whether a `retract` has come, by its id or by its index.
    pub is_retracted: bool,
    /// Whether it was retracted because its stream failed.
    pub stream_failed: bool,
}

impl CallCard {
    /// A call of which only the name is known.
    pub fn new(who: Who, name: String) -> Self {
        CallCard {
            who,
            index: None,
            id: String::new(),
            name,
            arguments: String::new(),
            brief: String::new(),
            state: CallState::Arriving,
            output: String::new(),
            summary: String::new(),
            duration_ms: None,
            exit_code: None,
            is_cached: false,
            is_answer: false,
            is_closed: false,
            was_started: false,
            is_cancelled: false,
            is_lost: false,
            came_whole: false,
            is_retracted: false,
            stream_failed: false,
        }
    }

    /// Whether its card will not change any more. A call that was retracted because its stream
    /// failed waits for the end of the stream, which has the reason; one that was running waits for
    /// its result.
    pub fn is_settled(&self) -> bool {
        let waits = self.state == CallState::Retracted
            && (self.was_started || self.stream_failed && !self.is_cancelled);
        self.is_closed || self.has_ended() && !waits || self.is_cancelled && !self.was_started
    }

    /// Whether it ended, one way or another.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, CallState::Ended(_) | CallState::Retracted)
    }

    /// The text to show of its result or progress.
    pub fn result_text(&self) -> &str {
        if self.summary.is_empty() {
            &self.output
        } else {
            &self.summary
        }
    }

    /// The text that its card shows: for a command that failed its last line, on standard error if
    /// there is one.
    pub fn gist(&self) -> &str {
        match &self.state {
            CallState::Ended(status)
                if matches!(status.as_str(), "error" | "timeout" | "cancelled") =>
            {
                last_words(&self.output).unwrap_or_else(|| self.result_text())
            }
            _ => self.result_text(),
        }
    }

    /// Takes the arguments, and their brief form.
    pub fn set_arguments(&mut self, arguments: String) {
        self.brief = brief(&arguments);
        self.arguments = arguments;
    }

    /// Whether it belongs to the stream and choice of the event.
    pub fn belongs_to(&self, event: &Event<'_>) -> bool {
        self.who.is(event)
    }
}

/// The last line of standard error in the `output` of a command that failed, else of its standard
/// output. That `output` is a sentence, then `stderr:` and `stdout:`, each followed by its text.
fn last_words(output: &str) -> Option<&str> {
    let (_, written) = output
        .split_once("\nstderr:\n")
        .or_else(|| output.split_once("\nstdout:\n"))?;
    let stderr = written
        .split_once("\nstdout:\n")
        .map_or(written, |(stderr, _)| stderr);
    stderr.lines().rfind(|line| !line.trim().is_empty())
}

/// An object as `key: value, …`, any other text as it is; on one line.
fn brief(arguments: &str) -> String {
    let Ok(object) = Raw::parse(arguments) else {
        return one_line(arguments, BRIEF);
    };
    if !object.is_object() {
        return one_line(arguments, BRIEF);
    }
    let mut out = String::new();
    for (key, value) in object.entries() {
        if out.len() > 4 * BRIEF {
            break;
        }
        let comma = if out.is_empty() { "" } else { ", " };
        out.extend([comma, &key, ": ", &plain(Some(value))]);
    }
    one_line(&out, BRIEF)
}
