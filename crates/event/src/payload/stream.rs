//! How a stream begins and ends.

use super::field::{As, Describe, Millis, Value, one_of, payload};
use crate::{Json, Object, Raw, Text};

/// The version of the protocol: 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Version;

impl<'a> Value<'a> for Version {
    fn read(_: Raw<'a>) -> Option<Self> {
        Some(Version)
    }

    fn write(self, out: &mut Vec<u8>) {
        out.push(b'1');
    }

    fn schema(o: &mut Object<'_>) {
        o.int("const", 1);
    }
}

/// How tools reach a model.
#[derive(Debug)]
pub(crate) struct ToolsMode;

impl Describe for ToolsMode {
    fn schema(o: &mut Object<'_>) {
        one_of(o, ["native", "tag", "none"]);
    }
}

/// A list of tools.
#[derive(Debug)]
pub(crate) struct Tools;

impl Describe for Tools {
    fn schema(o: &mut Object<'_>) {
        o.str("type", "array").object("items", |o| {
            o.str("type", "object");
        });
    }
}

payload! {
    /// The first event of a stream.
    StreamStart<'a> {
        /// The version of the protocol.
        v: Version,
        /// The provider's API.
        api: Option<Text<'a>>,
        /// The model that answers.
        model: Option<Text<'a>>,
        /// The id of the response.
        id: Option<Text<'a>>,
        /// How tools reach the model: `native`, `tag` or `none`.
        tools_mode: Option<Text<'a>> as As<ToolsMode>,
        /// The dialect of calls that are written as text.
        dialect: Option<Text<'a>>,
        /// The request's tools, in OpenAI's shape. Filters use them where they have no `--tools`.
        tools: Option<Json<'a>> as As<Tools>,
        /// How many tools for the client to run the request offered, where the provider repeats the
        /// request in its response.
        tools_offered: Option<u32>,
        /// The end of the prompt, which the text continues.
        prefill: Option<Text<'a>>,
        /// Which try of the turn this is.
        attempt: Option<u32>,
        /// `sync`: the endpoint without streaming had to be used.
        fallback: Option<Text<'a>>,
    }
}

payload! {
    /// Counts of a turn; what is unknown is left out.
    SessionStats {
        /// Tokens of the request, as the provider counts them.
        prompt_tokens: Option<u64>,
        /// Tokens of the answer.
        completion_tokens: Option<u64>,
        /// Tokens of both.
        total_tokens: Option<u64>,
        /// Tokens of reasoning.
        reasoning_tokens: Option<u64>,
        /// Tokens of the request that the provider had in its cache.
        cached_tokens: Option<u64>,
        /// How many calls got a result.
        calls: Option<u64>,
        /// How many of those results came from the cache.
        cache_hits: Option<u64>,
        /// How often the request was sent again.
        retries: Option<u64>,
        /// How often another endpoint had to be used.
        fallbacks: Option<u64>,
        /// Milliseconds from the request to the first event.
        first_event_ms: Option<Millis>,
        /// Milliseconds from the request to the end.
        duration_ms: Option<Millis>,
    }
}

impl SessionStats {
    /// Tokens of the request and of the answer: the provider's total, but never less than its parts
    /// add up to. It may be more: xAI does not count reasoning among the tokens of the answer.
    /// `None` where neither the total nor both parts are known.
    pub fn total(&self) -> Option<u64> {
        let parts = self
            .prompt_tokens
            .zip(self.completion_tokens)
            .map(|(prompt, answer)| prompt.saturating_add(answer));
        self.total_tokens.max(parts)
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinishReason {
    /// The model had finished.
    #[default]
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The token limit cut the answer.
    Length,
    /// The provider's filter cut the answer.
    ContentFilter,
    /// The provider or the connection failed.
    Error,
    /// The user or the caller stopped the stream.
    Cancelled,
    /// The connection ended without the provider's end mark.
    Cut,
}

impl FinishReason {
    const ALL: [FinishReason; 7] = [
        FinishReason::Stop,
        FinishReason::ToolCalls,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Error,
        FinishReason::Cancelled,
        FinishReason::Cut,
    ];

    /// The value of `finish_reason`.
    pub fn name(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::Length => "length",
            FinishReason::ContentFilter => "content_filter",
            FinishReason::Error => "error",
            FinishReason::Cancelled => "cancelled",
            FinishReason::Cut => "cut",
        }
    }

    /// Whether the model ended by itself, so that what it wrote is whole.
    pub fn is_whole(self) -> bool {
        matches!(self, FinishReason::Stop | FinishReason::ToolCalls)
    }

    /// Whether the turn failed, so that no assistant message is written.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut
        )
    }
}

/// A reason that is missing or unknown is read as [`FinishReason::Stop`].
impl<'a> Value<'a> for FinishReason {
    fn read(value: Raw<'a>) -> Option<Self> {
        let name = value.str()?;
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    fn write(self, out: &mut Vec<u8>) {
        Text::from(self.name()).write(out);
    }

    fn schema(o: &mut Object<'_>) {
        one_of(o, Self::ALL.map(FinishReason::name));
    }
}

payload! {
    /// The last event of a stream.
    StreamEnd<'a> {
        /// How it ended. `cut`: the connection ended without the provider's end mark.
        finish_reason: FinishReason,
        /// The provider's own word for it.
        provider_finish_reason: Option<Text<'a>>,
    }
}
