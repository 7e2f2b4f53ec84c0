//! What kind of server answers, and of which family its model is by its chat template.

use super::by_model::ByModel;
use super::direct::Direct;
use api::{RequestOptions, Server, ServerKind, server_questions};
use std::time::Duration;
use tag::Dialect;

/// The longest time for all questions together. The first request with tools waits for them, so
/// that its answer is read well.
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
#[derive(Debug, Default)]
pub struct Servers(ByModel<KnownServer>);

impl Servers {
    /// The server of `model`. A server on this machine or on its network is asked once, and again
    /// when that was long ago or everything was forgotten; a provider's own is not asked.
    pub async fn of(&self, direct: &Direct, model: &str) -> KnownServer {
        if let Some(known) = self.0.get(model) {
            return known;
        }
        let server = tokio::time::timeout(LONGEST, ask(direct, model))
            .await
            .unwrap_or_default();
        let template = server.template.unwrap_or_default();
        let known = KnownServer {
            kind: server.kind,
            family: direct.provider.dialects.of_template(&template),
        };
        self.0.keep(model, known);
        known
    }

    /// Forgets all servers: another one, or another model, may be there when a lost connection
    /// comes back.
    pub fn forget(&self) {
        self.0.forget();
    }
}

async fn ask(direct: &Direct, model: &str) -> Server {
    let Direct {
        network: Some(network),
        is_taped: false,
        ..
    } = direct
    else {
        return Server::default();
    };
    let provider = direct.current();
    let is_near = provider.route.is_local || provider.route.url.starts_with("http:");
    let options = RequestOptions {
        model: model.to_owned(),
        ..provider.request_options()
    };
    for question in server_questions(provider.api, &options, is_near) {
        if provider.check(&question.request).is_err() {
            break;
        }
        let Ok(body) = network.ask(&question.request, ANSWER).await else {
            break;
        };
        if let Some(server) = question.server(body.as_deref()) {
            return server;
        }
    }
    Server::default()
}
