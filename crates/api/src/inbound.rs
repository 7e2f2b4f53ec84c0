//! The requests that clients send, in the three APIs that they speak: a conversation, and what is
//! asked besides it.

mod anthropic;
mod choice;
mod complete;
mod draft;
mod headers;
mod lines;
mod notes;
mod openai_chat;
mod openai_responses;
mod parameters;
mod references;
mod request;
mod size;
mod surrogates;
mod tokens;
mod tools;

pub use headers::forwarded_headers;
pub use lines::request_event;
pub use parameters::Target;
pub use references::{Reference, ReferenceKind};
pub use request::{InboundError, InboundRequest};
pub use size::inbound_size;
pub use tools::NamespacedTool;

use crate::Api;
use serde_json::Value;

/// Reads the body of a client's request in `api`, which is one of openai-chat, openai-responses and
/// anthropic.
///
/// # Errors
/// A body that is not a JSON object, has no messages, or has more than 250,000 values; nothing else
/// is refused.
pub fn inbound(api: Api, body: &[u8]) -> Result<InboundRequest, InboundError> {
    if size::has_too_many(body) {
        return Err(InboundError::TooMany);
    }
    let body: Value = serde_json::from_slice(body)
        .or_else(|e| {
            surrogates::without_halves(body).map_or(Err(e), |body| serde_json::from_slice(&body))
        })
        .map_err(|e| InboundError::NotJson(e.to_string()))?;
    let Value::Object(body) = body else {
        return Err(InboundError::NotJson("another JSON value".into()));
    };
    let mut request = match api {
        Api::OpenaiResponses => openai_responses::read(body),
        Api::Anthropic => anthropic::read(body),
        _ => openai_chat::read(body),
    }?;
    request.conversation.client = Some(api.name());
    Ok(request)
}
