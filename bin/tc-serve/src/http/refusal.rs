//! Why a request is refused, and the response that reports it.

use super::response::{ResponseBody, whole};
use crate::budget::{FULL_MS, MEMORY};
use api::{Failure, Front};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};

/// Why a request is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status, and what the body says.
    pub failure: Box<Failure>,
    /// The methods that would be allowed.
    pub allow: Option<String>,
    /// Further headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal {
            failure: Box::new(failure),
            allow: None,
            headers: Vec::new(),
        }
    }
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Refusal {
        let failure = Failure {
            status,
            code: code.to_owned(),
            message: message.into(),
            ..Failure::default()
        };
        failure.into()
    }

    /// No key, or a wrong one.
    pub fn unauthorized(has_key: bool) -> Refusal {
        let what = if has_key {
            "the key is wrong"
        } else {
            "a key is missing"
        };
        let how = "send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'";
        Refusal::new(401, "invalid_api_key", format!("{what}, {how}"))
    }

    /// A request that finds no room beside those that are open.
    pub fn memory() -> Refusal {
        let mut refusal = Refusal::new(503, "memory_full", MEMORY);
        refusal.failure.retry_after_ms = Some(FULL_MS);
        refusal
    }

    /// A path that does not exist.
    pub fn not_found(path: &str) -> Refusal {
        let paths = "use /v1/chat/completions, /v1/responses, /v1/messages or /v1/models";
        Refusal::new(
            404,
            "not_found",
            format!("{}: no such path, {paths}", event::cut(path, 200)),
        )
    }

    /// A method that the path does not have.
    pub fn method(method: &Method, allowed: &str) -> Refusal {
        let method = event::cut(method.as_str(), 40);
        let refusal = Refusal::new(
            405,
            "method_not_allowed",
            format!("{method}: not allowed here, use {allowed}"),
        );
        Refusal {
            allow: Some(allowed.to_owned()),
            ..refusal
        }
    }

    /// The response. Its body has the form of `front`; that of OpenAI for a path that no front has.
    pub fn response(&self, front: Option<Front>) -> Response<ResponseBody> {
        let failure = &self.failure;
        let status = StatusCode::from_u16(failure.status)
            .ok()
            .filter(|status| status.as_u16() >= 400);
        let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = whole(
            status,
            "application/json",
            front.unwrap_or(Front::Chat).failure(failure),
        );
        let headers = response.headers_mut();
        if let Some(ms) = failure.retry_after_ms {
            headers.insert("retry-after", HeaderValue::from(ms.div_ceil(1000)));
            headers.insert("retry-after-ms", HeaderValue::from(ms));
        }
        headers.extend(self.headers.iter().cloned());
        let may_retry = matches!(status.as_u16(), 408 | 409 | 429 | 500..);
        headers.insert(
            "x-should-retry",
            HeaderValue::from_static(if may_retry { "true" } else { "false" }),
        );
        if let Some(allow) = self
            .allow
            .as_deref()
            .and_then(|allow| HeaderValue::from_str(allow).ok())
        {
            headers.insert("allow", allow);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
        }
        // The rest of a body that is too long, or that comes too slowly, is not read.
        if matches!(status.as_u16(), 408 | 413 | 415) {
            headers.insert("connection", HeaderValue::from_static("close"));
        }
        response
    }
}
