//! Paths that are forwarded to the provider unchanged: requests of a local server's clients that do
//! not ask for a model's response.

use super::body;
use super::headers::forwarded;
use super::response::{Content, PassedBody, Refusal, RequestRecord, ResponseBody};
use super::service::{Admitted, Service};
use crate::route::Endpoint;
use crate::traces::client_trace;
use crate::upstream::{Passed, model_of, with_model};
use api::Api;
use api::FailedAnswer;
use client::Head;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use std::rc::Rc;
use trace::TraceContext;

/// Headers of the provider's response that are not forwarded to the client: connection-specific
/// headers (RFC 9110, 7.6.1), headers about a body that is encoded differently here, security
/// headers for browsers, and headers that this service writes itself.
const KEPT_BACK: [&str; 21] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "content-encoding",
    "alt-svc",
    "location",
    "server",
    "date",
    "set-cookie",
    "strict-transport-security",
    "vary",
    "www-authenticate",
    "request-id",
    "x-request-id",
];

impl Service {
    /// Forwards a request to `path` of the provider, and the response to the client.
    pub(super) async fn pass(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        path: &str,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        let query = request.uri().query().map(str::to_owned);
        let (method, headers, bytes) = if request.method() == Method::POST {
            let types = if admitted.route == Endpoint::Pass(true) {
                body::FORMS
            } else {
                body::ONLY_JSON
            };
            let (headers, bytes) = body::read(request, types, &self.limits, &mut share).await?;
            ("POST", headers, bytes)
        } else {
            ("GET", request.into_parts().0.headers, Bytes::new())
        };
        exchange.begin_answer();
        let named = model_of(&bytes);
        let asked = named.as_deref().and_then(|name| self.source.asked(name));
        let bytes = asked
            .and_then(|asked| with_model(&bytes, asked))
            .unwrap_or(bytes);
        let mut passing = self.source.upstreams().filter(|upstream| upstream.passes());
        let Some(upstream) = self
            .source
            .upstream(named.as_deref())
            .or_else(|| passing.next())
        else {
            return Err(Refusal::not_found(path));
        };
        let answer = async {
            let Some(place) = self.places(admitted.key).take(admitted.key).await else {
                let message = "too many answers are open";
                return Err(Refusal::full(429, "too_many_requests", message));
            };
            let headers = passed_headers(&headers);
            let answer = upstream
                .pass(method, path, query.as_deref(), &headers, bytes)
                .await;
            answer.map(|answer| (answer, place)).map_err(Refusal::from)
        };
        let ((head, body), place) = tokio::select! {
            biased;
            answer = answer => answer?,
            () = self.ending.is_cut() => return Err(Refusal::new(503, "shutting_down", "the server is being stopped")),
        };
        let content = match body {
            Passed::Refusal(words) => Content::Whole(words),
            Passed::Stream(body) => {
                let service = Rc::clone(self);
                Content::Passed(PassedBody::new(body, place, move |error| {
                    let upstream = service.source.upstream(named.as_deref());
                    upstream.map_or_else(FailedAnswer::default, |upstream| upstream.lost(error))
                }))
            }
        };
        let mut response = Response::new(ResponseBody::new(content));
        *response.status_mut() =
            StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
        *response.headers_mut() = answer_headers(&head);
        Ok(response)
    }
}

/// Returns the client's headers to forward to the provider: those that describe the body, the
/// accepted responses, feature selection and the client's span. No key is included.
fn passed_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let named = |name: &str| {
        Some((
            name.to_owned(),
            headers.get(name)?.to_str().ok()?.to_owned(),
        ))
    };
    let mut passed: Vec<_> = ["content-type", "accept"]
        .into_iter()
        .filter_map(named)
        .collect();
    passed.extend(forwarded(Api::OpenaiChat, headers));
    // The service adds no span between the client's and the provider's.
    let trace = client_trace(headers);
    let trace = trace.iter().flat_map(TraceContext::headers);
    passed.extend(trace.map(|(name, value)| (name.to_owned(), value)));
    passed
}

/// Returns the provider's headers to forward to the client.
fn answer_headers(head: &Head) -> HeaderMap {
    let of_connection = |name: &str| {
        let names = head
            .headers
            .iter()
            .filter(|(name, _)| name == "connection")
            .flat_map(|(_, value)| value.split(','));
        names
            .map(str::trim)
            .any(|named| named.eq_ignore_ascii_case(name))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &head.headers {
        let is_kept = KEPT_BACK.contains(&name.as_str())
            || name.starts_with("access-control-")
            || of_connection(name);
        let header = HeaderName::try_from(name.as_str())
            .ok()
            .zip(HeaderValue::from_str(value).ok());
        if let Some((name, value)) = header.filter(|_| !is_kept) {
            headers.append(name, value);
        }
    }
    headers
}
