//! What a client asks the source of events for.

use crate::budget::Share;
use crate::keys::ClientKey;
use api::{Api, InboundRequest};
use trace::TraceContext;

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    /// The share of the memory budget (`--max-memory`) that the conversation uses.
    pub share: Share,
    /// The client's key.
    pub key: ClientKey,
    /// The id of the request, which the client sees as `x-request-id`: 32 hexadecimal digits.
    pub id: String,
    /// The API that the client speaks; `request.params` holds members of a request body of this
    /// API.
    pub api: Api,
    /// The body of the request, read.
    pub request: InboundRequest,
    /// Whether the client sends a failed request again by itself.
    pub retries: bool,
    /// The client's headers that a provider of the same API may get (`anthropic-beta`, …), names in
    /// lower case.
    pub headers: Vec<(String, String)>,
    /// The span of the answer, if there is a trace.
    pub trace: Option<TraceContext>,
}
