//! The fields of each event that a tool writes. `type` comes first, then `stream`, `choice` and `t`, then these in their order.

use crate::{Event, Kind, Object, Raw};
use std::borrow::Cow;

/// The fields of one event of a known kind.
pub trait Payload {
    /// Its `type`.
    fn kind(&self) -> Kind;
    /// Writes its fields.
    fn fields(&self, o: &mut Object<'_>);
}

/// Writes one line (without its line feed): `stream` and `t` are JSON, `choice` is left out when it is 0.
pub fn line(out: &mut Vec<u8>, payload: &dyn Payload, stream: Option<&str>, choice: u32, t: Option<&str>) {
    let mut o = Object::open(out);
    o.hot_key("\"type\":\"").hot_raw(payload.kind().name());
    o.hot_raw("\"");
    if let Some(stream) = stream {
        o.hot_key("\"stream\":").hot_raw(stream);
    }
    if choice != 0 {
        o.int("choice", choice);
    }
    if let Some(t) = t {
        o.hot_key("\"t\":").hot_raw(t);
    }
    payload.fields(&mut o);
    o.close();
}

/// How a stream began. All texts are plain; `tools` is JSON (an array in OpenAI's shape) on one line.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct StreamStart<'a> {
    pub api: Option<&'a str>,
    pub model: Option<&'a str>,
    pub id: Option<&'a str>,
    pub tools_mode: Option<&'a str>,
    pub dialect: Option<&'a str>,
    pub tools: Option<&'a str>,
    pub prefill: Option<&'a str>,
    pub attempt: Option<u32>,
    pub fallback: Option<&'a str>,
}

impl Payload for StreamStart<'_> {
    fn kind(&self) -> Kind {
        Kind::StreamStart
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.int("v", 1).maybe_str("api", self.api).maybe_str("model", self.model).maybe_str("id", self.id);
        o.maybe_str("tools_mode", self.tools_mode).maybe_str("dialect", self.dialect);
        if let Some(tools) = self.tools {
            o.raw("tools", tools);
        }
        o.maybe_str("prefill", self.prefill);
        if let Some(attempt) = self.attempt {
            o.int("attempt", attempt);
        }
        o.maybe_str("fallback", self.fallback);
    }
}

/// A piece of reasoning. `provider` is opaque JSON that goes back with the next request; it closes the block it came with.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct Thinking<'a> {
    pub text: Cow<'a, str>,
    pub provider: Option<&'a str>,
}

impl Payload for Thinking<'_> {
    fn kind(&self) -> Kind {
        Kind::Thinking
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("text", &self.text);
        if let Some(p) = self.provider {
            o.raw("provider", p);
        }
    }
}

/// A piece of the answer's text.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct ContentDelta<'a> {
    pub text: Cow<'a, str>,
}

impl Payload for ContentDelta<'_> {
    fn kind(&self) -> Kind {
        Kind::ContentDelta
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.hot_key("\"text\":").hot_str(&self.text);
    }
}

/// A piece of a refusal, where the provider keeps it apart from the answer.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct RefusalDelta<'a> {
    pub text: Cow<'a, str>,
}

impl Payload for RefusalDelta<'_> {
    fn kind(&self) -> Kind {
        Kind::RefusalDelta
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("text", &self.text);
    }
}

/// A piece of a tool call. `index` is the provider's label for the call, not a position; `arguments` is the next fragment.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct ToolCallDelta<'a> {
    pub index: Option<i64>,
    pub tool_id: Option<Cow<'a, str>>,
    pub tool_name: Option<Cow<'a, str>>,
    pub arguments: Option<Cow<'a, str>>,
    pub done: bool,
    pub provider: Option<&'a str>,
}

impl<'a> ToolCallDelta<'a> {
    /// Reads the fields of an event; what has the wrong type is taken as missing, an object for `arguments` as its text.
    pub fn read(event: &Event<'a>) -> Self {
        let mut d = ToolCallDelta::default();
        for (key, value) in event.fields() {
            match key.as_ref() {
                "index" => d.index = value.i64(),
                "tool_id" => d.tool_id = value.str(),
                "tool_name" => d.tool_name = value.str(),
                "arguments" if value.is_object() => d.arguments = Some(Cow::Borrowed(value.text())),
                "arguments" => d.arguments = value.str(),
                "done" => d.done = value.bool() == Some(true),
                "provider" => d.provider = Some(value.text()).filter(|p| *p != "null"),
                _ => {}
            }
        }
        d
    }
}

impl Payload for ToolCallDelta<'_> {
    fn kind(&self) -> Kind {
        Kind::ToolCallDelta
    }

    fn fields(&self, o: &mut Object<'_>) {
        if let Some(index) = self.index {
            o.hot_key("\"index\":").hot_int(index.into());
        }
        o.maybe_str("tool_id", self.tool_id.as_deref()).maybe_str("tool_name", self.tool_name.as_deref());
        if let Some(arguments) = &self.arguments {
            o.hot_key("\"arguments\":").hot_str(arguments);
        }
        if self.done {
            o.hot_key("\"done\":").hot_raw("true");
        }
        if let Some(p) = self.provider {
            o.raw("provider", p);
        }
    }
}

/// What a checker found.
#[derive(Clone, Debug, Default)]
pub struct Decision<'a> {
    /// Whether the stream calls a tool.
    pub tool_call: bool,
    /// The checker's name, as it was given.
    pub checker: &'a str,
    /// Why, in a few words.
    pub reason: &'a str,
    /// The 1-based number of the deciding event of this stream.
    pub event: u64,
    /// Bytes of content text seen until then.
    pub bytes: u64,
    /// Whether this overturns an earlier decision.
    pub revised: bool,
    /// Whether the stream failed before the checker could decide; `tool_call` is false then, and means nothing.
    pub undecided: bool,
}

impl Payload for Decision<'_> {
    fn kind(&self) -> Kind {
        Kind::Decision
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.bool("tool_call", self.tool_call).str("checker", self.checker).str("reason", self.reason);
        o.int("event", self.event).int("bytes", self.bytes);
        if self.revised {
            o.bool("revised", true);
        }
        if self.undecided {
            o.bool("undecided", true);
        }
    }
}

/// A call that was begun or emitted and does not hold.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct Retract<'a> {
    pub index: Option<i64>,
    pub tool_id: Option<&'a str>,
    pub reason: &'a str,
}

impl Payload for Retract<'_> {
    fn kind(&self) -> Kind {
        Kind::Retract
    }

    fn fields(&self, o: &mut Object<'_>) {
        if let Some(index) = self.index {
            o.int("index", index);
        }
        o.maybe_str("tool_id", self.tool_id).str("reason", self.reason);
    }
}

/// Something the provider ran itself. `data` is the provider's own JSON, on one line.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct ServerItem<'a> {
    pub kind: &'a str,
    pub data: &'a str,
}

impl Payload for ServerItem<'_> {
    fn kind(&self) -> Kind {
        Kind::ServerItem
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("kind", self.kind).raw("data", self.data);
    }
}

/// A chat message, as JSON on one line.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct Message<'a> {
    pub message: &'a str,
}

impl Payload for Message<'_> {
    fn kind(&self) -> Kind {
        Kind::Message
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.raw("message", self.message);
    }
}

/// Counts of a turn; what is not known is left out. Tokens as the provider counts them, times in microseconds.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct SessionStats {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    /// Written as `first_event_ms`.
    pub first_event: Option<u64>,
    /// Written as `duration_ms`.
    pub duration: Option<u64>,
    pub calls: Option<u64>,
    pub cache_hits: Option<u64>,
    pub retries: Option<u64>,
    pub fallbacks: Option<u64>,
}

impl Payload for SessionStats {
    fn kind(&self) -> Kind {
        Kind::SessionStats
    }

    fn fields(&self, o: &mut Object<'_>) {
        for (key, n) in [
            ("prompt_tokens", self.prompt_tokens),
            ("completion_tokens", self.completion_tokens),
            ("total_tokens", self.total_tokens),
            ("reasoning_tokens", self.reasoning_tokens),
            ("cached_tokens", self.cached_tokens),
            ("calls", self.calls),
            ("cache_hits", self.cache_hits),
            ("retries", self.retries),
            ("fallbacks", self.fallbacks),
        ] {
            if let Some(n) = n {
                o.int(key, n);
            }
        }
        for (key, micros) in [("first_event_ms", self.first_event), ("duration_ms", self.duration)] {
            if let Some(micros) = micros {
                o.millis(key, micros);
            }
        }
    }
}

/// Something odd that did not stop the stream.
#[derive(Clone, Debug, Default)]
pub struct Warning<'a> {
    /// The tool that noticed.
    pub source: &'a str,
    /// A word to match on.
    pub code: &'a str,
    /// A sentence for people.
    pub message: &'a str,
    /// The text that was wrong, cut at 64 KiB.
    pub raw: Option<&'a str>,
    /// The whole length of that text in bytes, where `raw` was cut or is not exact.
    pub raw_bytes: Option<u64>,
    /// Its bytes in base64, where they are no UTF-8 (cut likewise).
    pub raw_base64: Option<&'a str>,
    /// The 1-based number of the line it was found in.
    pub line: Option<u64>,
}

impl<'a> Warning<'a> {
    /// How much of a text that was wrong a warning carries, in bytes.
    pub const RAW: usize = 64 * 1024;

    /// Carries the text that was wrong, cut where it is too long.
    #[must_use]
    pub fn about(mut self, text: &'a str) -> Self {
        self.raw = Some(crate::cut(text, Self::RAW));
        self.raw_bytes = Some(text.len() as u64).filter(|_| text.len() > Self::RAW);
        self
    }
}

impl Payload for Warning<'_> {
    fn kind(&self) -> Kind {
        Kind::Warning
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("source", self.source).str("code", self.code).str("message", self.message).maybe_str("raw", self.raw);
        if let Some(n) = self.raw_bytes {
            o.int("raw_bytes", n);
        }
        o.maybe_str("raw_base64", self.raw_base64);
        if let Some(n) = self.line {
            o.int("line", n);
        }
    }
}

/// The stream or turn has failed.
#[derive(Clone, Debug, Default)]
pub struct Error<'a> {
    /// The tool that says so.
    pub source: &'a str,
    /// A word to match on.
    pub code: &'a str,
    /// A sentence for people.
    pub message: &'a str,
    /// Whether the same turn may be tried again.
    pub retryable: bool,
    /// What the provider said, as JSON on one line.
    pub provider: Option<&'a str>,
}

impl Payload for Error<'_> {
    fn kind(&self) -> Kind {
        Kind::Error
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("source", self.source)
            .str("code", self.code)
            .str("message", self.message)
            .bool("retryable", self.retryable);
        if let Some(p) = self.provider {
            o.raw("provider", p);
        }
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the values of `finish_reason`")]
pub enum FinishReason {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    Error,
    Cancelled,
    Cut,
}

impl FinishReason {
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

    /// Reads the `finish_reason` of a `stream_end`; one that is missing or unknown is [`FinishReason::Stop`].
    pub fn read(event: &Event<'_>) -> Self {
        match event.get_str("finish_reason").as_deref() {
            Some("tool_calls") => FinishReason::ToolCalls,
            Some("length") => FinishReason::Length,
            Some("content_filter") => FinishReason::ContentFilter,
            Some("error") => FinishReason::Error,
            Some("cancelled") => FinishReason::Cancelled,
            Some("cut") => FinishReason::Cut,
            _ => FinishReason::Stop,
        }
    }

    /// Whether the model ended by itself, so that what it wrote is whole.
    pub fn is_whole(self) -> bool {
        matches!(self, FinishReason::Stop | FinishReason::ToolCalls)
    }

    /// Whether the turn failed, so that no assistant message is written.
    pub fn is_failure(self) -> bool {
        matches!(self, FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut)
    }
}

/// The last event of a stream.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct StreamEnd<'a> {
    pub finish_reason: FinishReason,
    pub provider_finish_reason: Option<Cow<'a, str>>,
}

impl Payload for StreamEnd<'_> {
    fn kind(&self) -> Kind {
        Kind::StreamEnd
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("finish_reason", self.finish_reason.name());
        o.maybe_str("provider_finish_reason", self.provider_finish_reason.as_deref());
    }
}

/// A reader that wants several string fields of an event that is not on the hot path.
pub fn strings<'a, const N: usize>(event: &Event<'a>, keys: [&str; N]) -> [Option<Cow<'a, str>>; N] {
    keys.map(|key| event.get(key).and_then(Raw::str))
}
