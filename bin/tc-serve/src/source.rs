//! The source of a response's events: a provider, or a command.

use crate::client_request::ClientRequest;
use crate::command::AnsweringCommand;
use crate::models::Providers;
use crate::pipe::Pipe;
use crate::turns::Turns;
use crate::upstream::Upstream;
use api::FailedAnswer;
use api::{Api, InboundError, InboundRequest, ListedModel};
use tag::Dialects;

/// The source of a response's events.
#[derive(Debug)]
pub(crate) enum Source {
    /// Providers, to which this process sends requests.
    Providers(Box<Providers>),
    /// A command, started once per request.
    Command(AnsweringCommand),
}

impl Source {
    /// Pushes the events of one response into `pipe`, and waits for [`Pipe::room`] between pieces.
    /// A failure becomes an `error` event; see [`Pipe::fail`]. The future is dropped when the
    /// client leaves, and must then close everything that it opened.
    pub(crate) async fn run(&self, asked: ClientRequest, pipe: &Pipe) {
        match self {
            Source::Providers(providers) => providers.run(asked, pipe).await,
            Source::Command(command) => command.run(asked, pipe).await,
        }
    }

    /// Checks that the provider or the command would receive the whole conversation in `request`,
    /// which comes from a client that speaks `api`.
    ///
    /// # Errors
    /// The part of the conversation that the provider or the command would not receive.
    pub(crate) fn check(&self, api: Api, request: &InboundRequest) -> Result<(), InboundError> {
        match self {
            Source::Providers(providers) => providers.check(api, request),
            Source::Command(_) => request.check(api, None),
        }
    }

    /// Returns the models that a client may request.
    ///
    /// # Errors
    /// Why a provider does not return its list.
    pub(crate) async fn models(&self) -> Result<Vec<ListedModel>, FailedAnswer> {
        match self {
            Source::Providers(providers) => providers.models().await,
            Source::Command(command) => Ok(vec![command.model().into()]),
        }
    }

    /// Whether the source is a command. Only for a provider does this process search the model's
    /// text for calls, and pass the provider's ids to clients of the provider's API. A command
    /// searches its text itself, and may query a model many times for one response.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Source::Command(_))
    }

    /// Returns the provider of the model that a request names; `None` if the source is a command or
    /// the model is unknown.
    pub(crate) fn upstream(&self, model: Option<&str>) -> Option<&Upstream> {
        match self {
            Source::Providers(providers) => providers.of_model(model),
            Source::Command(_) => None,
        }
    }

    /// Returns all providers.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        let providers = match self {
            Source::Providers(providers) => Some(providers),
            Source::Command(_) => None,
        };
        providers.into_iter().flat_map(|providers| providers.all())
    }

    /// Returns the server's own name for a configured model.
    pub(crate) fn asked(&self, model: &str) -> Option<&str> {
        match self {
            Source::Providers(providers) => providers.asked(model),
            Source::Command(_) => None,
        }
    }

    /// Returns the model name that a response reports.
    pub(crate) fn shown<'n>(&'n self, model: Option<&'n str>) -> &'n str {
        match self {
            Source::Providers(providers) => providers.shown(model),
            Source::Command(_) => model.unwrap_or_default(),
        }
    }

    /// Returns the dialects that a response may use.
    pub(crate) fn dialects(&self) -> Dialects {
        match self {
            Source::Providers(providers) => providers.dialects(),
            Source::Command(_) => Dialects::default(),
        }
    }

    /// Returns the value that joins the turns of a command into one response for `request`; `None`
    /// for a provider, which has one turn.
    pub(crate) fn turns(&self, request: &InboundRequest) -> Option<Turns> {
        self.turns_of(request.tools.iter().flat_map(|tools| tools.names()))
    }

    /// Does the same as [`Source::turns`], for a request with tools of these names.
    pub(crate) fn turns_of<'n>(&self, tools: impl Iterator<Item = &'n str>) -> Option<Turns> {
        self.is_command().then(|| Turns::new(tools))
    }

    /// Waits until all processes started for finished requests have exited.
    pub(crate) async fn ended(&self) {
        if let Source::Command(command) = self {
            command.ended().await;
        }
    }
}
