//! .

use super::{RequestError, RequestOptions};
use crate::Conversation;
use serde_json::{Map, Value};

/// The body of the request.
pub(crate) fn body(_talk: &Conversation, _options: &RequestOptions) -> Result<Map<String, Value>, RequestError> {
    Ok(Map::new())
}
