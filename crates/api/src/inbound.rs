//! The requests that clients send, in the three APIs that they speak: a conversation, and what is
//! asked besides it.

pub(crate) mod body;
pub(crate) mod complete;
pub(crate) mod draft;
pub(crate) mod history;
pub(crate) mod lines;
pub(crate) mod parameters;
pub(crate) mod request;
pub(crate) mod tools;

use crate::Api;
use crate::inbound::draft::InboundNotes;
use crate::ui::UiFront;
use serde_json::{Map, Value};

pub use crate::inbound::body::inbound_size;
pub use crate::inbound::lines::{message_lines, request_event};
pub use crate::inbound::parameters::{
    TargetServer, settings_for, with_at_most, with_fitted_budget,
};
pub use crate::inbound::request::{
    ClientApproval, InboundError, InboundRequest, Instructions, Reference, ReferenceKind,
};
pub use crate::inbound::tools::NamespacedTool;

/// Parses a body, which has to be an object.
///
/// # Errors
/// [`InboundError::TooMany`] and [`InboundError::NotJson`].
fn object(body: &[u8]) -> Result<Map<String, Value>, InboundError> {
    if body::has_too_many(body) {
        return Err(InboundError::TooMany);
    }
    let body: Value = serde_json::from_slice(body)
        .or_else(|e| {
            body::without_halves(body).map_or(Err(e), |body| serde_json::from_slice(&body))
        })
        .map_err(|e| InboundError::NotJson(e.to_string()))?;
    match body {
        Value::Object(body) => Ok(body),
        _ => Err(InboundError::NotJson("another JSON value".into())),
    }
}

/// Reads the body of a request of a user interface.
///
/// # Errors
/// As [`inbound`].
pub fn ui_inbound(front: UiFront, body: &[u8]) -> Result<InboundRequest, InboundError> {
    (front.row().read)(object(body)?, InboundNotes::default())
}

/// Reads the body of a client's request in `api`, which is one of openai-chat, openai-responses and
/// anthropic.
///
/// # Errors
/// A body that is not a JSON object, has no messages, or has more than 250,000 values; nothing else
/// is refused.
pub fn inbound(api: Api, body: &[u8]) -> Result<InboundRequest, InboundError> {
    let body = object(body)?;
    let mut request = match api {
        Api::OpenaiResponses => crate::openai_responses::inbound::read(body),
        Api::Anthropic => crate::anthropic::inbound::read(body),
        Api::OpenaiChat | Api::Gemini | Api::Ollama | Api::Mistral | Api::Cohere => {
            crate::openai_chat::inbound::read(body)
        }
    }?;
    request.conversation.client = Some(api.name());
    Ok(request)
}

/// The headers of a client that speaks `api` which an upstream of the same API gets, in lower case:
/// they choose features, and hold neither a key nor a name. Claude Code needs both of Anthropic's
/// (<https://code.claude.com/docs/en/llm-gateway>); `x-session-affinity` keeps the turns of a
/// conversation at one server. An upstream of another API gets none.
pub fn forwarded_headers(api: Api) -> &'static [&'static str] {
    match api {
        Api::Anthropic => &["anthropic-beta", "anthropic-version", "x-session-affinity"],
        Api::OpenaiChat | Api::OpenaiResponses => &["openai-beta", "x-session-affinity"],
        Api::Gemini | Api::Ollama | Api::Mistral | Api::Cohere => &[],
    }
}
