//! One call of a conversation, and its state.

use event::payload::{Millis, RetractReason, Status, ToolResult};
use event::{Raw, Text};

/// The state of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallState {
    /// The arguments are still arriving.
    #[default]
    Arriving,
    /// The model has asked for the call, but no command runs it yet.
    Called,
    /// The stream ended before the arguments were complete.
    Incomplete,
    /// The call must not run; [`Call::refusal`] has the reason.
    Refused,
    /// The call waits for approval.
    Waiting,
    /// A command is running the call.
    Running,
    /// The call has a result.
    Answered,
    /// A `retract` has withdrawn the call, which has no result.
    Retracted,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The position of the call's turn.
    pub turn: usize,
    /// The provider's label on the call's deltas until the merged call arrives; then the call's
    /// index in the turn.
    pub index: Option<i64>,
    /// The call's id; empty for a call without an id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON, or the text that arrived instead of arguments.
    pub arguments: String,
    /// The state of the call.
    pub state: CallState,
    /// Whether the call's `tool_call` has arrived, which means that a stage has merged its deltas.
    pub is_merged: bool,
    /// Whether the model wrote the call as text.
    pub from_text: bool,
    /// The edits that repaired the arguments, as JSON; `None` if nothing was repaired or `Keep`
    /// omits arguments.
    pub repairs: Option<String>,
    /// Why the call must not run, regardless of later events; `None` if the call was not refused.
    pub refusal: Option<Refusal>,
    /// Whether a command has run the call or is running it.
    pub was_started: bool,
    /// The hash by which an approval names the call; `None` if the call never waited for approval
    /// or `Keep` omits results.
    pub hash: Option<String>,
    /// The latest line of progress.
    pub progress: String,
    /// The result, including the result "waits for approval". If there are several, the last one
    /// counts.
    pub answer: Option<Answer>,
    /// The reason of the call's `retract`. A call that has run keeps its result.
    pub retracted: Option<String>,
    /// Whether the call's stream was cancelled before the call had a result.
    pub is_cancelled: bool,
    /// Whether the next turn of the stream has begun, so that no event can change the model's
    /// request.
    pub is_closed: bool,
    /// Whether the log has ended.
    pub is_over: bool,
    /// Whether the call's first event was its `tool_call`. If deltas are kept, the delta that
    /// completed the call follows.
    pub(crate) came_whole: bool,
}

/// Why a call must not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// A name from [`event::payload::CallErrorCode`].
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status of the `tool_result`, or `answered` if there is only a `tool` message.
    pub status: String,
    /// The complete output.
    pub output: String,
    /// The output shortened to one line.
    pub summary: String,
    /// How long the call ran.
    pub duration_ms: Option<Millis>,
    /// The exit code of the call's process.
    pub exit_code: Option<i64>,
    /// Whether the result comes from the cache.
    pub is_cached: bool,
    /// Whether the output is the answer to the user.
    pub is_final: bool,
    /// The file that contains the whole output.
    pub file: Option<String>,
    /// The size of the output in bytes before it was truncated.
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
    /// Whether the call has ended in any way. A call that waits for approval counts as ended,
    /// because no command runs it.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.state,
            CallState::Answered | CallState::Waiting | CallState::Retracted
        )
    }

    /// Whether no further event is expected to change the call. A call that was retracted because
    /// its stream failed is settled only at the end of the stream, which has the reason. A
    /// retracted call that was running is settled only when its result arrives.
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

    /// Whether further deltas may belong to the call.
    pub fn is_arriving(&self) -> bool {
        !self.is_closed && self.state == CallState::Arriving
    }

    /// Whether the log ended while the call was running.
    pub fn is_lost(&self) -> bool {
        self.is_over && self.state == CallState::Running
    }

    /// Marks the arguments as ended.
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
