//! The steps of a stream for a user interface. [`crate::ui::stream`] creates them from events, and
//! each protocol's writer writes them.

use crate::answer::failure::FailedAnswer;
use crate::answer::step::{ReportedUsage, TextKind};
use event::payload::{FinishReason, Status};

/// One step. A message part is a text, a piece of reasoning, a call, a source or a file. Part ids
/// are unique within a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UiStep<'s> {
    /// The stream starts.
    Start,
    /// A turn of the model starts.
    TurnStart,
    /// The turn and its calls have ended.
    TurnEnd,
    /// All parts of this turn are retracted. Clients whose protocol cannot retract parts
    /// ([`UiWriter::resets`]) continue to show them.
    Reset,
    /// A text starts.
    TextStart { kind: TextKind, id: &'s str },
    /// The next piece of the text, never empty.
    TextDelta {
        kind: TextKind,
        id: &'s str,
        text: &'s str,
    },
    /// The text has ended. `provider` is JSON that must be sent back to the provider with the
    /// reasoning.
    TextEnd {
        kind: TextKind,
        id: &'s str,
        provider: Option<&'s str>,
    },
    /// A call starts: its name is known.
    CallStart { call: UiCallName<'s> },
    /// A piece of the arguments, never empty.
    CallDelta { id: &'s str, piece: &'s str },
    /// The call is complete. `arguments` is a JSON object; `rest` is its end, which was in no
    /// [`UiStep::CallDelta`].
    CallEnd {
        call: UiCallName<'s>,
        arguments: &'s str,
        rest: &'s str,
        provider: Option<&'s str>,
    },
    /// The call cannot run. `input` is the text of its arguments, as JSON.
    CallError {
        call: UiCallName<'s>,
        input: &'s str,
        message: &'s str,
    },
    /// The user is asked to approve the call.
    Asked { id: &'s str, ask: &'s UiAsk },
    /// The user has answered the request for approval with this id.
    Answered {
        id: &'s str,
        ask: &'s str,
        is_approved: bool,
        reason: Option<&'s str>,
    },
    /// The progress of the call: a number from 0 to 1 as JSON.
    Progress {
        id: &'s str,
        is_first: bool,
        progress: Option<&'s str>,
        text: &'s str,
    },
    /// The call has its result.
    Result(UiResult<'s>),
    /// A user sent a message while the answer was being generated.
    UserMessage { id: &'s str, text: &'s str },
    /// A source that the answer cites.
    Source {
        id: &'s str,
        url: &'s str,
        title: &'s str,
    },
    /// A file that the model generated.
    File { url: &'s str, media_type: &'s str },
    /// The last step.
    End(UiEnd<'s>),
}

/// The id and tool name of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiCallName<'s> {
    /// The id of the call.
    pub id: &'s str,
    /// The tool's name.
    pub name: &'s str,
    /// Whether the service runs the call; otherwise the client does.
    pub is_own: bool,
}

/// A request for a user's approval.
#[derive(Clone, Debug, Default)]
pub(crate) struct UiAsk {
    /// The id of the request; see [`UiAsk::id_of`].
    pub id: String,
    /// Why the call needs approval.
    pub reason: String,
}

impl UiAsk {
    /// Returns the id of a call's request for approval: the call's id and its hash, so that an
    /// answer applies to exactly the call that was shown.
    pub(crate) fn id_of(call: &str, hash: &str) -> String {
        format!("{call}:{hash}")
    }

    /// Splits the id of a request for approval into the call's id and the call's hash.
    pub(crate) fn call_and_hash(id: &str) -> Option<(&str, &str)> {
        id.rsplit_once(':')
    }
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiResult<'s> {
    /// The id of the call.
    pub id: &'s str,
    /// The text for the model.
    pub output: &'s str,
    /// The status: `success`, `error` or another value of `tool_result`.
    pub status: &'s str,
    /// Whether the user rejected the call.
    pub is_refused: bool,
    /// How long the call ran, in milliseconds, as JSON.
    pub duration_ms: Option<&'s str>,
    /// Whether the result was cached.
    pub is_cached: bool,
}

impl<'s> UiResult<'s> {
    /// Creates the result of a call that was not run. `why` is the reason.
    pub(crate) fn without_run(id: &'s str, why: &'s str, status: Status) -> UiResult<'s> {
        UiResult {
            id,
            output: why,
            status: status.name(),
            is_refused: false,
            duration_ms: None,
            is_cached: false,
        }
    }
}

/// The end of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiEnd<'s> {
    /// Why the answer ended. [`FinishReason::ToolCalls`] means that calls wait for the client or
    /// for approval.
    pub reason: FinishReason,
    /// Why the answer failed, with [`FinishReason::Error`].
    pub failure: Option<&'s FailedAnswer>,
    /// Who cancelled the answer, with [`FinishReason::Cancelled`].
    pub cancelled_by: &'s str,
    /// The calls that need approval, and their requests.
    pub asked: &'s [(UiCallName<'s>, &'s UiAsk)],
    /// The ids of the calls that the client must run.
    pub clients: &'s [&'s str],
    /// The provider's name for the model; empty if unknown.
    pub model: &'s str,
    /// The tokens of all turns.
    pub usage: Option<ReportedUsage>,
}

/// Writes the steps of a stream in one protocol.
pub(crate) trait UiWriter {
    /// Appends the bytes of a step.
    fn step(&mut self, step: &UiStep<'_>, out: &mut Vec<u8>);

    /// Whether clients of the protocol can retract the parts of a turn.
    fn resets(&self) -> bool;
}

impl ReportedUsage {
    /// Writes the counts with the names that both protocols use.
    pub(crate) fn counts(&self, o: &mut event::Object<'_>) {
        o.int("inputTokens", self.input)
            .int("outputTokens", self.output)
            .int("totalTokens", self.total);
        for (name, count) in [
            ("reasoningTokens", self.reasoning),
            ("cachedInputTokens", self.cached),
        ] {
            if count > 0 {
                o.int(name, count);
            }
        }
    }
}

/// Appends a server-sent event whose data is an object with `type` as its first member.
pub(crate) fn frame(out: &mut Vec<u8>, kind: &str, fill: impl FnOnce(&mut event::Object<'_>)) {
    out.extend_from_slice(b"data: ");
    let mut data = event::Object::open(out);
    data.str("type", kind);
    fill(&mut data);
    data.close();
    out.extend_from_slice(b"\n\n");
}
