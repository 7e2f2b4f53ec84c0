//! `/health`: whether the service runs, and with `?upstream` whether its provider answers.

use super::response::{ResponseBody, whole};
use super::service::Service;
use event::Object;
use hyper::{Response, StatusCode};

impl Service {
    /// Asks the provider. The word of a failure is `status`: `upstream_unreachable`,
    /// `upstream_timeout`, `upstream_key_refused` or `upstream_failed`.
    pub(super) async fn health(&self) -> Response<ResponseBody> {
        let checked = match self.source.upstream() {
            Some(upstream) => upstream.direct().check().await,
            // A COMMAND is started for each request, and recorded answers are at hand.
            None => Ok(()),
        };
        let mut body = Vec::new();
        let mut object = Object::open(&mut body);
        let status = match &checked {
            Ok(()) => {
                object.str("status", "ok");
                StatusCode::OK
            }
            Err(failure) => {
                object
                    .str("status", &failure.code)
                    .str("message", &failure.message);
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        object.close();
        whole(status, "application/json", body)
    }
}

/// Whether the query asks for the provider, too: `upstream`, with or without a value.
pub fn asks_upstream(query: Option<&str>) -> bool {
    query.is_some_and(|query| {
        query
            .split('&')
            .any(|pair| pair.split('=').next() == Some("upstream"))
    })
}
