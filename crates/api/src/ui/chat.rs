//! The chat of a request of a user interface: which message the answer continues, and which messages
//! the client repeats.

use crate::inbound::request::InboundRequest;

/// The chat of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    /// The client's id of the chat; empty if the client sends none.
    pub id: String,
    /// The client's id of the run.
    pub run: Option<String>,
    /// Why the client asks.
    pub trigger: ChatTrigger,
    /// The id of the message that the request replaces or continues.
    pub message_id: Option<String>,
    /// The messages of the request, in the client's shape.
    pub messages: Vec<ChatMessage>,
}

/// Why a client asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatTrigger {
    /// The client has a new message, or answers calls.
    #[default]
    Submit,
    /// The client wants another answer in the place of an earlier one.
    Regenerate,
}

/// A message of a chat, which may be several of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage {
    /// Its id.
    pub id: String,
    /// Whether the message belongs to an answer: the model wrote it, or it is the result of a call.
    pub is_answer: bool,
    /// The place in the conversation of the first message that came of this one.
    pub first: usize,
}

impl Chat {
    /// The message that the answer continues: the last one, if it belongs to an answer.
    pub fn continued(&self) -> Option<&ChatMessage> {
        self.messages.last().filter(|last| last.is_answer)
    }

    /// Whether the request is one message of a user, which the client appends to the messages that the
    /// session has.
    pub fn is_single(&self) -> bool {
        let [message] = &self.messages[..] else {
            return false;
        };
        let is_edit = self.message_id.as_ref() == Some(&message.id);
        !message.is_answer && !is_edit && self.trigger == ChatTrigger::Submit
    }
}

impl ChatMessage {
    /// Whether the answer that wrote the message `message` wrote this one: the ids of its further
    /// messages begin with that id.
    pub fn is_of(&self, message: &str) -> bool {
        let rest = self.id.strip_prefix(message).filter(|_| self.is_answer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

impl InboundRequest {
    /// Removes the messages that a session has already: those before the place `first`. Results of
    /// calls stay if the call is in `history` and has no result there.
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
