//! What happens in an answer, in the one order that every front can write.

use crate::answer::Failure;
use crate::answer::details::{Members, Place};
use event::payload::FinishReason;

/// One step of an answer. For each choice the steps are in this order: `Begin`; then reasoning,
/// text, refusals and calls, one after the other, in which no step comes between `CallBegin` and
/// the `CallEnd` of the same call; then `End`. `Usage` follows the last `End`. `Failed` may take
/// the place of any step but the first, and is the last. A call that was cut has no `CallEnd`: the
/// next step of its choice is `End` with `Length` or `ContentFilter`, or the answer failed. A front
/// writes it in a form that no client runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// The answer begins: the first step, once.
    Begin,
    /// The next piece of reasoning. `provider` is what must go back to the provider, and closes the
    /// block.
    Reasoning {
        /// The piece.
        text: &'a str,
        /// JSON, by the name of the API that wants it back.
        provider: Option<&'a str>,
    },
    /// The next piece of the answer, never empty.
    Text(&'a str),
    /// The next piece of a refusal, never empty.
    Refusal(&'a str),
    /// A call begins. Its place among the calls of its choice is the number of calls before it.
    CallBegin {
        /// Its id, never empty.
        id: &'a str,
        /// The tool's name, never empty.
        name: &'a str,
        /// What must go back to the provider with it, as far as it is known: JSON, by the name of
        /// the API.
        provider: Option<&'a str>,
    },
    /// The next bytes of the arguments of the call that is open, never empty. All of them up to
    /// here are the beginning of a JSON object.
    CallArguments(&'a str),
    /// The call that is open is complete.
    CallEnd {
        /// All of its arguments, a JSON object: what the `CallArguments` add up to.
        arguments: &'a str,
        /// What must go back to the provider with it: JSON, by the name of the API.
        provider: Option<&'a str>,
    },
    /// Members of the provider's answer, in the words of the front. Those of [`Place::Text`] and
    /// [`Place::Item`] are in order with the content, and others may come before `Begin`: they wait
    /// for the next step.
    Details(Place, &'a Members),
    /// The choice ends.
    End {
        /// Why. With calls that are complete it is `ToolCalls`, unless the answer was cut.
        reason: FinishReason,
        /// The provider's own word for it, which may be more exact; only with the reason `Stop`.
        provider: Option<&'a str>,
    },
    /// What the answer holds under the key `toolpipe`, as JSON: warnings, repairs, and what the
    /// provider ran itself. Once, after the last `End`, and only if
    /// [`crate::answer::AnswerOptions::extras`] asks for it.
    Extras(&'a str),
    /// The counts of tokens, after the last choice has ended.
    Usage(Usage),
    /// The answer failed after it began.
    Failed(&'a Failure),
}

/// Counts of tokens; 0 where the upstream sends none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of both.
    pub total: u64,
    /// Tokens of the request that came from a cache.
    pub cached: u64,
    /// Tokens of reasoning.
    pub reasoning: u64,
}
