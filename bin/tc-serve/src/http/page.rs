//! `GET /`: the page, or a line that describes the service.

use super::response::{Content, ResponseBody, text, whole};
use super::service::Service;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response, StatusCode};

/// The text at `/` if responses are not stored.
const WITHOUT_SESSIONS: &str = "tc-serve: POST /v1/chat/completions, /v1/responses or \
    /v1/messages\nStart it with --sessions DIR for a page of sessions here.\n";

/// The text at `/` with `--no-page`.
const WITHOUT_PAGE: &str = "tc-serve: POST /v1/chat/completions, /v1/responses or /v1/messages\n";

impl Service {
    /// Returns the page. It contains no session data; its script requests that with the client's
    /// key.
    pub(super) fn root(&self, headers: &HeaderMap) -> Response<ResponseBody> {
        let Some(page) = &self.page else {
            let line = match self.sessions {
                Some(_) => WITHOUT_PAGE,
                None => WITHOUT_SESSIONS,
            };
            return text(StatusCode::OK, line);
        };
        let known = headers.get("if-none-match").map(HeaderValue::as_bytes);
        let mut response = match known == Some(page.tag.as_bytes()) {
            true => {
                let mut response = Response::new(ResponseBody::new(Content::Whole(Bytes::new())));
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
            false => whole(
                StatusCode::OK,
                "text/html; charset=utf-8",
                page.html.clone(),
            ),
        };
        let headers = response.headers_mut();
        let values = [
            ("content-security-policy", page.policy.as_str()),
            ("etag", &page.tag),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-cache"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        for (name, value) in values {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
