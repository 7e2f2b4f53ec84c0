//! The chat that a user interface's request belongs to: which message the answer continues, and
//! which messages the client repeats.

use crate::inbound::request::InboundRequest;

/// The chat that a request belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    /// The client's id of the chat; empty if the client sends none.
    pub id: String,
    /// The client's id of the run; `None` if the client sends none.
    pub run: Option<String>,
    /// The reason for the request.
    pub trigger: ChatTrigger,
    /// The id of the message that the request replaces or continues; `None` if the client names
    /// none.
    pub message_id: Option<String>,
    /// The messages of the request, as the client structures them.
    pub messages: Vec<ChatMessage>,
}

/// The reason for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatTrigger {
    /// The client has a new message, or results of calls.
    #[default]
    Submit,
    /// The client wants another answer instead of an earlier one.
    Regenerate,
}

/// A message of a chat, which may correspond to several messages of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage {
    /// The message's id.
    pub id: String,
    /// Whether the message belongs to an answer: written by the model, or the result of a call.
    pub is_answer: bool,
    /// The index of its first message in the conversation.
    pub first: usize,
}

impl Chat {
    /// Returns the message that the answer continues: the last one, if it belongs to an answer.
    pub fn continued(&self) -> Option<&ChatMessage> {
        self.messages.last().filter(|last| last.is_answer)
    }

    /// Whether the request is a single user message, which is appended to the messages of the
    /// session.
    pub fn is_single(&self) -> bool {
        let [message] = &self.messages[..] else {
            return false;
        };
        let is_edit = self.message_id.as_ref() == Some(&message.id);
        !message.is_answer && !is_edit && self.trigger == ChatTrigger::Submit
    }
}

impl ChatMessage {
    /// Whether this message was written by the same answer as `message`: the ids of an answer's
    /// further messages start with that id.
    pub fn is_of(&self, message: &str) -> bool {
        let rest = self.id.strip_prefix(message).filter(|_| self.is_answer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

impl InboundRequest {
    /// Removes the messages that a session already has: those before the index `first`. Keeps
    /// results of calls that are in `history` and have no result there.
    pub fn go_on_from(&mut self, first: usize, history: &crate::Conversation) {
        let answered: Vec<&str> = history
            .messages
            .iter()
            .filter(|message| message.role() == "tool")
            .map(|message| message.tool_call_id())
            .collect();
        let open: Vec<&str> = history
            .messages
            .iter()
            .flat_map(crate::Message::calls)
            .map(|call| call.id)
            .filter(|id| !answered.contains(id))
            .collect();
        let messages = std::mem::take(&mut self.conversation.messages);
        let is_new = |(place, message): &(usize, crate::Message)| {
            *place >= first || (message.role() == "tool" && open.contains(&message.tool_call_id()))
        };
        let new = messages.into_iter().enumerate().filter(is_new);
        self.conversation.messages = new.map(|(_, message)| message).collect();
    }
}
