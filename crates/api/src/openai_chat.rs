//! Chat completions, of OpenAI and of the many servers that speak them. `request.rs` has the row in the table of APIs.

pub(crate) mod inbound;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod writer;
