//! Errors of OpenAI's APIs, before a stream and in it.
//!
//! Source: OpenAI's "Error codes" (platform.openai.com/docs/guides/error-codes), and the codes of `response.failed` that Codex
//! distinguishes (`codex-api/src/sse/responses.rs`): it retries on any other.

use crate::failure::Failure;
use event::Object;

/// The body of an HTTP error.
pub(super) fn body(failure: &Failure) -> Vec<u8> {
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.object("error", |o| {
        o.str("message", &failure.message).str("type", kind(failure)).raw("param", "null");
        match specific(failure) {
            Some(code) => o.str("code", code),
            None => o.str("code", &failure.code),
        };
    });
    o.close();
    out
}

/// `error.code` of a response that failed.
pub(super) fn code(failure: &Failure) -> &'static str {
    specific(failure).unwrap_or("server_error")
}

fn specific(failure: &Failure) -> Option<&'static str> {
    match (failure.code.as_str(), failure.status) {
        ("context_overflow", _) => Some("context_length_exceeded"),
        (code, 402) | (code, 429) if failure.status == 402 || code.contains("quota") => Some("insufficient_quota"),
        (_, 429) => Some("rate_limit_exceeded"),
        (_, 400 | 422) => Some("invalid_prompt"),
        _ => None,
    }
}

fn kind(failure: &Failure) -> &'static str {
    match failure.status {
        401 => "authentication_error",
        402 => "insufficient_quota",
        403 => "permission_error",
        429 if failure.code.contains("quota") => "insufficient_quota",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}
