//! `/v1/messages/count_tokens`. Source: <https://docs.anthropic.com/en/api/messages-count-tokens>.

use super::body;
use super::refusal::Refusal;
use super::response::{ResponseBody, whole};
use super::service::{Admitted, Service};
use super::turn::forwarded;
use crate::asked::Asked;
use api::Api;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};

impl Service {
    /// The tokens of a request of Anthropic's API: as the provider counts them, else an estimate.
    pub(super) async fn count_tokens(
        &self,
        request: Request<Incoming>,
        admitted: &Admitted,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (headers, bytes) = body::read(request, body::JSON, &self.limits, &mut share).await?;
        let request = body::inbound(Api::Anthropic, &bytes, &mut share).await?;
        self.source
            .check(Api::Anthropic, &request)
            .map_err(body::refused)?;
        let estimate = request.estimated_tokens();
        let asked = Asked {
            share,
            key: admitted.key,
            id: admitted.id.clone(),
            api: Api::Anthropic,
            request,
            retries: false,
            headers: forwarded(Api::Anthropic, &headers),
        };
        let counted = match self.source.upstream() {
            Some(upstream) => upstream.count_tokens(asked, &bytes).await,
            None => None,
        };
        let body = format!(
            "{{\"input_tokens\":{}}}",
            counted.unwrap_or(estimate as u64)
        );
        let mut response = whole(StatusCode::OK, "application/json", body.into_bytes());
        if counted.is_none() {
            response
                .headers_mut()
                .insert("x-toolpipe-estimate", HeaderValue::from_static("true"));
        }
        Ok(response)
    }
}
