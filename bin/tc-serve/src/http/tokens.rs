//! `/v1/messages/count_tokens`. Source: <https://docs.anthropic.com/en/api/messages-count-tokens>.

use super::body;
use super::refusal::Refusal;
use super::response::{ResponseBody, whole};
use super::service::Service;
use ::upstream::Api;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};

impl Service {
    /// Estimates the tokens of a request of Anthropic's API.
    pub(super) async fn count_tokens(&self, request: Request<Incoming>) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (_, bytes) = body::read(request, &self.limits, &mut share).await?;
        let inbound = body::inbound(Api::Anthropic, &bytes, &mut share).await?;
        let body = format!("{{\"input_tokens\":{}}}", inbound.estimated_tokens());
        let mut response = whole(StatusCode::OK, "application/json", body.into_bytes());
        response.headers_mut().insert("x-toolpipe-estimate", HeaderValue::from_static("true"));
        Ok(response)
    }
}
