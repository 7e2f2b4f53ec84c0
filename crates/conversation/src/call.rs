//! One call of a conversation, and how far it is.

use event::payload::{Millis, RetractReason, Status, ToolResult};
use event::{Raw, Text};

/// How far a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallState {
    /// Its arguments are still coming.
    #[default]
    Arriving,
    /// The model has asked for it; nothing runs it yet.
    Called,
    /// Its stream ended before its arguments did.
    Incomplete,
    /// It must not run, as [`Call::refusal`] says.
    Refused,
    /// It waits for a person.
    Waiting,
    /// A command runs it.
    Running,
    /// It has a result.
    Answered,
    /// A `retract` has withdrawn it, and it has no result.
    Retracted,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The position of its turn.
    pub turn: usize,
    /// The provider's label on its deltas, until the merged call comes; then its place in the turn.
    pub index: Option<i64>,
    /// Its id; empty for a call without one.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// Its arguments as JSON, or the text that came in their place.
    pub arguments: String,
    /// How far it is.
    pub state: CallState,
    /// Its `tool_call` has come: a stage has put it together.
    pub is_merged: bool,
    /// It was written as text.
    pub from_text: bool,
    /// The edits of a repair of its arguments, as JSON.
    pub repairs: Option<String>,
    /// Why it must not run, whatever has happened to it since.
    pub refusal: Option<Refusal>,
    /// A command ran it, or still does.
    pub was_started: bool,
    /// By which an approval names it, if it has waited for one.
    pub hash: Option<String>,
    /// The latest line of its progress.
    pub progress: String,
    /// Its result; that it waits for a person is one, too. Of several the last counts.
    pub answer: Option<Answer>,
    /// The reason of its `retract`. A call that has run keeps its result.
    pub retracted: Option<String>,
    /// Its stream was cancelled before it had a result.
    pub is_cancelled: bool,
    /// The next turn of its stream has begun, so no event can change what the model has asked.
    pub is_closed: bool,
    /// The log has ended.
    pub is_over: bool,
    /// Its first event was its `tool_call`. Where deltas are kept, the delta that completed it
    /// follows.
    pub(crate) came_whole: bool,
}

/// Why a call must not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The word of an [`event::payload::CallErrorCode`].
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status of its `tool_result`; `answered` for a `tool` message alone.
    pub status: String,
    /// The complete output.
    pub output: String,
    /// The output in one line.
    pub summary: String,
    /// How long the call ran.
    pub duration_ms: Option<Millis>,
    /// How its process ended.
    pub exit_code: Option<i64>,
    /// It comes from the cache.
    pub is_cached: bool,
    /// The output is the answer to the user.
    pub is_final: bool,
    /// The file with the whole output.
    pub file: Option<String>,
    /// How many bytes the output had before it was cut.
    pub cut_from: Option<u64>,
}

impl Answer {
    pub(crate) fn of(result: &ToolResult<'_>, keep: bool) -> Answer {
        let text = |text: Text<'_>| match keep {
            true => text.str().into_owned(),
            false => String::new(),
        };
        Answer {
            status: result.status.str().into_owned(),
            output: text(result.output),
            summary: text(result.output_summary),
            duration_ms: result.duration_ms,
            exit_code: result.exit_code,
            is_cached: result.cached,
            is_final: result.return_directly,
            file: result.output_file.map(text),
            cut_from: result.truncated.then_some(result.output_bytes),
        }
    }
}

impl Call {
    /// Whether it ended, one way or another; a call that waits for a person counts, since nothing
    /// runs it.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.state,
            CallState::Answered | CallState::Waiting | CallState::Retracted
        )
    }

    /// Whether no event is expected to change it. A call that was retracted because its stream
    /// failed waits for the end of the stream, which has the reason; one that was running waits for
    /// its result.
    pub fn is_settled(&self) -> bool {
        let waits = match self.state {
            CallState::Retracted => {
                let stream_failed = RetractReason::StreamFailed.name();
                let failed = self.retracted.as_deref() == Some(stream_failed);
                self.was_started || failed && !self.is_cancelled
            }
            state => state == CallState::Waiting,
        };
        self.is_closed || self.has_ended() && !waits || self.is_cancelled && !self.was_started
    }

    /// Whether further deltas may belong to it.
    pub fn is_arriving(&self) -> bool {
        !self.is_closed && self.state == CallState::Arriving
    }

    /// Whether the log ended while it ran.
    pub fn is_lost(&self) -> bool {
        self.is_over && self.state == CallState::Running
    }

    /// No more of its arguments come.
    pub(crate) fn end_arguments(&mut self) {
        if self.is_arriving() {
            let is_whole = Raw::parse(&self.arguments).is_ok_and(Raw::is_object);
            self.state = match is_whole || self.arguments.is_empty() {
                true => CallState::Called,
                false => CallState::Incomplete,
            };
        }
    }

    pub(crate) fn answer(&mut self, answer: Answer) {
        self.state = match answer.status == Status::Pending.name() {
            true => CallState::Waiting,
            false => CallState::Answered,
        };
        self.answer = Some(answer);
    }
}
