//! What a stream for a user interface is made of. [`crate::ui::stream`] makes steps of events, and
//! the writer of each protocol writes them.

use crate::answer::step::ReportedUsage;

/// One step. A part of the message is a text, a piece of reasoning or a call; the parts of texts and
/// reasoning have ids that no other part of the stream has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UiStep<'s> {
    /// The stream begins.
    Start,
    /// A turn of the model begins.
    TurnStart,
    /// The turn and the calls of it have ended.
    TurnEnd,
    /// All parts of this turn are taken back. Only for a writer that [`UiWriter::resets`].
    Reset,
    /// The same for a writer that does not: what the turn has shown stays where it is.
    TakenBack,
    /// A text begins.
    TextStart { id: &'s str },
    /// Its next piece, which is not empty.
    TextDelta { id: &'s str, text: &'s str },
    /// It has ended.
    TextEnd { id: &'s str },
    /// Reasoning begins.
    ThinkingStart { id: &'s str },
    /// Its next piece, which is not empty.
    ThinkingDelta { id: &'s str, text: &'s str },
    /// It has ended. `provider` is JSON that the provider wants back.
    ThinkingEnd {
        id: &'s str,
        provider: Option<&'s str>,
    },
    /// A call begins: its name is known.
    CallStart { call: UiCallName<'s> },
    /// The next piece of its arguments, which is not empty.
    CallDelta { id: &'s str, piece: &'s str },
    /// The call is complete. `arguments` is a JSON object, and `rest` what of it no piece had.
    CallEnd {
        call: UiCallName<'s>,
        arguments: &'s str,
        rest: &'s str,
        provider: Option<&'s str>,
    },
    /// The call cannot run. `input` is the JSON of what came of its arguments.
    CallError {
        call: UiCallName<'s>,
        input: &'s str,
        message: &'s str,
    },
    /// A person is asked whether the call may run.
    Asked { id: &'s str, ask: &'s UiAsk },
    /// The question is answered.
    Answered {
        id: &'s str,
        ask: &'s str,
        is_approved: bool,
    },
    /// How far the call has come: `progress` is a number from 0 to 1 as JSON.
    Progress {
        id: &'s str,
        progress: Option<&'s str>,
        text: &'s str,
    },
    /// The call has its result.
    Output {
        id: &'s str,
        output: &'s str,
        facts: &'s UiResultFacts<'s>,
    },
    /// The call has failed, or was refused or cancelled.
    Failed {
        id: &'s str,
        message: &'s str,
        facts: &'s UiResultFacts<'s>,
    },
    /// A person has refused the call.
    Denied {
        id: &'s str,
        message: &'s str,
        facts: &'s UiResultFacts<'s>,
    },
    /// A user has said something while the answer is made.
    Said { id: &'s str, text: &'s str },
    /// A source that the answer cites.
    Source {
        id: &'s str,
        url: &'s str,
        title: &'s str,
    },
    /// A file that the model made.
    File { url: &'s str, media_type: &'s str },
    /// What is known at the end beside the parts.
    Facts(&'s UiFacts),
    /// The answer has failed.
    Error { code: &'s str, message: &'s str },
    /// The answer was cancelled.
    Abort { by: &'s str },
    /// The last step, unless the answer was cancelled.
    Finish {
        reason: UiEnd,
        /// The questions that wait for an answer.
        asked: &'s [(UiCallName<'s>, &'s UiAsk)],
        /// The calls that wait for the client, by their ids.
        clients: &'s [&'s str],
    },
    /// Nothing comes behind it.
    Done,
}

/// The id and the tool of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiCallName<'s> {
    /// The id of the call.
    pub id: &'s str,
    /// The tool's name.
    pub name: &'s str,
    /// Whether the service runs it; else the client does.
    pub is_own: bool,
}

/// A question to a person.
#[derive(Clone, Debug, Default)]
pub(crate) struct UiAsk {
    /// The id of the question: the call's id and its hash, so that an answer names exactly the call
    /// that was shown.
    pub id: String,
    /// Why the call waits.
    pub reason: String,
}

/// What is known of a result beside its text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UiResultFacts<'s> {
    /// `success`, `error` and the other words of `tool_result`.
    pub status: &'s str,
    /// How long the call ran, in milliseconds, as JSON.
    pub duration_ms: Option<&'s str>,
    /// It was taken from the cache.
    pub is_cached: bool,
}

/// What is known of an answer beside its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct UiFacts {
    /// The model, as the provider names it.
    pub model: String,
    /// The tokens of all turns.
    pub usage: event::payload::SessionStats,
}

/// Why the answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UiEnd {
    /// The model had finished.
    Stop,
    /// Calls wait for the client or for a person.
    Calls,
    /// The token limit cut the answer.
    Length,
    /// The provider's filter cut the answer.
    Filter,
    /// The answer has failed.
    Error,
}

/// Writes the steps of a stream in one protocol.
pub(crate) trait UiWriter {
    /// Appends what a step becomes.
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
