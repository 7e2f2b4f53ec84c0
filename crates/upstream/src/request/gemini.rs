//! .

use super::{RequestError, RequestOptions};
use crate::Conversation;
use serde_json::{Map, Value};

/// The body of the request.
pub(crate) fn body(_talk: &Conversation, _options: &RequestOptions) -> Result<Map<String, Value>, RequestError> {
    Ok(Map::new())
}

/// What follows the base URL.
pub(crate) fn path(options: &RequestOptions) -> String {
    let method = if options.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("/models/{}:{method}", options.model)
}
