//! A request whose response is stored, and what the service needs to run its own tools for it.

use super::service::Admitted;
use crate::budget::Share;
use crate::front::AnyFront;
use crate::tools::ServiceTools;
use api::InboundRequest;
use hyper::HeaderMap;
use hyper::body::Bytes;
use std::ffi::OsString;
use std::rc::Rc;

/// A request whose response is stored.
pub(super) struct KeptRequest<'r> {
    /// What is known from the request's head.
    pub admitted: &'r Admitted,
    /// The protocol that the client speaks.
    pub front: AnyFront,
    /// The headers.
    pub headers: &'r HeaderMap,
    /// The parsed body.
    pub inbound: InboundRequest,
    /// The bytes of the body.
    pub body: Bytes,
    /// The request's share of the memory budget.
    pub share: Share,
}

/// What the service needs to run its own tools for a request.
pub(super) struct OwnTools {
    /// The tools.
    pub tools: Rc<ServiceTools>,
    /// The names of the client's tools.
    pub leave: Vec<String>,
    /// The options with which `tool-exec` runs the calls of the last turn before the model is
    /// asked; `None` if the last turn has no open calls.
    pub decides: Option<Vec<OsString>>,
    /// Whether the response ends, instead of waiting, when a call needs approval.
    pub ends_for_a_person: bool,
}
