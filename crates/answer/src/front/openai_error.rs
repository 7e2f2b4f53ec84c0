//! The error of OpenAI's APIs.

use crate::failure::Failure;
use event::Object;

/// The body of an HTTP error, which is also the error in a chat stream. <https://platform.openai.com/docs/guides/error-codes>
pub(super) fn body(failure: &Failure) -> Vec<u8> {
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.object("error", |o| {
        o.str("message", &failure.message).str("type", failure.openai_type());
        o.raw("param", "null").str("code", failure.openai_code());
    });
    o.close();
    out
}
