//! What kind of server answers, and of which family its model is by its chat template.

use super::Upstream;
use super::by_model::ByModel;
use ::upstream::{RequestOptions, Server, ServerKind, server_questions};
use std::time::Duration;
use tag::Dialect;

/// The longest time for all questions together. The first request with tools waits for them, so that its answer is read well.
const LONGEST: Duration = Duration::from_millis(500);

/// The most bytes of an answer; a template has some kilobytes.
const ANSWER: usize = 4 << 20;

/// What is known of the server of a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownServer {
    /// What it is.
    pub kind: ServerKind,
    /// The dialect of the model's family, by the chat template.
    pub family: Option<&'static Dialect>,
}

/// What is known of servers, by the model.
pub type Servers = ByModel<KnownServer>;

impl Upstream {
    /// The server of `model`. A server on this machine or on its network is asked once, and again when that was long ago or a connection was lost;
    /// a provider's own is not asked.
    pub(super) async fn server(&self, model: &str) -> KnownServer {
        if let Some(known) = self.servers.get(model) {
            return known;
        }
        let server = tokio::time::timeout(LONGEST, self.ask_server(model)).await.unwrap_or_default();
        let template = server.template.unwrap_or_default();
        let known = KnownServer { kind: server.kind, family: self.provider.dialects.of_template(&template) };
        self.servers.keep(model, known);
        known
    }

    async fn ask_server(&self, model: &str) -> Server {
        // A turn with a tape asks no server, because a replay must do the same without one.
        let Some(network) = self.network.as_ref().filter(|_| self.recorder.is_none()) else { return Server::default() };
        let provider = &self.provider;
        let is_near = provider.route.is_local || provider.route.url.starts_with("http:");
        let options = RequestOptions { model: model.to_owned(), ..provider.request_options() };
        for question in server_questions(provider.api, &options, is_near) {
            if provider.check(&question.request).is_err() {
                break;
            }
            let Ok(body) = network.ask(&question.request, ANSWER).await else { break };
            if let Some(server) = question.server(body.as_deref()) {
                return server;
            }
        }
        Server::default()
    }
}
