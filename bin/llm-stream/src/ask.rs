//! Requests to a provider or a tape: a probe of the tools mode, a dry run, or the next turn.

mod dry_run;
mod opening;
mod probe;
mod settings;
mod turn;

pub use dry_run::dry_run;
pub use probe::probe;
pub use settings::AskSettings;
pub use turn::turn;
