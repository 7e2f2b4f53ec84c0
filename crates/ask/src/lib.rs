//! One turn with a provider, as `llm-stream` and `tc-serve` ask for it: the options that name a
//! provider, the request that is made of them and a conversation, and its attempts.
//!
//! What it is: the options of the command line ([`ProviderArgs`] and its neighbours), the settings
//! that are made of them and of the environment, [`ReadyProvider`], which holds what is the same
//! for every turn, [`TurnDraft`], which becomes requests, and [`AskTurn`], which sends them until
//! an answer begins. What it is not: it reads no standard input, writes no standard output, and
//! prints nothing. Where events go, and what ends a turn from outside, is the [`Host`] of each
//! command.

mod args;
mod auto;
mod form;
mod host;
mod playlist;
mod provider;
mod response;
mod server;
mod session;
mod settings;
mod trouble;
mod turn;
mod words;

pub use args::{
    AutoArgs, ConnectionArgs, Fallback, FaultArgs, ProviderArgs, ReplayArgs, TapeModeArg,
    ToolsModeArgs, ToolsModeChoice,
};
pub use auto::FormDecision;
pub use form::{RequestForm, ToolsForm, dialects, named_dialect};
pub use host::{Host, Note};
pub use playlist::{PlayedAnswer, Playlist};
pub use provider::ReadyProvider;
pub use response::{ResponseEnd, write_events};
pub use session::{AskTurn, SessionEnd};
pub use settings::{ModelArgs, Settings, TapeSettings, open_tape, run};
pub use trouble::{end, sentence};
pub use turn::TurnDraft;
pub use words::{COMMAND, SERVICE};
