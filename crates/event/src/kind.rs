//! The table of event kinds, from which [`Kind`], [`crate::Payload`], the readers and the schema
//! are made.

/// Calls the macro `$then` with every kind: the struct of its fields, and its `type`.
macro_rules! for_each_kind {
    ($then:ident) => {
        $then! {
            StreamStart<'a> = "stream_start",
            Thinking<'a> = "thinking",
            ContentDelta<'a> = "content_delta",
            RefusalDelta<'a> = "refusal_delta",
            ToolCallDelta<'a> = "tool_call_delta",
            ServerItem<'a> = "server_item",
            Details<'a> = "details",
            SessionStats = "session_stats",
            StreamEnd<'a> = "stream_end",
            Decision<'a> = "decision",
            ToolCall<'a> = "tool_call",
            ToolCallPartial<'a> = "tool_call_partial",
            Retract<'a> = "retract",
            Approval<'a> = "approval",
            ToolUse<'a> = "tool_use",
            ToolProgress<'a> = "tool_progress",
            ToolResult<'a> = "tool_result",
            Message<'a> = "message",
            Request<'a> = "request",
            Warning<'a> = "warning",
            Error<'a> = "error",
        }
    };
}
pub(crate) use for_each_kind;

macro_rules! kinds {
    ($($name:ident $(<$lt:lifetime>)? = $text:literal,)*) => {
        /// What an event is, by its `type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $text, "`")] $name,)*
            /// Any other `type`: such events pass.
            Other,
        }

        impl Kind {
            /// The kind of a `type` value (already unescaped).
            #[inline]
            pub fn of(name: &str) -> Kind {
                match name {
                    $($text => Kind::$name,)*
                    _ => Kind::Other,
                }
            }

            /// The `type` value that is written for this kind.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => $text,)*
                    Kind::Other => "other",
                }
            }
        }
    };
}

for_each_kind!(kinds);

impl Kind {
    /// Whether an event of this kind begins a stream when none is open under its name.
    #[inline]
    pub fn begins_stream(self) -> bool {
        matches!(
            self,
            Kind::StreamStart
                | Kind::Thinking
                | Kind::ContentDelta
                | Kind::RefusalDelta
                | Kind::ToolCallDelta
                | Kind::ToolCall
                | Kind::Error
                | Kind::StreamEnd
        )
    }
}
