//! What a client asks for, and why it cannot be read.

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
    /// What a person answered to calls of the service that wait (`mcp_approval_response` of OpenAI
    /// Responses).
    pub approvals: Vec<ClientApproval>,
    /// What of the conversation came of `instructions`.
    pub instructions: Instructions,
    /// The chat of a user interface that the request belongs to.
    pub chat: Option<Box<Chat>>,
}

/// What a person answered to a call that waits, as the client sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientApproval {
    /// The id of the call.
    pub call_id: String,
    /// Whether the call may run.
    pub is_approved: bool,
    /// Why.
    pub reason: Option<String>,
    /// The hash of the call that was shown, if the client sends it: it counts for no other call.
    pub hash: Option<String>,
}

impl ClientApproval {
    /// Whether this is the answer to the call of this id. The id of a second request for the approval
    /// of one call has its place in the output behind the id of the call.
    pub fn is_of(&self, call: &str) -> bool {
        self.call_id.strip_prefix(call).is_some_and(|rest| {
            let place = rest.strip_prefix('_').map(str::parse::<u32>);
            rest.is_empty() || matches!(place, Some(Ok(_)))
        })
    }
}

/// What of a conversation came of the `instructions` of OpenAI Responses, which hold for one
/// request. A system or developer message of the input holds for the requests that follow, too.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    /// Their part of the system message.
    pub text: String,
    /// The other part of the system message.
    pub others: String,
    /// How many messages behind the system message are theirs.
    pub messages: usize,
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

    /// A request of a user interface with these settings and tools. Its answer is a stream.
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

    /// Sets the tools, which are those of all `lists`, and the choice among them. Returns whether
    /// the client's own lists hold more than these tools.
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

    /// Drops `parallel_tool_calls` of a request without tools: chat completions reject it.
    pub(crate) fn drop_parallel_without_tools(&mut self) {
        if self.tools.is_none() && self.provider_tools.is_empty() {
            self.params.shift_remove("parallel_tool_calls");
        }
    }

    /// No upstream gets the request as the client wrote it.
    pub(crate) fn drop_verbatim(&mut self) {
        self.conversation.verbatim = None;
        self.notes.append(&mut self.foreign_notes);
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

/// Bytes of text that make a token, times two. English prose has about four characters a token,
/// code and JSON about three, and text in three bytes a character about one token a character.
const HALF_BYTES: usize = 7;

/// What the frame of a message takes.
const MESSAGE: usize = 5;

/// What an image takes at most after it was made smaller
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>, "Evaluate image size").
const IMAGE: usize = 1600;

/// What a file takes, of which the reader does not know how many pages it has
/// (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>: 1,500 to 3,000 tokens a
/// page).
const FILE: usize = 2000;

/// What Claude's API writes around the tools of a request
/// (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>, "Pricing": 346 tokens
/// with the choice `auto`).
const CLAUDE_TOOLS: usize = 346;

/// What the chat template of another model writes around them: how calls are written, and where the
/// list begins and ends. That of Qwen 2.5 and 3 has 430 bytes.
const TOOLS: usize = 120;

impl InboundRequest {
    /// An estimate of the tokens of the request: a token for each 3.5 bytes of its texts, calls,
    /// results and tools, 5 for each message, 1,600 for each image and 2,000 for each file, and
    /// with tools 346 for a Claude and 120 for any other model. Every model counts otherwise, so an
    /// answer that has this number must call it an estimate.
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

    /// What of it are images and files, which a count of the prompt's text leaves out.
    pub fn estimated_media_tokens(&self) -> usize {
        self.counted().media
    }

    fn counted(&self) -> InboundCount {
        let mut count = InboundCount::default();
        for message in &self.conversation.messages {
            count.whole += MESSAGE;
            for (key, value) in message.fields() {
                // What providers want back is not text, and reasoning of earlier turns is not
                // counted.
                if !matches!(key.as_str(), "role" | "provider" | "reasoning") {
                    count.value(value);
                }
            }
        }
        count
    }
}

/// What was counted so far.
#[derive(Default)]
struct InboundCount {
    bytes: usize,
    whole: usize,
    /// Of images and files.
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

/// What a request refers to by an id that its provider gave: an earlier answer, or something else
/// that the provider keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where the request has it, such as `previous_response_id` or `input[3]`.
    pub member: String,
    /// What it is.
    pub kind: ReferenceKind,
    /// The id.
    pub id: String,
}

/// What a request refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// An earlier answer (`previous_response_id`).
    Answer,
    /// An item of an earlier answer (`item_reference`).
    Item,
    /// A conversation that the provider keeps.
    Conversation,
    /// A prompt that the provider keeps.
    Prompt,
    /// The thread of an earlier answer of Anthropic's (`thread: {"type": "continue"}`).
    Thread,
}

impl ReferenceKind {
    /// The word by which clients know the error. That of an answer is OpenAI's, that of a thread
    /// Anthropic's.
    pub(crate) fn code(self) -> &'static str {
        match self {
            ReferenceKind::Answer | ReferenceKind::Item => "previous_response_not_found",
            ReferenceKind::Conversation => "conversation_not_found",
            ReferenceKind::Prompt => "prompt_not_found",
            ReferenceKind::Thread => "thread_not_found",
        }
    }

    /// Why it cannot be found, and what to send in its place.
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
    /// Whether the provider of the client's own API at `url` may know it. Servers of Anthropic's
    /// API other than Anthropic's own pass over `thread`, and would ask their model for an answer
    /// to nothing but the last message.
    pub(crate) fn may_be_known(&self, url: &str) -> bool {
        self.kind != ReferenceKind::Thread || host(url) == host(Api::Anthropic.base_url())
    }
}

/// The references among the members of a request of OpenAI Responses, without those in its input.
pub(crate) fn of_responses(params: &Map<String, Value>) -> Vec<Reference> {
    let members = [
        ("previous_response_id", ReferenceKind::Answer),
        ("conversation", ReferenceKind::Conversation),
        ("prompt", ReferenceKind::Prompt),
    ];
    let reference = |(member, kind): (&str, ReferenceKind)| {
        let value = params.get(member)?;
        // A conversation may be an id or an object with one.
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

/// The reference of a request of the Messages API. Source: `BetaThreadContinueParams` in
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
