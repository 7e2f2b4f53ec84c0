//! Where the events of an answer come from: a provider, or a command.

use crate::command::AnsweringCommand;
use crate::pipe::{ClientRequest, Pipe};
use crate::turns::Turns;
use crate::upstream::Upstream;
use api::FailedAnswer;
use api::{Api, InboundError, InboundRequest, ListedModel};

/// Where the events of an answer come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A provider, which this process asks.
    Upstream(Box<Upstream>),
    /// A command, which is started for each request.
    Command(AnsweringCommand),
}

impl Source {
    /// Pushes the events of one answer into `pipe`, and waits for [`Pipe::room`] between pieces. A
    /// failure becomes an `error` event, see [`Pipe::fail`]. The future is dropped when the client
    /// has left, and must then close everything that it has opened.
    pub(crate) async fn run(&self, asked: ClientRequest, pipe: &Pipe) {
        match self {
            Source::Upstream(upstream) => upstream.run(asked, pipe).await,
            Source::Command(command) => command.run(asked, pipe).await,
        }
    }

    /// Checks that the provider or the command would get the whole conversation in `request`, which
    /// comes from a client that speaks `api`.
    ///
    /// # Errors
    /// The part of the conversation that the provider or the command would not get.
    pub(crate) fn check(&self, api: Api, request: &InboundRequest) -> Result<(), InboundError> {
        request.check(api, self.upstream().map(Upstream::address))
    }

    /// The models that a client may ask for.
    ///
    /// # Errors
    /// Why a provider does not give its list.
    pub(crate) async fn models(&self) -> Result<Vec<ListedModel>, FailedAnswer> {
        match self {
            Source::Upstream(upstream) => upstream.models().await,
            Source::Command(command) => Ok(vec![command.model().into()]),
        }
    }

    /// The provider, if the source is one. Only for a provider does this process search the model's
    /// text for calls, and pass the provider's ids on to clients that speak the provider's API: a
    /// command searches text itself, and may ask a model many times for one answer.
    pub(crate) fn upstream(&self) -> Option<&Upstream> {
        match self {
            Source::Upstream(upstream) => Some(upstream),
            Source::Command(_) => None,
        }
    }

    /// The maker of one answer from the turns of a command; `None` for a provider, which has one
    /// turn.
    pub(crate) fn turns(&self, request: &InboundRequest) -> Option<Turns> {
        self.turns_of(request.tools.iter().flat_map(|tools| tools.names()))
    }

    /// The same for a request with tools of these names.
    pub(crate) fn turns_of<'n>(&self, tools: impl Iterator<Item = &'n str>) -> Option<Turns> {
        matches!(self, Source::Command(_)).then(|| Turns::new(tools))
    }

    /// Waits until all processes that were started for requests that have ended are gone.
    pub(crate) async fn ended(&self) {
        if let Source::Command(command) = self {
            command.ended().await;
        }
    }
}
