//! Where the events of an answer come from: a provider, or a command.

use crate::asked::Asked;
use crate::command::Command;
use crate::pipe::Pipe;
use crate::turns::Turns;
use crate::upstream::Upstream;
use api::{Api, Failure, InboundError, InboundRequest};

/// Where the events of an answer come from.
#[derive(Debug)]
pub enum Source {
    /// A provider, which this process asks.
    Upstream(Box<Upstream>),
    /// A command, which is started for each request.
    Command(Command),
}

impl Source {
    /// Pushes the events of one answer into `pipe`, and waits for [`Pipe::room`] between pieces.
    /// Trouble is an `error` event, see [`Pipe::fail`]. The future is dropped when the client has
    /// left, and must close what it has opened.
    pub async fn run(&self, asked: Asked, pipe: &Pipe) {
        match self {
            Source::Upstream(upstream) => upstream.run(asked, pipe).await,
            Source::Command(command) => command.run(asked, pipe).await,
        }
    }

    /// Checks that whoever answers gets all of the conversation of `request`, of a client that
    /// speaks `api`.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self, api: Api, request: &InboundRequest) -> Result<(), InboundError> {
        match self {
            Source::Upstream(upstream) => request.check(api, Some(upstream.address())),
            Source::Command(_) => request.check(api, None),
        }
    }

    /// Whether a file has the key of the provider.
    pub fn has_key_file(&self) -> bool {
        matches!(self, Source::Upstream(upstream) if upstream.has_key_file())
    }

    /// Reads the file with the key of the provider again, if there is one.
    ///
    /// # Errors
    /// One line for a file without a usable key.
    pub fn read_key_again(&self) -> anyhow::Result<()> {
        match self {
            Source::Upstream(upstream) => upstream.read_key_again(),
            Source::Command(_) => Ok(()),
        }
    }

    /// Whether the ids of a provider of the client's own API stay. A command may ask many times for
    /// one answer, which then has no id of a provider's.
    pub fn keeps_ids(&self) -> bool {
        matches!(self, Source::Upstream(_))
    }

    /// The models that a client may ask for.
    ///
    /// # Errors
    /// Why a provider does not give its list.
    pub async fn models(&self) -> Result<Vec<api::ListedModel>, Failure> {
        match self {
            Source::Upstream(upstream) => upstream.models().await,
            Source::Command(command) => Ok(vec![command.model().into()]),
        }
    }

    /// The provider, if one answers.
    pub fn upstream(&self) -> Option<&Upstream> {
        match self {
            Source::Upstream(upstream) => Some(upstream),
            Source::Command(_) => None,
        }
    }

    /// Whether a client's messages go to a provider of `api` as they came.
    pub fn is_of(&self, api: api::Api) -> bool {
        matches!(self, Source::Upstream(upstream) if upstream.api() == api)
    }

    /// The dialects that text may be in.
    pub fn dialects(&self) -> tag::Dialects {
        match self {
            Source::Upstream(upstream) => upstream.dialects(),
            Source::Command(_) => tag::Dialects::default(),
        }
    }

    /// Whether text of the model's is searched for calls here. A command does that itself.
    pub fn reads_text(&self) -> bool {
        matches!(self, Source::Upstream(_))
    }

    /// What makes one answer of the turns of a command; a provider has one turn.
    pub fn turns(&self, request: &InboundRequest) -> Option<Turns> {
        let names = || request.tools.iter().flat_map(|tools| tools.names());
        matches!(self, Source::Command(_)).then(|| Turns::new(names()))
    }

    /// Waits until nothing is left of what was started for requests that have ended.
    pub async fn ended(&self) {
        if let Source::Command(command) = self {
            command.ended().await;
        }
    }
}
