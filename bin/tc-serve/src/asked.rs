//! What a client asks for, on its way to a source of events.

use crate::budget::Share;
use crate::places::KeyPlace;
use api::{Api, InboundRequest};

/// What a client asks for.
#[derive(Debug)]
pub struct Asked {
    /// What its conversation keeps of the bytes that all requests may keep.
    pub share: Share,
    /// The client's key.
    pub key: KeyPlace,
    /// The id of the request, which the client sees as `x-request-id`: 32 hexadecimal digits.
    pub id: String,
    /// The API that the client speaks: the one whose members `request.params` are.
    pub api: Api,
    /// What its body says.
    pub request: InboundRequest,
    /// Whether the client sends a failed request again by itself.
    pub retries: bool,
    /// The client's headers that a provider of the same API may get (`anthropic-beta`, …), names in
    /// lower case.
    pub headers: Vec<(String, String)>,
}
