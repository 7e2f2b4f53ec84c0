//! A client's request to the source of events.

use crate::budget::Share;
use crate::keys::ClientKey;
use api::{Api, InboundRequest};
use trace::TraceContext;

/// A client's request.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    /// The share of the memory budget (`--max-memory`) that the conversation uses.
    pub share: Share,
    /// The client's key.
    pub key: ClientKey,
    /// The id of the request, sent to the client as `x-request-id`: 32 hexadecimal digits.
    pub id: String,
    /// The API that the client speaks. `request.params` contains members of a request body in this
    /// API.
    pub api: Api,
    /// The parsed request body.
    pub request: InboundRequest,
    /// Whether the client itself retries a failed request.
    pub retries: bool,
    /// The client's headers to forward to a provider of the same API (`anthropic-beta`, …), with
    /// names in lower case.
    pub headers: Vec<(String, String)>,
    /// The span of the response; `None` if it is not traced.
    pub trace: Option<TraceContext>,
}
