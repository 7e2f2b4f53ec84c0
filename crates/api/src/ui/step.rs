//! The steps of a stream for a user interface. [`crate::ui::stream`] makes them of events, and the
//! writer of each protocol writes them.

use crate::answer::failure::FailedAnswer;
use crate::answer::step::{ReportedUsage, TextKind};
use event::payload::{FinishReason, Status};

/// One step. A part of the message is a text, a piece of reasoning, a call, a source or a file; the
/// id of a part occurs once in a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UiStep<'s> {
    /// The stream begins.
    Start,
    /// A turn of the model begins.
    TurnStart,
    /// The turn and its calls have ended.
    TurnEnd,
    /// All parts of this turn are taken back. A client whose protocol cannot take parts back
    /// ([`UiWriter::resets`]) goes on showing them.
    Reset,
    /// A text begins.
    TextStart { kind: TextKind, id: &'s str },
    /// The next piece of the text, never empty.
    TextDelta {
        kind: TextKind,
        id: &'s str,
        text: &'s str,
    },
    /// The text has ended. `provider` is JSON that the provider wants back with reasoning.
    TextEnd {
        kind: TextKind,
        id: &'s str,
        provider: Option<&'s str>,
    },
    /// A call begins: its name is known.
    CallStart { call: UiCallName<'s> },
    /// The next piece of the arguments, never empty.
    CallDelta { id: &'s str, piece: &'s str },
    /// The call is complete. `arguments` is a JSON object, and `rest` is the end of it that no
    /// [`UiStep::CallDelta`] had.
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
    /// A person is asked whether the call may run.
    Asked { id: &'s str, ask: &'s UiAsk },
    /// A person has answered the question with this id.
    Answered {
        id: &'s str,
        ask: &'s str,
        is_approved: bool,
        reason: Option<&'s str>,
    },
    /// How far the call has come: `progress` is a number from 0 to 1 as JSON.
    Progress {
        id: &'s str,
        is_first: bool,
        progress: Option<&'s str>,
        text: &'s str,
    },
    /// The call has its result.
    Result(UiResult<'s>),
    /// A user has sent a message while the answer is made.
    UserMessage { id: &'s str, text: &'s str },
    /// A source that the answer cites.
    Source {
        id: &'s str,
        url: &'s str,
        title: &'s str,
    },
    /// A file that the model made.
    File { url: &'s str, media_type: &'s str },
    /// The last step.
    End(UiEnd<'s>),
}

/// The id and the tool of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiCallName<'s> {
    /// The id of the call.
    pub id: &'s str,
    /// The tool's name.
    pub name: &'s str,
    /// Whether the service runs the call; else the client does.
    pub is_own: bool,
}

/// A question to a person.
#[derive(Clone, Debug, Default)]
pub(crate) struct UiAsk {
    /// The id of the question, see [`UiAsk::id_of`].
    pub id: String,
    /// Why the call waits.
    pub reason: String,
}

impl UiAsk {
    /// The id of the question about a call: the call's id and its hash, so that an answer names
    /// exactly the call that was shown.
    pub(crate) fn id_of(call: &str, hash: &str) -> String {
        format!("{call}:{hash}")
    }

    /// The id of the call that a question is about, and the hash of the call.
    pub(crate) fn call_and_hash(id: &str) -> Option<(&str, &str)> {
        id.rsplit_once(':')
    }
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiResult<'s> {
    /// The id of the call.
    pub id: &'s str,
    /// The text that the model reads.
    pub output: &'s str,
    /// `success`, `error` and the other words of `tool_result`.
    pub status: &'s str,
    /// Whether a person has refused the call.
    pub is_refused: bool,
    /// How long the call ran, in milliseconds, as JSON.
    pub duration_ms: Option<&'s str>,
    /// Whether the result was taken from the cache.
    pub is_cached: bool,
}

impl<'s> UiResult<'s> {
    /// The result of a call that has not run: `why`.
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
    /// Why the answer ends. With [`FinishReason::ToolCalls`] calls wait for the client or for a
    /// person.
    pub reason: FinishReason,
    /// Why the answer failed, with [`FinishReason::Error`].
    pub failure: Option<&'s FailedAnswer>,
    /// Who cancelled the answer, with [`FinishReason::Cancelled`].
    pub cancelled_by: &'s str,
    /// The calls that wait for a person, and their questions.
    pub asked: &'s [(UiCallName<'s>, &'s UiAsk)],
    /// The ids of the calls that wait for the client.
    pub clients: &'s [&'s str],
    /// The model, as the provider names it; empty where it is unknown.
    pub model: &'s str,
    /// The tokens of all turns.
    pub usage: Option<ReportedUsage>,
}

/// Writes the steps of a stream in one protocol.
pub(crate) trait UiWriter {
    /// Appends the bytes of a step.
    fn step(&mut self, step: &UiStep<'_>, out: &mut Vec<u8>);

    /// Whether a client of the protocol takes back the parts of a turn.
    fn resets(&self) -> bool;
}

impl ReportedUsage {
    /// Writes the counts by the names that both protocols have for them.
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

/// Appends a server-sent event whose data is an object with the member `type` first.
pub(crate) fn frame(out: &mut Vec<u8>, kind: &str, fill: impl FnOnce(&mut event::Object<'_>)) {
    out.extend_from_slice(b"data: ");
    let mut data = event::Object::open(out);
    data.str("type", kind);
    fill(&mut data);
    data.close();
    out.extend_from_slice(b"\n\n");
}
