//! Parses the requests that clients send in the three APIs they speak: the conversation and the
//! request's other settings.

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
    TargetServer, most_tokens, settings_for, with_at_most, with_fitted_budget,
};
pub use crate::inbound::request::{
    ClientApproval, InboundError, InboundRequest, Instructions, Reference, ReferenceKind,
};
pub use crate::inbound::tools::NamespacedTool;

/// Parses a body, which must be a JSON object.
///
/// # Errors
/// Returns [`InboundError::TooMany`] or [`InboundError::NotJson`].
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

/// Parses a request body from a user interface.
///
/// # Errors
/// Same as [`inbound`].
pub fn ui_inbound(front: UiFront, body: &[u8]) -> Result<InboundRequest, InboundError> {
    (front.row().read)(object(body)?, InboundNotes::default())
}

/// Parses the body of a client's request in `api`: openai-chat, openai-responses or anthropic.
///
/// # Errors
/// Fails if the body is not a JSON object, has no messages, or has more than 250,000 values.
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

/// Returns the names, in lower case, of the client's headers that are forwarded to an upstream of
/// the same API. They select features and contain no credentials or names. Claude Code needs both
/// of Anthropic's headers (<https://code.claude.com/docs/en/llm-gateway>). `x-session-affinity`
/// routes all turns of a conversation to the same server. No headers are forwarded to an upstream
/// of another API.
pub fn forwarded_headers(api: Api) -> &'static [&'static str] {
    match api {
        Api::Anthropic => &["anthropic-beta", "anthropic-version", "x-session-affinity"],
        Api::OpenaiChat | Api::OpenaiResponses => &["openai-beta", "x-session-affinity"],
        Api::Gemini | Api::Ollama | Api::Mistral | Api::Cohere => &[],
    }
}
