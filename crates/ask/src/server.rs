//! What the server of a model is, and the family of the model by the chat template of the server:
//! calls that a server leaves in the text of an answer are read by the dialect of that family.

use super::provider::ReadyProvider;
use api::{Request, RequestOptions, ServerReport, server_questions};
use client::Network;
use std::time::Duration;
use tag::Dialect;

/// The longest time for all questions together. A request with tools waits for them, so that its
/// answer is read well.
const LONGEST: Duration = Duration::from_millis(500);

/// The most bytes of an answer with a template, which has some kilobytes.
const TEMPLATE: usize = 4 << 20;

impl ReadyProvider {
    /// Whether the server may be one that people run themselves: on this machine, or on its
    /// network.
    pub(crate) fn is_near(&self) -> bool {
        self.route.is_local || self.route.url.starts_with("http:")
    }

    /// Asks the server of `model` what it is, if people may run it themselves; `note` gets each
    /// request before it is sent. A server that does not answer in time is an unknown one.
    pub async fn ask_server(
        &self,
        network: &Network,
        model: &str,
        note: impl FnMut(&Request),
    ) -> ServerReport {
        let asked = tokio::time::timeout(LONGEST, self.server(network, model, note));
        asked.await.unwrap_or_default()
    }

    /// The dialect of the model's family, if the markers of its calls are in the chat template that
    /// the server reports.
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
