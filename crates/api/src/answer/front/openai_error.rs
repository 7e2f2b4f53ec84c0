//! The error of OpenAI's APIs.

use crate::answer::failure::{Failure, OPENAI};
use event::Object;

/// The body of an HTTP error, which is also the error in a chat stream. What a provider of these
/// APIs says of an error stays, since clients match on it.
/// <https://platform.openai.com/docs/guides/error-codes>
pub(super) fn body(failure: &Failure) -> Vec<u8> {
    let provider = |key: &str| {
        failure
            .provider_text(OPENAI, key)
            .filter(|_| failure.code != "context_overflow")
    };
    let kind = provider("type").unwrap_or_else(|| failure.openai_type().to_owned());
    let code = provider("code").unwrap_or_else(|| failure.openai_code().to_owned());
    let param = failure
        .param
        .as_deref()
        .map(str::to_owned)
        .or_else(|| failure.provider_text(OPENAI, "param"));
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.object("error", |o| {
        o.str("message", &failure.message).str("type", &kind);
        match &param {
            Some(param) => o.str("param", param),
            None => o.raw("param", "null"),
        };
        if code.starts_with("http_") && failure.provider_has_null(OPENAI, "code") {
            o.raw("code", "null");
        } else {
            o.str("code", &code);
        }
    });
    o.close();
    out
}
