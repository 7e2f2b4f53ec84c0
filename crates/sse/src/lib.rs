//! Server-Sent Events after the WHATWG specification (HTML, section 9.2 "Server-sent events").
//!
//! What it is: [`Decoder`] takes the bytes of a body in any pieces and gives [`Event`]s; [`encode`] writes one.
//! What it is not: it opens nothing, reconnects nothing, and does not know what the data means.

mod decode;
mod encode;

pub use decode::{Decoder, Event};
pub use encode::encode;
