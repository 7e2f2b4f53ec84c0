//! A client's parsed request, and the reasons why a request is rejected.

use crate::Api;
use crate::capability::host;
use crate::conversation::{Conversation, Message};
use crate::inbound::body::MOST_VALUES;
use crate::inbound::draft::InboundNotes;
use crate::inbound::parameters::keep_settings;
use crate::inbound::tools;
use crate::inbound::tools::{InboundTools, NamespacedTool};
use crate::members::{GetText, Take};
use crate::ui::Chat;
use crate::verbatim::Verbatim;
use json::ToolList;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A client's parsed request.
#[derive(Clone, Debug, Default)]
pub struct InboundRequest {
    /// The requested model.
    pub model: Option<String>,
    /// The messages, including system prompts.
    pub conversation: Conversation,
    /// The tools that the model may call; `None` if there are none or the client sent an empty
    /// list.
    pub tools: Option<Arc<ToolList>>,
    /// The names of tools that take one free-form text (`custom` tools of OpenAI Responses). In
    /// `tools` they are functions with a single string parameter `input`.
    pub custom_tools: Vec<String>,
    /// The client's tools that are in a namespace (OpenAI Responses). The response must contain the
    /// namespace and the name separately.
    pub namespaced_tools: Vec<NamespacedTool>,
    /// The provider's own tools, such as web search, as the client sent them. Only an upstream of
    /// the same API receives them.
    pub provider_tools: Vec<Value>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// All other members of the body, as the client sent them; see
    /// [`InboundRequest::parameters_for`].
    pub params: Map<String, Value>,
    /// Whether the client asked for a streaming response.
    pub streams: bool,
    /// Whether a Chat Completions stream ends with a usage chunk.
    pub include_usage: bool,
    /// References to data that the request does not contain; see [`InboundRequest::check`].
    pub references: Vec<Reference>,
    /// One sentence for each kind of content that was left out.
    pub notes: Vec<String>,
    /// One sentence for each kind of content that only an upstream of the client's own API
    /// receives.
    pub foreign_notes: Vec<String>,
    /// The user's decisions on pending calls of the service (`mcp_approval_response` of OpenAI
    /// Responses).
    pub approvals: Vec<ClientApproval>,
    /// The parts of the conversation that came from `instructions`.
    pub instructions: Instructions,
    /// The user interface chat that the request belongs to.
    pub chat: Option<Box<Chat>>,
}

/// A user's decision on a pending call, as the client sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientApproval {
    /// The id of the call.
    pub call_id: String,
    /// Whether the call may run.
    pub is_approved: bool,
    /// The user's reason.
    pub reason: Option<String>,
    /// The hash of the call that the user saw, if the client sends it. The decision then applies to
    /// no other call.
    pub hash: Option<String>,
}

impl ClientApproval {
    /// Whether this decision is for the call with this id. If approval of one call is requested
    /// more than once, later requests have an id with a suffix: the call's id, `_`, and the item's
    /// position in the output.
    pub fn is_of(&self, call: &str) -> bool {
        self.call_id.strip_prefix(call).is_some_and(|rest| {
            let place = rest.strip_prefix('_').map(str::parse::<u32>);
            rest.is_empty() || matches!(place, Some(Ok(_)))
        })
    }
}

/// The parts of a conversation that came from OpenAI Responses' `instructions`, which apply to one
/// request only. A system or developer message in `input` also applies to later requests.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    /// The part of the system message that came from `instructions`.
    pub text: String,
    /// The rest of the system message.
    pub others: String,
    /// The number of messages after the system message that came from `instructions`.
    pub messages: usize,
}

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboundError {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    NotJson(String),
    /// The body has more than 250,000 values.
    #[error("the body has more than {MOST_VALUES} values; send fewer messages, or shorter lists")]
    TooMany,
    /// A member has an unusable value.
    #[error("{member}: {why}")]
    Member {
        /// The path of the member, such as `messages[2].content`.
        member: String,
        /// What is wrong with the value.
        why: String,
    },
    /// The request refers to data that the answering server does not have.
    #[error("{member}: {why}")]
    NotFound {
        /// The path of the reference, such as `previous_response_id`.
        member: String,
        /// The error code that clients recognise.
        code: &'static str,
        /// What is missing, and what to send instead.
        why: String,
    },
}

impl InboundError {
    /// Returns the path of the invalid member, or `None` if the error concerns the whole body.
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
    /// Creates a request from the members that all APIs share, which are removed from `body`. Also
    /// removes the members in `names` and returns them.
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
            if let Some(value) = body.take_member(name) {
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

    /// Creates a request from a user interface, with these settings and tools. Its response is
    /// always a stream.
    pub(crate) fn begin_ui(
        settings: Map<String, Value>,
        tools: Option<&Value>,
        choice: Option<&Value>,
        notes: &mut InboundNotes,
    ) -> InboundRequest {
        let (mut request, _) = InboundRequest::begin(settings, &[]);
        keep_settings(&mut request.params, notes);
        request.streams = true;
        request.set_tools(tools, choice, notes);
        request.drop_parallel_without_tools();
        request
    }

    /// Sets the tools, from all `lists`, and the tool choice. Returns whether the client's lists
    /// contain more than the tools that were read.
    pub(crate) fn set_tools<'v>(
        &mut self,
        lists: impl IntoIterator<Item = &'v Value>,
        choice: Option<&Value>,
        notes: &mut InboundNotes,
    ) -> bool {
        let mut tools = InboundTools::read(lists, notes);
        self.tool_choice = tools::choice(choice, &mut tools, notes);
        let is_empty = tools.is_empty();
        self.custom_tools = tools.custom;
        self.namespaced_tools = tools.namespaced;
        self.provider_tools = tools.provider;
        self.tools = (!is_empty).then(|| Arc::new(tools.list));
        tools.has_more || !self.provider_tools.is_empty()
    }

    /// Removes `parallel_tool_calls` if there are no tools, because Chat Completions rejects it
    /// then.
    pub(crate) fn drop_parallel_without_tools(&mut self) {
        if self.tools.is_none() && self.provider_tools.is_empty() {
            self.params.shift_remove("parallel_tool_calls");
        }
    }

    /// Drops the client's own JSON, so that every upstream receives the converted request.
    pub(crate) fn drop_verbatim(&mut self) {
        self.conversation.verbatim = None;
        self.notes.append(&mut self.foreign_notes);
    }

    /// Keeps the original messages and tools, to forward them unchanged to an upstream of the same
    /// API.
    pub(crate) fn keep(&mut self, api: Api, members: Map<String, Value>) {
        if members.contains_key("messages") || members.contains_key("input") {
            self.foreign_notes.append(&mut self.notes);
        }
        let messages = self.conversation.messages.len();
        let is_partial = !self.references.is_empty();
        self.conversation.verbatim = Some(Verbatim::new(api.name(), members, messages, is_partial));
    }

    /// Sets the messages and notes. `member` is the body member that holds the messages, and
    /// `is_empty` says that no message was found in it.
    ///
    /// # Errors
    /// Fails if there are no messages and no references to earlier ones.
    pub(crate) fn end(
        mut self,
        messages: Vec<Message>,
        member: &str,
        is_empty: bool,
        notes: InboundNotes,
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

/// Twice the number of bytes per token. English prose has about four characters per token, code and
/// JSON about three, and text with three bytes per character about one character per token.
const HALF_BYTES: usize = 7;

/// The tokens that each message adds.
const MESSAGE: usize = 5;

/// The maximum number of tokens for an image after scaling
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>, "Evaluate image size").
const IMAGE: usize = 1600;

/// The estimated tokens of a file, whose number of pages is unknown
/// (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>: 1,500 to 3,000 tokens per
/// page).
const FILE: usize = 2000;

/// The tokens that Claude's API adds to a request with tools
/// (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>, "Pricing": 346 tokens
/// with the choice `auto`).
const CLAUDE_TOOLS: usize = 346;

/// The tokens that other models' chat templates add to a request with tools: the calling
/// instructions and the markers around the list. The template of Qwen 2.5 and 3 adds 430 bytes.
const TOOLS: usize = 120;

impl InboundRequest {
    /// Estimates the number of tokens in the request: one token per 3.5 bytes of text, calls,
    /// results and tools, plus 5 per message, 1,600 per image and 2,000 per file, and, if there are
    /// tools, 346 for a Claude model or 120 for any other. Tokenizers differ, so a response with
    /// this number must call it an estimate.
    pub fn estimated_tokens(&self) -> usize {
        let mut count = self.counted();
        let is_claude = self
            .model
            .as_deref()
            .is_some_and(|model| model.to_lowercase().contains("claude"));
        let has_tools = self
            .tools
            .as_ref()
            .is_some_and(|tools| tools.iter().next().is_some());
        if has_tools || !self.provider_tools.is_empty() {
            count.whole += if is_claude { CLAUDE_TOOLS } else { TOOLS };
        }
        if let Some(tools) = &self.tools {
            count.bytes += tools.openai(|_| true).len();
        }
        count.bytes += self
            .provider_tools
            .iter()
            .map(|tool| tool.to_string().len())
            .sum::<usize>();
        count.whole + count.media + (count.bytes * 2).div_ceil(HALF_BYTES)
    }

    /// Estimates the tokens of images and files alone, which a count of the prompt's text omits.
    pub fn estimated_media_tokens(&self) -> usize {
        self.counted().media
    }

    fn counted(&self) -> InboundCount {
        let mut count = InboundCount::default();
        for message in &self.conversation.messages {
            count.whole += MESSAGE;
            for (key, value) in message.fields() {
                // Data for the provider is not text, and reasoning from earlier turns is not
                // counted.
                if !matches!(key.as_str(), "role" | "provider" | "reasoning") {
                    count.value(value);
                }
            }
        }
        count
    }
}

/// The running totals of an estimate.
#[derive(Default)]
struct InboundCount {
    bytes: usize,
    whole: usize,
    /// The tokens of images and files.
    media: usize,
}

impl InboundCount {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => match members.text_of("type") {
                Some("image_url" | "input_image" | "image") => self.media += IMAGE,
                Some("file" | "input_file" | "input_audio" | "document") => self.media += FILE,
                _ => {
                    let counted = members
                        .iter()
                        .filter(|(key, _)| !matches!(key.as_str(), "type" | "id" | "provider"));
                    counted.for_each(|(_, value)| self.value(value));
                }
            },
            Value::Number(number) => self.bytes += number.as_str().len(),
            Value::Bool(_) | Value::Null => {}
        }
    }
}

/// A reference by a provider's id to an earlier answer or to other data that the provider stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The path of the reference, such as `previous_response_id` or `input[3]`.
    pub member: String,
    /// What the id refers to.
    pub kind: ReferenceKind,
    /// The id.
    pub id: String,
}

/// The kind of data that a reference refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// An earlier answer (`previous_response_id`).
    Answer,
    /// An item of an earlier answer (`item_reference`).
    Item,
    /// A conversation that the provider stores.
    Conversation,
    /// A prompt that the provider stores.
    Prompt,
    /// The thread of an earlier Anthropic answer (`thread: {"type": "continue"}`).
    Thread,
}

impl ReferenceKind {
    /// Returns the error code that clients recognise. The code for an answer is OpenAI's own, the
    /// code for a thread Anthropic's.
    pub(crate) fn code(self) -> &'static str {
        match self {
            ReferenceKind::Answer | ReferenceKind::Item => "previous_response_not_found",
            ReferenceKind::Conversation => "conversation_not_found",
            ReferenceKind::Prompt => "prompt_not_found",
            ReferenceKind::Thread => "thread_not_found",
        }
    }

    /// Returns why the data cannot be found, and what to send instead.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            ReferenceKind::Answer => {
                "earlier answers are not kept here; send the whole conversation in input"
            }
            ReferenceKind::Item => {
                "items of earlier answers are not kept here; send the items themselves (in the \
                 AI SDK: providerOptions.openai.store = false)"
            }
            ReferenceKind::Conversation => {
                "conversations are not kept here; send all items in input"
            }
            ReferenceKind::Prompt => {
                "prompts are not kept here; send the prompt's text in instructions and input"
            }
            ReferenceKind::Thread => {
                "threads are not kept here; send the whole conversation in messages with thread \
                 {\"type\": \"create\"}, or without thread"
            }
        }
    }
}

impl Reference {
    /// Whether a provider of the client's own API at `url` may have the data. Only Anthropic's own
    /// servers support `thread`; other servers of its API ignore it and would answer the last
    /// message without its history.
    pub(crate) fn may_be_known(&self, url: &str) -> bool {
        self.kind != ReferenceKind::Thread || host(url) == host(Api::Anthropic.base_url())
    }
}

/// Returns the references in an OpenAI Responses request, except those in its `input`.
pub(crate) fn of_responses(params: &Map<String, Value>) -> Vec<Reference> {
    let members = [
        ("previous_response_id", ReferenceKind::Answer),
        ("conversation", ReferenceKind::Conversation),
        ("prompt", ReferenceKind::Prompt),
    ];
    let reference = |(member, kind): (&str, ReferenceKind)| {
        let value = params.get(member)?;
        // `conversation` may be an id or an object with one.
        let id = value
            .as_str()
            .or_else(|| value.get("id")?.as_str())
            .filter(|id| !id.is_empty())?;
        Some(Reference {
            member: member.to_owned(),
            kind,
            id: id.to_owned(),
        })
    };
    members.into_iter().filter_map(reference).collect()
}

/// Returns the reference in a Messages API request. Source: `BetaThreadContinueParams` in
/// anthropic-sdk-python.
pub(crate) fn of_messages(params: &Map<String, Value>) -> Option<Reference> {
    let thread = params
        .get("thread")
        .filter(|thread| thread.get("type").is_some_and(|kind| kind == "continue"))?;
    let id = thread.text_of("previous_message_id").unwrap_or_default();
    Some(Reference {
        member: "thread".to_owned(),
        kind: ReferenceKind::Thread,
        id: id.to_owned(),
    })
}
