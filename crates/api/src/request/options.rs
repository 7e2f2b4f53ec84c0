//! The settings from which a request is made, besides the conversation.

use crate::conversation::Conversation;
use json::{ProviderTool, ToolEntry, ToolList};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The builder of one API's body. It gets a conversation that went through the history gate.
pub(crate) type BodyBuilder =
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
    /// Whether the provider is asked to keep the beginning of the request for the next one, where
    /// that pays and nobody has marked what it is to keep. Only Anthropic has to be asked.
    pub caches_prefix: bool,
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
            caches_prefix: true,
        }
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
        "the request refers to an earlier answer, and that goes to the provider as it is or not \
         at all; send the whole conversation"
    )]
    Partial,
    /// The conversation has no message to answer.
    #[error("the conversation has no message")]
    Empty,
}

impl RequestError {
    /// The message at this position has a role that the API does not have.
    pub(crate) fn role(position: usize, role: &str) -> RequestError {
        let why = format!("the role {role:?} is not known");
        RequestError::Message { position, why }
    }
}

/// The user's own system prompt and those of the conversation, with a blank line between them.
/// `None` if neither exists.
pub(crate) fn system(talk: &Conversation, options: &RequestOptions) -> Option<String> {
    let mut texts: Vec<String> = options.system.iter().cloned().collect();
    texts.extend(
        talk.messages
            .iter()
            .filter(|m| is_system(m.role()))
            .map(|m| m.text()),
    );
    texts.retain(|text| !text.trim().is_empty());
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Whether messages of this role are part of the system prompt.
pub(crate) fn is_system(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// One tool of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestTool<'a> {
    /// One that the client runs.
    Function(&'a ToolEntry),
    /// The provider's own, in its words: it goes out as it came.
    Provider(&'a ProviderTool),
}

/// What the model is to do with the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice<'a> {
    Auto,
    None,
    Required,
    /// This one must be called.
    Name(&'a str),
}

impl RequestOptions {
    /// The tools, the provider's own last.
    pub(crate) fn tool_list(&self) -> Vec<RequestTool<'_>> {
        let Some(tools) = &self.tools else {
            return Vec::new();
        };
        tools
            .iter()
            .map(RequestTool::Function)
            .chain(tools.provider().iter().map(RequestTool::Provider))
            .collect()
    }

    /// The choice of the user, if there is one.
    pub(crate) fn choice(&self) -> Option<ToolChoice<'_>> {
        Some(match self.tool_choice.as_deref()? {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            name => ToolChoice::Name(name),
        })
    }
}

impl RequestTool<'_> {
    /// The name of a function.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            RequestTool::Function(tool) => Some(&tool.name),
            RequestTool::Provider(_) => None,
        }
    }

    /// In OpenAI's shape.
    pub(crate) fn openai(&self) -> Value {
        match self {
            RequestTool::Provider(tool) => value(&tool.text),
            RequestTool::Function(tool) => value(&event::object(|entry| tool.write_openai(entry))),
        }
    }
}

/// The tree of a text that is JSON already.
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
