//! What a request of a user interface says of its chat: which message it goes on with, and which
//! messages it repeats.

use crate::inbound::request::InboundRequest;

/// The chat of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    /// The client's name of it; empty where it has none.
    pub id: String,
    /// The client's name of the run.
    pub run: Option<String>,
    /// Why the client asks.
    pub trigger: ChatTrigger,
    /// The message that the client names: the one that it replaces, or goes on with.
    pub message_id: Option<String>,
    /// The messages of the request, in the client's shape.
    pub messages: Vec<ChatMessage>,
}

/// Why a client asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatTrigger {
    /// It has a new message, or answers calls.
    #[default]
    Submit,
    /// It wants another answer in the place of one.
    Regenerate,
}

/// A message of a chat, which may be several of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage {
    /// Its id.
    pub id: String,
    /// Whether it is of an answer: the model wrote it, or it is the result of a call.
    pub is_answer: bool,
    /// The place of its first message in the conversation.
    pub first: usize,
}

impl Chat {
    /// The message that the answer goes on with: the last one, if the model wrote it.
    pub fn continued(&self) -> Option<&ChatMessage> {
        self.messages.last().filter(|last| last.is_answer)
    }

    /// Whether the request is one message of a user that the client puts at the end of whatever the
    /// chat has.
    pub fn is_single(&self) -> bool {
        let [message] = &self.messages[..] else {
            return false;
        };
        let is_edit = self.message_id.as_ref() == Some(&message.id);
        !message.is_answer && !is_edit && self.trigger == ChatTrigger::Submit
    }
}

impl ChatMessage {
    /// Whether an answer with this message wrote it.
    pub fn is_of(&self, message: &str) -> bool {
        let rest = self.id.strip_prefix(message).filter(|_| self.is_answer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

impl InboundRequest {
    /// Takes out the messages that a session has already: all of a chat before the place `first`.
    /// Of what comes before it, the results stay that answer a call in `history` which has none.
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
