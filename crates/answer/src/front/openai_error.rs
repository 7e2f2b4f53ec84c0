//! The error of OpenAI's APIs.

use crate::failure::Failure;
use event::Object;

/// The APIs whose providers report errors in this shape.
pub(crate) const APIS: &[&str] = &["openai-chat", "openai-responses"];

/// The body of an HTTP error, which is also the error in a chat stream. What a provider of these APIs says of an error stays, since clients match on
/// it. <https://platform.openai.com/docs/guides/error-codes>
pub(crate) fn body(failure: &Failure) -> Vec<u8> {
    let provider = |key: &str| failure.provider_text(APIS, key).filter(|_| failure.code != "context_overflow");
    let kind = provider("type").unwrap_or_else(|| failure.openai_type().to_owned());
    let code = provider("code").unwrap_or_else(|| failure.openai_code().to_owned());
    let param = failure.param.clone().or_else(|| failure.provider_text(APIS, "param"));
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.object("error", |o| {
        o.str("message", &failure.message).str("type", &kind);
        match &param {
            Some(param) => o.str("param", param),
            None => o.raw("param", "null"),
        };
        if code.starts_with("http_") && failure.provider_has_null(APIS, "code") {
            o.raw("code", "null");
        } else {
            o.str("code", &code);
        }
    });
    o.close();
    out
}
