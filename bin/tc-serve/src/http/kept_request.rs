//! A request whose answer is kept, and what the service needs to answer it with its own tools.

use super::service::Admitted;
use crate::budget::Share;
use crate::front::AnyFront;
use crate::tools::ServiceTools;
use api::InboundRequest;
use hyper::HeaderMap;
use hyper::body::Bytes;
use std::ffi::OsString;
use std::rc::Rc;

/// A request whose answer is kept.
pub(super) struct KeptRequest<'r> {
    /// What is known of its head.
    pub admitted: &'r Admitted,
    /// What the client speaks.
    pub front: AnyFront,
    /// The headers.
    pub headers: &'r HeaderMap,
    /// What the body says.
    pub inbound: InboundRequest,
    /// The bytes of the body.
    pub body: Bytes,
    /// What the service keeps of it in memory.
    pub share: Share,
}

/// What the service needs to answer a request with its own tools.
pub(super) struct OwnTools {
    /// The tools.
    pub tools: Rc<ServiceTools>,
    /// The names of the client's tools.
    pub leave: Vec<String>,
    /// The options with which `tool-exec` runs the calls of the last turn before the model is asked;
    /// `None` where the last turn has no open calls.
    pub decides: Option<Vec<OsString>>,
    /// Whether the response ends where a call waits for a person.
    pub ends_for_a_person: bool,
}
