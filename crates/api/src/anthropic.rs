//! Anthropic's Messages API. `request.rs` defines its row in the table of APIs.

pub(crate) mod cache;
pub(crate) mod converse;
pub(crate) mod inbound;
pub(crate) mod message;
pub(crate) mod models;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod whole;
pub(crate) mod writer;
