//! A client's request of this API.

use super::request::{InboundError, InboundRequest};
use serde_json::{Map, Value};

/// Reads the body.
///
/// # Errors
/// See [`crate::inbound`].
pub(crate) fn read(body: Map<String, Value>) -> Result<InboundRequest, InboundError> {
    Ok(InboundRequest { params: body, ..InboundRequest::default() })
}
