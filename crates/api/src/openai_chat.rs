//! The Chat Completions API of OpenAI and of the many compatible servers. `request.rs` defines its
//! row in the table of APIs.

pub(crate) mod inbound;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod writer;
