//! Streams: how they begin and end, the pieces of an answer, messages, and notices.

use super::field::*;

/// The version of the protocol: 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtocolVersion;

impl<'a> FieldValue<'a> for ProtocolVersion {
    const SCHEMA: &'static str = r#""const":1"#;

    fn read(_: Raw<'a>) -> Option<Self> {
        Some(ProtocolVersion)
    }

    fn write(self, out: &mut Vec<u8>) {
        out.push(b'1');
    }
}

/// The schema of a list of tools.
const TOOLS: &str = r#""type":"array","items":{"type":"object"}"#;

payload! {
    /// The first event of a stream.
    StreamStart<'a> {
        /// The version of the protocol.
        v: ProtocolVersion,
        /// The provider's API.
        api: Option<Text<'a>>,
        /// The model that answers.
        model: Option<Text<'a>>,
        /// The id of the response.
        id: Option<Text<'a>>,
        /// How tools reach the model: `native`, `tag` or `none`.
        tools_mode: Option<Text<'a>> = one_of!("native" "tag" "none"),
        /// The dialect of calls that are written as text.
        dialect: Option<Text<'a>>,
        /// The request's tools, in OpenAI's shape. A filter without the option `--tools` uses
        /// these.
        tools: Option<Json<'a>> = TOOLS,
        /// The system prompt of the request, where no message of the conversation has it.
        system: Option<Text<'a>>,
        /// How many tools the request offered that the client runs. Only known where the provider
        /// repeats the request in its response.
        tools_offered: Option<u32>,
        /// The end of the prompt, which the text continues.
        prefill: Option<Text<'a>>,
        /// Which try of the turn this is.
        attempt: Option<u32>,
        /// `sync`: the endpoint without streaming had to be used.
        fallback: Option<Text<'a>>,
        /// Milliseconds since 1970. Absent in the replay of a recording.
        timestamp: Option<u64>,
        /// The `traceparent` that was sent to the provider: names the span of this stream.
        traceparent: Option<Text<'a>>,
        /// The id of the parent span of this stream: 16 hexadecimal digits.
        parent_span: Option<Text<'a>>,
    }
}

payload! {
    /// The counts of a turn (`llm-stream`), or of all calls of a run (`tool-exec`). An unknown
    /// count is left out.
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
        /// Tokens of the request that the provider wrote to its cache.
        cache_write_tokens: Option<u64>,
        /// What the tokens cost by the user's prices, in millionths of a dollar.
        cost_microusd: Option<u64>,
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
    /// Puts later counts of tokens of the same turn in the place of earlier ones.
    pub fn update(&mut self, later: &SessionStats) {
        self.each_count(later, |count, later| *count = later.or(*count));
    }

    /// Adds the counts of tokens of another turn.
    pub fn add(&mut self, turn: &SessionStats) {
        self.each_count(turn, |sum, more| {
            *sum = sum
                .zip(more)
                .map(|(a, b)| a.saturating_add(b))
                .or(*sum)
                .or(more);
        });
    }

    /// Calls `change` with each count of tokens, and that count of `other`.
    fn each_count(&mut self, other: &SessionStats, change: impl Fn(&mut Option<u64>, Option<u64>)) {
        for (count, other) in [
            (&mut self.prompt_tokens, other.prompt_tokens),
            (&mut self.completion_tokens, other.completion_tokens),
            (&mut self.total_tokens, other.total_tokens),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.cost_microusd, other.cost_microusd),
        ] {
            change(count, other);
        }
    }

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

words! {
    /// How a stream ended. A reason that is missing or unknown is read as [`FinishReason::Stop`].
    #[derive(Default)]
    FinishReason {
        /// The model had finished.
        #[default]
        Stop = "stop",
        /// The model waits for the results of its calls.
        ToolCalls = "tool_calls",
        /// The token limit cut the answer.
        Length = "length",
        /// The provider's filter cut the answer.
        ContentFilter = "content_filter",
        /// The provider or the connection failed.
        Error = "error",
        /// The user or the caller stopped the stream.
        Cancelled = "cancelled",
        /// The connection ended without the provider's end mark.
        Cut = "cut",
    }
}

impl FinishReason {
    /// Returns why the answer may be incomplete, for people; `None` if it is complete, or if an
    /// `error` event has the reason.
    pub fn notice(self) -> Option<&'static str> {
        match self {
            FinishReason::Length => Some("the answer was cut at the token limit"),
            FinishReason::ContentFilter => Some("the provider's content filter stopped the answer"),
            FinishReason::Cancelled => Some("cancelled"),
            FinishReason::Cut => Some("the connection ended before the answer did"),
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Error => None,
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

payload! {
    /// The last event of a stream.
    StreamEnd<'a> {
        /// How it ended. `cut`: the connection ended without the provider's end mark.
        finish_reason: FinishReason,
        /// The provider's own word for it.
        provider_finish_reason: Option<Text<'a>>,
    }
}

payload! {
    /// The next piece of reasoning.
    Thinking<'a> {
        /// The piece.
        text: Text<'a>,
        /// Opaque data, such as a signature, that the next request must return to the same
        /// provider. It ends the block of reasoning that it belongs to.
        provider: Option<Json<'a>>,
    }
}

payload! {
    /// The next piece of the answer.
    ContentDelta<'a> {
        /// The piece.
        text: Text<'a>,
        /// The same chunk of the provider's stream has a call, too.
        with_call: bool as Flag,
    }
}

payload! {
    /// The next piece of a refusal, where the provider keeps it apart from the answer.
    RefusalDelta<'a> {
        /// The piece.
        text: Text<'a>,
    }
}

payload! {
    /// Members of the provider's answer that no other event holds, such as log probabilities and
    /// citations. Only who asks for them gets them.
    Details<'a> {
        /// The object that they are members of: `answer`, `usage`, `choice`, `message`, `call`, or
        /// `text` (the latest piece of text of the answer).
        place: Text<'a>,
        /// An object: the members as the provider's API has them.
        data: Json<'a>,
    }
}

payload! {
    /// Something the provider ran itself, such as a web search. Never a `tool_call`.
    ServerItem<'a> {
        /// What it is.
        kind: Text<'a>,
        /// The provider's own object.
        data: Json<'a>,
    }
}

payload! {
    /// One chat message.
    Message<'a> {
        /// The message, in OpenAI's shape: `role`, `content`, `refusal`, `tool_calls`,
        /// `tool_call_id`, `name`; with `reasoning` and `provider` where the next turn needs them.
        message: Json<'a> =
            r#""type":"object","properties":{"role":{"type":"string"}},"required":["role"]"#,
        /// The message holds only for the response that it belongs to (its instructions): the next
        /// response of the session begins without it.
        once: bool as Flag,
    }
}

impl Message<'_> {
    /// Whether the message has this role.
    pub fn is_of(&self, role: &str) -> bool {
        self.message
            .with(|message| message.get_str("role").as_deref() == Some(role))
    }
}

payload! {
    /// What a client of `tc-serve` asks for, without the messages. It is the first line on the
    /// standard input of a pipeline. A stage that asks a model uses each value for which the stage
    /// itself has no option.
    Request<'a> {
        /// The API that the client speaks, by its name for `--api`; `params` holds members of a
        /// request body of this API.
        api: Option<Text<'a>>,
        /// The model that the client names.
        model: Option<Text<'a>>,
        /// The tools, in OpenAI's shape.
        tools: Option<Json<'a>> = TOOLS,
        /// `auto`, `none`, `required` or a tool's name.
        tool_choice: Option<Text<'a>>,
        /// All other members of the request's body, such as `temperature`, as the client sent them.
        params: Option<Json<'a>> = r#""type":"object""#,
        /// Whether the client wants a stream.
        streams: Option<bool>,
    }
}

payload! {
    /// Something odd that did not stop the stream.
    Warning<'a> {
        /// The command that noticed.
        source: Text<'a>,
        /// A word to match on.
        code: Text<'a>,
        /// A sentence for people.
        message: Text<'a>,
        /// The text that was wrong, cut at 64 KiB.
        raw: Option<Text<'a>>,
        /// The length of the whole text in bytes, where `raw` is cut, or has U+FFFD for bytes that
        /// are not UTF-8.
        raw_bytes: Option<u64>,
        /// The bytes of the text in base64, where they are not UTF-8 (cut likewise).
        raw_base64: Option<Text<'a>>,
        /// The 1-based number of the line that it was found in.
        line: Option<u64>,
    }
}

impl<'a> Warning<'a> {
    /// A warning of the command `source`: a word to match on, and a sentence.
    pub fn new(source: &'a str, code: &'a str, message: &'a str) -> Self {
        Warning {
            source: source.into(),
            code: code.into(),
            message: message.into(),
            ..Warning::default()
        }
    }

    /// How much of a text that was wrong a warning carries, in bytes.
    pub const RAW: usize = 64 * 1024;

    /// Carries the text that was wrong, cut where it is too long.
    #[must_use]
    pub fn about(mut self, text: &'a str) -> Self {
        self.raw = Some(crate::cut(text, Self::RAW).into());
        self.raw_bytes = Some(text.len() as u64).filter(|_| text.len() > Self::RAW);
        self
    }
}

payload! {
    /// The stream or the turn has failed; whatever was open is incomplete.
    Error<'a> {
        /// The command that reports it.
        source: Text<'a>,
        /// A word to match on.
        code: Text<'a> as Loose,
        /// A sentence for people.
        message: Text<'a> as Loose,
        /// Whether the same turn may be tried again.
        retryable: bool,
        /// What the provider said.
        provider: Option<Json<'a>>,
        /// The HTTP status of the error: of the provider's response, or the status that the
        /// reporting command gives to the client.
        status: Option<u32>,
        /// How long to wait before another try, in milliseconds, as the provider or the reporting
        /// command asks.
        retry_after_ms: Option<u64>,
    }
}

impl<'a> Error<'a> {
    /// An error of the command `source` that is not `retryable`: `code` is a word to match on,
    /// `message` a sentence.
    pub fn new(source: &'a str, code: &'a str, message: &'a str) -> Self {
        Error {
            source: source.into(),
            code: code.into(),
            message: message.into(),
            ..Error::default()
        }
    }
}
