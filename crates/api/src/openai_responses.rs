//! OpenAI's Responses API. `request.rs` defines its row in the table of APIs.

pub(crate) mod envelope;
pub(crate) mod inbound;
pub(crate) mod items;
pub(crate) mod listing;
pub(crate) mod output;
pub(crate) mod request;
pub(crate) mod service;
pub(crate) mod stream;
pub(crate) mod writer;
