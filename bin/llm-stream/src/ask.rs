//! What is asked of a provider or a tape: how a model learns of its tools, what would be sent, or the next turn.

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
