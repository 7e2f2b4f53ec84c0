//! What a request refers to by an id, and does not hold.

use crate::Api;
use crate::capability::host;
use serde_json::{Map, Value};

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
                "items of earlier answers are not kept here; send the items themselves (in the AI SDK: providerOptions.openai.store = false)"
            }
            ReferenceKind::Conversation => {
                "conversations are not kept here; send all items in input"
            }
            ReferenceKind::Prompt => {
                "prompts are not kept here; send the prompt's text in instructions and input"
            }
            ReferenceKind::Thread => {
                "threads are not kept here; send the whole conversation in messages with thread {\"type\": \"create\"}, or without thread"
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
    let id = thread
        .get("previous_message_id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(Reference {
        member: "thread".to_owned(),
        kind: ReferenceKind::Thread,
        id: id.to_owned(),
    })
}
