//! The settings from which a request is made, besides the conversation.

use crate::conversation::Conversation;
use json::ToolList;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The builder of one API's body. It gets a conversation that went through the history gate.
pub(crate) type Body =
    fn(&Conversation, &RequestOptions) -> Result<Map<String, Value>, RequestError>;

/// The settings of a request.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// The provider's name of the model.
    pub model: String,
    /// Where to send the request; the provider's own address by default. A path and a query in it
    /// are kept.
    pub base_url: Option<String>,
    /// The key, if one is needed.
    pub key: Option<String>,
    /// A system prompt, before those of the conversation.
    pub system: Option<String>,
    /// The tools the model may call.
    pub tools: Option<Arc<ToolList>>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// Tag mode: tools and calls are text in this dialect, and the body has no member for them.
    pub dialect: Option<&'static tag::Dialect>,
    /// Members of the body, which go in last and take the place of what is there.
    pub params: Vec<(String, Value)>,
    /// Headers of the user's, which take the place of those of the same name.
    pub headers: Vec<(String, String)>,
    /// Whether to request a stream.
    pub stream: bool,
}

impl Default for RequestOptions {
    fn default() -> Self {
        RequestOptions {
            model: String::new(),
            base_url: None,
            key: None,
            system: None,
            tools: None,
            tool_choice: None,
            dialect: None,
            params: Vec::new(),
            headers: Vec::new(),
            stream: true,
        }
    }
}

impl RequestOptions {
    /// The messages of a chat body so far: the system prompt as a message, if there is one.
    pub(crate) fn opening(&self, talk: &Conversation) -> Vec<Value> {
        let mut messages = Vec::with_capacity(talk.messages.len() + 1);
        messages.extend(
            self.system
                .as_ref()
                .map(|text| json!({"role": "system", "content": text})),
        );
        messages
    }

    /// A chat body with its model and messages, which every API of that family begins with.
    pub(crate) fn chat(&self, messages: Vec<Value>) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), self.model.as_str().into());
        body.insert("messages".into(), messages.into());
        body
    }
}

/// Why a request cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A message cannot be put into this API's shape.
    #[error("message {position}: {why}")]
    Message {
        /// The message's 1-based position in the conversation.
        position: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The name of the model goes into the URL and would lead to another path.
    #[error("model {0:?}: not the name of a model")]
    Model(String),
    /// The client's request refers to an earlier answer, and its form has to change.
    #[error(
        "the request refers to an earlier answer, and that goes to the provider as it is or not at all; send the whole conversation"
    )]
    Partial,
    /// The conversation has no message to answer.
    #[error(
        "the conversation has no message: give a PROMPT, or a log with \"message\" events on standard input"
    )]
    Empty,
}
