//! The names of events.

/// What a line is, by its `type`. [`Kind::Other`] is every type that this version does not know: such lines pass through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the event type of its name; the fields are documented in `payload`")]
pub enum Kind {
    StreamStart,
    Thinking,
    ContentDelta,
    RefusalDelta,
    ToolCallDelta,
    Decision,
    ToolCall,
    ToolCallPartial,
    Retract,
    ServerItem,
    Message,
    ToolUse,
    ToolProgress,
    ToolResult,
    SessionStats,
    Warning,
    Error,
    StreamEnd,
    Other,
}

impl Kind {
    /// The kind of a `type` value (already unescaped).
    #[inline]
    pub fn of(name: &str) -> Kind {
        match name {
            "content_delta" => Kind::ContentDelta,
            "tool_call_delta" => Kind::ToolCallDelta,
            "thinking" => Kind::Thinking,
            "refusal_delta" => Kind::RefusalDelta,
            "stream_start" => Kind::StreamStart,
            "decision" => Kind::Decision,
            "tool_call" => Kind::ToolCall,
            "tool_call_partial" => Kind::ToolCallPartial,
            "retract" => Kind::Retract,
            "server_item" => Kind::ServerItem,
            "message" => Kind::Message,
            "tool_use" => Kind::ToolUse,
            "tool_progress" => Kind::ToolProgress,
            "tool_result" => Kind::ToolResult,
            "session_stats" => Kind::SessionStats,
            "warning" => Kind::Warning,
            "error" => Kind::Error,
            "stream_end" => Kind::StreamEnd,
            _ => Kind::Other,
        }
    }

    /// The `type` value that is written for this kind.
    pub fn name(self) -> &'static str {
        match self {
            Kind::StreamStart => "stream_start",
            Kind::Thinking => "thinking",
            Kind::ContentDelta => "content_delta",
            Kind::RefusalDelta => "refusal_delta",
            Kind::ToolCallDelta => "tool_call_delta",
            Kind::Decision => "decision",
            Kind::ToolCall => "tool_call",
            Kind::ToolCallPartial => "tool_call_partial",
            Kind::Retract => "retract",
            Kind::ServerItem => "server_item",
            Kind::Message => "message",
            Kind::ToolUse => "tool_use",
            Kind::ToolProgress => "tool_progress",
            Kind::ToolResult => "tool_result",
            Kind::SessionStats => "session_stats",
            Kind::Warning => "warning",
            Kind::Error => "error",
            Kind::StreamEnd => "stream_end",
            Kind::Other => "other",
        }
    }
}
