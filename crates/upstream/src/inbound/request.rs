//! What a client asks for, and why it cannot be read.

use super::choice;
use super::notes::Notes;
use super::references::Reference;
use super::size::MOST_VALUES;
use super::tools::{InboundTools, NamespacedTool};
use crate::Api;
use crate::conversation::{Conversation, Message};
use crate::verbatim::Verbatim;
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
    /// The tools that the model may call; `None` without any, also where the client sends an empty
    /// list.
    pub tools: Option<Arc<ToolList>>,
    /// The names of the tools that take one free text (`custom` tools of OpenAI Responses), which
    /// are functions with one string `input` here.
    pub custom_tools: Vec<String>,
    /// The tools that the client has in a namespace (OpenAI Responses). An answer must name the
    /// namespace and the name apart.
    pub namespaced_tools: Vec<NamespacedTool>,
    /// The provider's own tools, such as a web search, as the client sent them. Only an upstream of
    /// the same API has them.
    pub provider_tools: Vec<Value>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// Every other member of the body, as the client sent it; see [`InboundRequest::parameters_for`].
    pub params: Map<String, Value>,
    /// Whether the answer is a stream.
    pub streams: bool,
    /// Whether a chat stream ends with a chunk of usage.
    pub include_usage: bool,
    /// What it refers to and does not hold, see [`InboundRequest::check`].
    pub references: Vec<Reference>,
    /// What was left out, a sentence each.
    pub notes: Vec<String>,
    /// The same of what an upstream of the client's API gets as the client wrote it.
    pub foreign_notes: Vec<String>,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboundError {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    NotJson(String),
    /// The body has more values than are read.
    #[error("the body has more than {MOST_VALUES} values; send fewer messages, or shorter lists")]
    TooMany,
    /// A member has a value that cannot be used.
    #[error("{member}: {why}")]
    Member {
        /// Where it is, such as `messages[2].content`.
        member: String,
        /// What is wrong with it.
        why: String,
    },
    /// The request refers to something that whoever answers cannot know.
    #[error("{member}: {why}")]
    NotFound {
        /// Where the reference is, such as `previous_response_id`.
        member: String,
        /// The word by which clients know the error.
        code: &'static str,
        /// What is missing, and what to send in its place.
        why: String,
    },
}

impl InboundError {
    /// The member of the body that is wrong.
    pub fn member(&self) -> Option<&str> {
        match self {
            InboundError::Member { member, .. } | InboundError::NotFound { member, .. } => {
                Some(member)
            }
            InboundError::NotJson(_) | InboundError::TooMany => None,
        }
    }
}

impl InboundRequest {
    /// A request with what all APIs have alike, which is taken out of `body`. Also returns the
    /// members of these names, which are taken out too.
    pub(crate) fn begin(
        mut body: Map<String, Value>,
        names: &[&str],
    ) -> (InboundRequest, Map<String, Value>) {
        let model = body
            .shift_remove("model")
            .and_then(|model| model.as_str().map(str::to_owned));
        let streams = body
            .shift_remove("stream")
            .and_then(|streams| streams.as_bool())
            .unwrap_or_default();
        let mut taken = Map::new();
        for name in names {
            if let Some(value) = body.shift_remove(*name).filter(|value| !value.is_null()) {
                taken.insert((*name).to_owned(), value);
            }
        }
        (
            InboundRequest {
                model,
                streams,
                params: body,
                ..InboundRequest::default()
            },
            taken,
        )
    }

    /// Takes the tools of all `lists`, and the choice among them. Returns whether the client's own
    /// lists hold more than these tools.
    pub(crate) fn set_tools<'v>(
        &mut self,
        lists: impl IntoIterator<Item = &'v Value>,
        choice: Option<&Value>,
        notes: &mut Notes,
    ) -> bool {
        let mut tools = InboundTools::read(lists, notes);
        self.tool_choice = choice::read(choice, &mut tools, notes);
        let is_empty = tools.is_empty();
        self.custom_tools = tools.custom;
        self.namespaced_tools = tools.namespaced;
        self.provider_tools = tools.provider;
        self.tools = (!is_empty).then(|| Arc::new(tools.list));
        tools.has_more || !self.provider_tools.is_empty()
    }

    /// Drops `parallel_tool_calls` of a request without tools: chat completions reject it.
    pub(crate) fn drop_parallel_without_tools(&mut self) {
        if self.tools.is_none() && self.provider_tools.is_empty() {
            self.params.shift_remove("parallel_tool_calls");
        }
    }

    /// Keeps the members that became the conversation and the tools, for an upstream of the same
    /// API.
    pub(crate) fn keep(&mut self, api: Api, members: Map<String, Value>) {
        if members.contains_key("messages") || members.contains_key("input") {
            self.foreign_notes.append(&mut self.notes);
        }
        let messages = self.conversation.messages.len();
        let is_partial = !self.references.is_empty();
        self.conversation.verbatim = Some(Verbatim::new(api.name(), members, messages, is_partial));
    }

    /// The request with its messages. `member` of the body holds them, and `is_empty` claims that
    /// nothing of it became one of them.
    ///
    /// # Errors
    /// When no message is left, unless the request refers to others.
    pub(crate) fn end(
        mut self,
        messages: Vec<Message>,
        member: &str,
        is_empty: bool,
        notes: Notes,
    ) -> Result<InboundRequest, InboundError> {
        if is_empty && self.references.is_empty() {
            let (notes, _) = notes.into_lists();
            let why = notes
                .iter()
                .find(|note| note.starts_with(member))
                .map(|note| format!("; {note}"));
            return Err(InboundError::Member {
                member: member.to_owned(),
                why: format!("it has no message{}", why.unwrap_or_default()),
            });
        }
        self.conversation = Conversation::of(messages);
        (self.notes, self.foreign_notes) = notes.into_lists();
        Ok(self)
    }
}
