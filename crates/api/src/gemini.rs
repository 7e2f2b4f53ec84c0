//! Google's Gemini API. `request.rs` defines its row in the table of APIs.

pub(crate) mod partial;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod writer;
