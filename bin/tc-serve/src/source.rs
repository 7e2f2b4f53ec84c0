//! Where the events of an answer come from: a provider, or a command.

use crate::client_request::ClientRequest;
use crate::command::AnsweringCommand;
use crate::models::Providers;
use crate::pipe::Pipe;
use crate::turns::Turns;
use crate::upstream::Upstream;
use api::FailedAnswer;
use api::{Api, InboundError, InboundRequest, ListedModel};
use tag::Dialects;

/// Where the events of an answer come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Providers, which this process asks.
    Providers(Box<Providers>),
    /// A command, which is started for each request.
    Command(AnsweringCommand),
}

impl Source {
    /// Pushes the events of one answer into `pipe`, and waits for [`Pipe::room`] between pieces. A
    /// failure becomes an `error` event, see [`Pipe::fail`]. The future is dropped when the client
    /// has left, and must then close everything that it has opened.
    pub(crate) async fn run(&self, asked: ClientRequest, pipe: &Pipe) {
        match self {
            Source::Providers(providers) => providers.run(asked, pipe).await,
            Source::Command(command) => command.run(asked, pipe).await,
        }
    }

    /// Checks that the provider or the command would get the whole conversation in `request`, which
    /// comes from a client that speaks `api`.
    ///
    /// # Errors
    /// The part of the conversation that the provider or the command would not get.
    pub(crate) fn check(&self, api: Api, request: &InboundRequest) -> Result<(), InboundError> {
        match self {
            Source::Providers(providers) => providers.check(api, request),
            Source::Command(_) => request.check(api, None),
        }
    }

    /// The models that a client may ask for.
    ///
    /// # Errors
    /// Why a provider does not give its list.
    pub(crate) async fn models(&self) -> Result<Vec<ListedModel>, FailedAnswer> {
        match self {
            Source::Providers(providers) => providers.models().await,
            Source::Command(command) => Ok(vec![command.model().into()]),
        }
    }

    /// Whether a command answers. Only for a provider does this process search the model's text for
    /// calls, and pass the provider's ids on to clients that speak the provider's API: a command
    /// searches text itself, and may ask a model many times for one answer.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Source::Command(_))
    }

    /// The provider of the model that a request names, if a provider answers.
    pub(crate) fn upstream(&self, model: Option<&str>) -> Option<&Upstream> {
        match self {
            Source::Providers(providers) => providers.of_model(model),
            Source::Command(_) => None,
        }
    }

    /// All providers.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        let providers = match self {
            Source::Providers(providers) => Some(providers),
            Source::Command(_) => None,
        };
        providers.into_iter().flat_map(|providers| providers.all())
    }

    /// What the server of a model of the configuration calls it.
    pub(crate) fn asked(&self, model: &str) -> Option<&str> {
        match self {
            Source::Providers(providers) => providers.asked(model),
            Source::Command(_) => None,
        }
    }

    /// What an answer says its model is.
    pub(crate) fn shown<'n>(&'n self, model: Option<&'n str>) -> &'n str {
        match self {
            Source::Providers(providers) => providers.shown(model),
            Source::Command(_) => model.unwrap_or_default(),
        }
    }

    /// The dialects that an answer may be in.
    pub(crate) fn dialects(&self) -> Dialects {
        match self {
            Source::Providers(providers) => providers.dialects(),
            Source::Command(_) => Dialects::default(),
        }
    }

    /// The maker of one answer from the turns of a command; `None` for a provider, which has one
    /// turn.
    pub(crate) fn turns(&self, request: &InboundRequest) -> Option<Turns> {
        self.turns_of(request.tools.iter().flat_map(|tools| tools.names()))
    }

    /// The same for a request with tools of these names.
    pub(crate) fn turns_of<'n>(&self, tools: impl Iterator<Item = &'n str>) -> Option<Turns> {
        self.is_command().then(|| Turns::new(tools))
    }

    /// Waits until all processes that were started for requests that have ended are gone.
    pub(crate) async fn ended(&self) {
        if let Source::Command(command) = self {
            command.ended().await;
        }
    }
}
