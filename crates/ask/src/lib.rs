//! Runs one turn with a provider for `llm-stream` and `tc-serve`: parses the provider's options,
//! builds the request from them and a conversation, and makes the attempts.
//!
//! The crate contains the command-line options ([`ProviderArgs`] and its neighbours), the settings
//! built from them and the environment, [`ReadyProvider`], which holds what all turns share,
//! [`TurnDraft`], which is turned into requests, and [`AskTurn`], which sends them until a response
//! begins. The crate does not read standard input, write standard output or print anything. Each
//! command's [`Host`] decides where events go and what stops a turn from outside.

mod args;
mod auto;
mod form;
mod host;
mod pace;
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
pub use pace::Pace;
pub use playlist::{PlayedAnswer, Playlist};
pub use provider::ReadyProvider;
pub use response::{ResponseEnd, write_events};
pub use session::{AskTurn, SessionEnd};
pub use settings::{ModelReader, Settings, TapeSettings, open_tape, run};
pub use trouble::{end, sentence};
pub use turn::TurnDraft;
pub use words::{COMMAND, SERVICE};
