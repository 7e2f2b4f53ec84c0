//! What a client asks for, and why it cannot be read.

use crate::Conversation;
use json::ToolList;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a client asks for.
#[derive(Clone, Debug, Default)]
pub struct InboundRequest {
    /// The model that it names.
    pub model: Option<String>,
    /// The messages, system prompts among them.
    pub conversation: Conversation,
    /// The tools that the model may call; `None` without any, also where the client sends an empty list.
    pub tools: Option<Arc<ToolList>>,
    /// The names of the tools that take one free text (`custom` tools of OpenAI Responses), which are functions with one string `input` here.
    pub custom_tools: Vec<String>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// Every other member of the body, as the client sent it; see [`crate::parameters_for`].
    pub params: Map<String, Value>,
    /// Whether the answer is a stream.
    pub streams: bool,
    /// Whether a chat stream ends with a chunk of usage.
    pub include_usage: bool,
    /// What was left out, a sentence each.
    pub notes: Vec<String>,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboundError {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    NotJson(String),
    /// A member has a value that cannot be used.
    #[error("{member}: {why}")]
    Member {
        /// Where it is, such as `messages[2].content`.
        member: String,
        /// What is wrong with it.
        why: String,
    },
}
