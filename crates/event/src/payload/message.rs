//! Messages of the conversation.

use super::field::payload;
use crate::Json;

payload! {
    /// One chat message.
    Message<'a> {
        /// The message, in OpenAI's shape: `role`, `content`, `refusal`, `tool_calls`, `tool_call_id`, `name`; with `reasoning` and
        /// `provider` where the next turn needs them.
        message: Json<'a>,
    }
}

impl Message<'_> {
    /// Whether the message is this role's.
    pub fn is_of(&self, role: &str) -> bool {
        self.message.with(|message| message.get_str("role").as_deref() == Some(role))
    }
}
