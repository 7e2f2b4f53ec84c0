//! Errors of the Messages API, before a stream and in it.
//!
//! Source: Anthropic's "Errors" (platform.claude.com/docs/en/api/errors).

use crate::answer::failure::{ANTHROPIC, Failure};
use event::Object;

/// The body of an HTTP error.
pub(super) fn body(failure: &Failure) -> Vec<u8> {
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.str("type", "error");
    error(&mut o, failure);
    o.close();
    out
}

/// The member `error`.
pub(super) fn error(o: &mut Object<'_>, failure: &Failure) {
    // A 413 is about the bytes of the request, which Anthropic's clients tell from a prompt that is
    // too long.
    let is_overflow = failure.code == "context_overflow" && failure.status != 413;
    let own = failure
        .provider_text(ANTHROPIC, "type")
        .filter(|_| !is_overflow);
    o.object("error", |o| {
        o.str(
            "type",
            own.as_deref().unwrap_or(match failure.status {
                _ if is_overflow => "invalid_request_error",
                _ if failure.is_quota() => "billing_error",
                status => kind(status),
            }),
        );
        if is_overflow && !failure.message.contains(TOO_LONG) {
            o.str("message", &format!("{TOO_LONG}: {}", failure.message));
        } else {
            o.str("message", &failure.message);
        }
        if let Some(details) = failure.details() {
            o.raw("details", &details);
        }
    });
}

/// The provider's own words, by which Claude Code and others know that they must make the
/// conversation shorter.
const TOO_LONG: &str = "prompt is too long";

fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}
