//! Requests other than those for responses: `/health`, `/ready`, `/metrics`, `/v1/models` and
//! `/v1/messages/count_tokens`.
//!
//! Models have OpenAI's format, or Anthropic's for a client that sends `anthropic-version`.
//! Sources: <https://platform.openai.com/docs/api-reference/models>,
//! <https://docs.anthropic.com/en/api/models-list>,
//! <https://docs.anthropic.com/en/api/messages-count-tokens>.

use super::body::{ONLY_JSON, inbound, read, refused};
use super::headers::forwarded;
use super::response::{Refusal, ResponseBody, text, whole};
use super::service::{Admitted, Service};
use crate::client_request::ClientRequest;
use crate::front::AnyFront;
use crate::pipe::JSON;
use crate::sessions::Sessions;
use api::{Api, Front, ListedModel};
use event::Object;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Request, Response, StatusCode};

impl Service {
    /// Whether the service accepts requests for responses: 503 once a signal has started the
    /// shutdown.
    pub(super) fn ready(&self) -> Response<ResponseBody> {
        let (status, line) = match self.ending.has_begun() {
            false => (StatusCode::OK, "ready\n"),
            true => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
        };
        text(status, line)
    }

    /// Returns the metrics.
    pub(super) fn metrics(&self) -> Response<ResponseBody> {
        let followers = self.sessions.as_deref().map_or(0, Sessions::followers);
        let page = self.pipe.metrics.page(followers, !self.ending.has_begun());
        // The media type of Prometheus' text format.
        whole(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            page,
        )
    }

    /// Checks the provider. On failure, `status` is `upstream_unreachable`, `upstream_timeout`,
    /// `upstream_key_refused` or `upstream_failed`.
    pub(super) async fn health(&self) -> Response<ResponseBody> {
        // A COMMAND is started per request, and recordings are local, so neither is checked.
        let mut checked = Ok(());
        for upstream in self.source.upstreams() {
            checked = match checked {
                Ok(()) => upstream.check().await,
                failed => failed,
            };
        }
        let status = match &checked {
            Ok(()) => StatusCode::OK,
            Err(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let body = event::object(|object| match &checked {
            Ok(()) => _ = object.str("status", "ok"),
            Err(failure) => {
                object
                    .str("status", &failure.code)
                    .str("message", &failure.message);
            }
        });
        whole(status, JSON, body)
    }
}

impl Service {
    /// Returns the list of models, or one of them.
    pub(super) async fn models(
        &self,
        headers: &HeaderMap,
        name: Option<&str>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let models = self.source.models().await?;
        let shape = if headers.contains_key("anthropic-version") {
            anthropic
        } else {
            openai
        };
        let body = match name {
            Some(name) => {
                let Some(known) = models.iter().find(|known| known.name == name) else {
                    let message =
                        format!("{}: no such model, see /v1/models", event::cut(name, 200));
                    return Err(Refusal::new(404, "model_not_found", message));
                };
                event::object(|model| shape(model, known))
            }
            None => event::object(|list| {
                list.str("object", "list");
                list.array("data", |data| {
                    for known in &models {
                        data.object(|model| shape(model, known));
                    }
                });
                if headers.contains_key("anthropic-version") {
                    list.bool("has_more", false);
                    list.maybe_str("first_id", models.first().map(|model| model.name.as_str()));
                    list.maybe_str("last_id", models.last().map(|model| model.name.as_str()));
                }
            }),
        };
        Ok(whole(StatusCode::OK, JSON, body))
    }
}

fn openai(model: &mut Object<'_>, known: &ListedModel) {
    model
        .str("id", &known.name)
        .str("object", "model")
        .int("created", known.created.unwrap_or_default());
    model.str("owned_by", known.owned_by.as_deref().unwrap_or("toolpipe"));
}

fn anthropic(model: &mut Object<'_>, known: &ListedModel) {
    let name = known.name.as_str();
    model
        .str("type", "model")
        .str("id", name)
        .str("display_name", name)
        .str("created_at", "1970-01-01T00:00:00Z");
}

impl Service {
    /// Returns the token count of a request in Anthropic's API, from the provider if it counts,
    /// else an estimate.
    pub(super) async fn count_tokens(
        &self,
        request: Request<Incoming>,
        admitted: &Admitted,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (headers, bytes) = read(request, ONLY_JSON, &self.limits, &mut share).await?;
        let request = inbound(AnyFront::Api(Front::Messages), &bytes, &mut share).await?;
        self.source
            .check(Api::Anthropic, &request)
            .map_err(refused)?;
        let estimate = request.estimated_tokens();
        let asked = ClientRequest {
            share,
            key: admitted.key,
            id: admitted.id.clone(),
            api: Api::Anthropic,
            request,
            retries: false,
            headers: forwarded(Api::Anthropic, &headers),
            trace: None,
        };
        let counted = match self.source.upstream(asked.request.model.as_deref()) {
            Some(upstream) => upstream.count_tokens(asked, &bytes).await,
            None => None,
        };
        let body = format!(
            "{{\"input_tokens\":{}}}",
            counted.unwrap_or(estimate as u64)
        );
        let mut response = whole(StatusCode::OK, JSON, body.into_bytes());
        if counted.is_none() {
            response
                .headers_mut()
                .insert("x-toolpipe-estimate", HeaderValue::from_static("true"));
        }
        Ok(response)
    }
}
