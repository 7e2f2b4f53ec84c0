//! Identifies a model's server, and the model's family from the server's chat template. The
//! family's dialect is used to parse calls that the server leaves in the text of a response.

use super::provider::ReadyProvider;
use api::{Request, RequestOptions, ServerReport, server_questions};
use client::Network;
use std::time::Duration;
use tag::Dialect;

/// The time limit for all questions together. A request with tools waits for the answers, which
/// determine how its response is parsed.
const LONGEST: Duration = Duration::from_millis(500);

/// The most bytes of a response with a template; templates are usually a few kilobytes.
const TEMPLATE: usize = 4 << 20;

impl ReadyProvider {
    /// Whether the server may be self-hosted: it is on this machine, or is reached over plain http.
    pub(crate) fn is_near(&self) -> bool {
        self.route.is_local || self.route.url.starts_with("http:")
    }

    /// Asks the server of `model` what it is, if it may be self-hosted. `note` receives each
    /// request before it is sent. A server that does not respond in time is treated as unknown.
    pub async fn ask_server(
        &self,
        network: &Network,
        model: &str,
        note: impl FnMut(&Request),
    ) -> ServerReport {
        let asked = tokio::time::timeout(LONGEST, self.server(network, model, note));
        asked.await.unwrap_or_default()
    }

    /// Returns the dialect of the model's family, if the server's chat template contains the
    /// dialect's call markers.
    pub fn family_of(&self, server: &ServerReport) -> Option<&'static Dialect> {
        let template = server.template.as_deref().unwrap_or_default();
        self.dialects.of_template(template)
    }

    async fn server(
        &self,
        network: &Network,
        model: &str,
        mut note: impl FnMut(&Request),
    ) -> ServerReport {
        let options = RequestOptions {
            model: model.to_owned(),
            ..self.options.clone()
        };
        for question in server_questions(self.api, &options, self.is_near()) {
            if self.check(&question.request).is_err() {
                break;
            }
            note(&question.request);
            let Ok(body) = network.ask(&question.request, TEMPLATE).await else {
                break;
            };
            if let Some(server) = question.server(body.as_deref()) {
                return server;
            }
        }
        ServerReport::default()
    }
}
