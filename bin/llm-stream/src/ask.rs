//! Requests to a provider or a tape: a probe of the tools mode, a dry run, or the next turn.

mod dry_run;
mod opening;
mod probe;
mod session;
mod settings;
mod trouble;
mod turn;

pub use dry_run::dry_run;
pub use probe::probe;
pub use settings::{AskSettings, ConnectionSettings};
pub use turn::turn;
