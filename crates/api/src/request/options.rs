//! The settings of a request, apart from the conversation.

use crate::conversation::Conversation;
use json::{ProviderTool, ToolEntry, ToolList};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::sync::Arc;

/// Builds the request body for one API. The conversation must have passed the history gate.
pub(crate) type BodyBuilder =
    fn(&Conversation, &RequestOptions) -> Result<RequestBody, RequestError>;

/// The body of a request.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    pub members: Map<String, Value>,
    /// The value of the member `tools` as JSON, where the API takes the tools as the list writes
    /// them; its place in `members` is held by `null`. So large schemas need no tree.
    pub tools: Option<String>,
}

impl From<Map<String, Value>> for RequestBody {
    fn from(members: Map<String, Value>) -> RequestBody {
        RequestBody {
            members,
            tools: None,
        }
    }
}

impl RequestBody {
    /// Replaces a member.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        if name == TOOLS {
            self.tools = None;
        }
        self.members.insert(name.to_owned(), value);
    }

    /// Returns the body as JSON on one line.
    pub(crate) fn text(self) -> String {
        let Some(tools) = &self.tools else {
            return Value::Object(self.members).to_string();
        };
        let mut out = "{".to_owned();
        for (name, value) in &self.members {
            let comma = if out.len() > 1 { "," } else { "" };
            let quoted = event::quoted(name);
            // Writing to a string does not fail.
            _ = match &**name {
                TOOLS => write!(out, "{comma}{quoted}:{tools}"),
                _ => write!(out, "{comma}{quoted}:{value}"),
            };
        }
        out + "}"
    }
}

/// The member of a body that contains the tools.
pub(crate) const TOOLS: &str = "tools";

/// The settings of a request.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// The provider's name for the model.
    pub model: String,
    /// The base URL; the provider's own URL if `None`. Its path and query are kept.
    pub base_url: Option<String>,
    /// The API key, or `None` if no key is needed.
    pub key: Option<String>,
    /// A system prompt, placed before those in the conversation.
    pub system: Option<String>,
    /// The tools that the model may call.
    pub tools: Option<Arc<ToolList>>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// The dialect for tag mode: tools and calls are sent as text, and the body has no members for
    /// them. `None` for native calls.
    pub dialect: Option<&'static tag::Dialect>,
    /// Extra body members, which override existing ones.
    pub params: Vec<(String, Value)>,
    /// The user's own headers, which override those with the same name.
    pub headers: Vec<(String, String)>,
    /// Whether to request a streaming response.
    pub stream: bool,
    /// Whether to ask the provider to cache the start of the request if that pays off and the
    /// client has set no cache marks of its own. Only Anthropic needs to be asked.
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

/// Why a request cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A message cannot be represented in this API.
    #[error("message {position}: {why}")]
    Message {
        /// The message's position in the conversation, starting at 1.
        position: usize,
        /// What is wrong with the message.
        why: String,
    },
    /// The model's name would lead to another path when placed in the URL.
    #[error("model {0:?}: not the name of a model")]
    Model(String),
    /// The client's request refers to an earlier answer, so it cannot be converted to another form.
    #[error(
        "the request refers to an earlier answer, and that goes to the provider as it is or not \
         at all; send the whole conversation"
    )]
    Partial,
    /// The conversation has no messages.
    #[error("the conversation has no message")]
    Empty,
}

impl RequestError {
    /// Creates the error for a message whose role the API does not support.
    pub(crate) fn role(position: usize, role: &str) -> RequestError {
        let why = format!("the role {role:?} is not known");
        RequestError::Message { position, why }
    }
}

/// Joins the user's own system prompt and those in the conversation, separated by blank lines.
/// Returns `None` if all are empty.
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

/// Whether messages with this role belong to the system prompt.
pub(crate) fn is_system(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// One tool in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestTool<'a> {
    /// A tool that the client runs.
    Function(&'a ToolEntry),
    /// A tool of the provider, forwarded unchanged.
    Provider(&'a ProviderTool),
}

/// Whether the model may or must call tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice<'a> {
    Auto,
    None,
    Required,
    /// The named tool must be called.
    Name(&'a str),
}

impl RequestOptions {
    /// Returns all tools, with the provider's own last.
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

    /// Returns the tool choice, or `None` if none was set.
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
    /// Returns the function's name, or `None` for a tool of the provider.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            RequestTool::Function(tool) => Some(&tool.name),
            RequestTool::Provider(_) => None,
        }
    }

    /// Returns the tool in OpenAI's shape.
    pub(crate) fn openai(&self) -> Value {
        match self {
            RequestTool::Provider(tool) => value(&tool.text),
            RequestTool::Function(tool) => value(&event::object(|entry| tool.write_openai(entry))),
        }
    }
}

/// Parses text that is known to be valid JSON.
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
