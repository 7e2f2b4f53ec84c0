//! Messages of the conversation.

use super::field::{As, Describe, payload};
use crate::{Json, Object};

/// A chat message.
#[derive(Debug)]
pub(crate) struct ChatMessage;

impl Describe for ChatMessage {
    fn schema(o: &mut Object<'_>) {
        o.str("type", "object").object("properties", |o| {
            o.object("role", |o| {
                o.str("type", "string");
            });
        });
        o.array("required", |a| {
            a.str("role");
        });
    }
}

payload! {
    /// One chat message.
    Message<'a> {
        /// The message, in OpenAI's shape: `role`, `content`, `refusal`, `tool_calls`,
        /// `tool_call_id`, `name`; with `reasoning` and `provider` where the next turn needs them.
        message: Json<'a> as As<ChatMessage>,
    }
}

impl Message<'_> {
    /// Whether the message has this role.
    pub fn is_of(&self, role: &str) -> bool {
        self.message
            .with(|message| message.get_str("role").as_deref() == Some(role))
    }
}
