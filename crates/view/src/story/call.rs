//! One call, as the events show it.

use super::who::Who;
use crate::escape::one_line;
use crate::value::plain;
use event::{Event, Raw};

/// How long the brief form of arguments may be, in columns: the widest card.
pub const BRIEF: usize = 120;

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Its arguments are still coming.
    Arriving,
    /// The model has asked for it; nobody has begun it.
    Called,
    /// It must not run: the code of `tool_call.error`.
    Refused(String),
    Running,
    /// It was taken back.
    Withdrawn,
    /// It has a result: the status of `tool_result`.
    Over(String),
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct CallCard {
    pub who: Who,
    /// The provider's label on its deltas, until the merged call comes; then the position of the call.
    pub index: Option<i64>,
    pub id: String,
    pub name: String,
    /// JSON, or what came in its place.
    pub arguments: String,
    /// The arguments on one short line: `city: Oslo, days: 3`.
    pub brief: String,
    pub state: CallState,
    /// The whole output, once there is a result.
    pub output: String,
    /// A line for people: the tool's own summary, or what a running tool wrote last.
    pub summary: String,
    pub duration_ms: Option<f64>,
    pub exit_code: Option<i64>,
    pub cached: bool,
    /// Whether its result is the answer, and yet to be told as such.
    pub is_answer: bool,
    /// Nothing more will be heard of it.
    pub closed: bool,
    /// Somebody began to run it.
    pub started: bool,
    /// The stream that asked for it was cancelled.
    pub cancelled: bool,
    /// The input ended while it ran.
    pub lost: bool,
    /// It was told of as a whole first. Where deltas are kept, the one that made it whole comes right behind.
    pub whole_first: bool,
    /// A `retract` of it was seen, by its id or by its index.
    pub retracted: bool,
    /// It was taken back because its stream failed.
    pub stream_failed: bool,
}

impl CallCard {
    /// A call of which nothing but its name is known.
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
            cached: false,
            is_answer: false,
            closed: false,
            started: false,
            cancelled: false,
            lost: false,
            whole_first: false,
            retracted: false,
            stream_failed: false,
        }
    }

    /// Whether it will not change any more. A call that is taken back because its stream failed waits for the stream's end,
    /// which gives the reason, and one that was running for its result.
    pub fn is_settled(&self) -> bool {
        let waits = self.state == CallState::Withdrawn && (self.started || self.stream_failed && !self.cancelled);
        self.closed || self.is_over() && !waits || self.cancelled && !self.started
    }

    /// Whether it ended, one way or another.
    pub fn is_over(&self) -> bool {
        matches!(self.state, CallState::Over(_) | CallState::Withdrawn)
    }

    /// What to show of its result or progress.
    pub fn told(&self) -> &str {
        if self.summary.is_empty() { &self.output } else { &self.summary }
    }

    /// What a card shows of it: of a command that failed, the last line it wrote, rather on its standard error.
    pub fn gist(&self) -> &str {
        match &self.state {
            CallState::Over(status) if matches!(status.as_str(), "error" | "timeout" | "cancelled") => {
                last_words(&self.output).unwrap_or_else(|| self.told())
            }
            _ => self.told(),
        }
    }

    /// Takes the arguments, and their brief form.
    pub fn set_arguments(&mut self, arguments: String) {
        self.brief = brief(&arguments);
        self.arguments = arguments;
    }

    /// Whether it belongs to the stream and choice of the event.
    pub fn here(&self, event: &Event<'_>) -> bool {
        self.who.is(event)
    }
}

/// The last line of the standard error in a failed command's `output` (what happened, then `stderr:` and `stdout:`, each with
/// what was written there), else of its standard output.
fn last_words(output: &str) -> Option<&str> {
    let (_, written) = output.split_once("\nstderr:\n").or_else(|| output.split_once("\nstdout:\n"))?;
    let stderr = written.split_once("\nstdout:\n").map_or(written, |(stderr, _)| stderr);
    stderr.lines().rfind(|line| !line.trim().is_empty())
}

/// An object as `key: value, …`, anything else as it is; on one line.
fn brief(arguments: &str) -> String {
    let Ok(object) = Raw::parse(arguments) else { return one_line(arguments, BRIEF) };
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
