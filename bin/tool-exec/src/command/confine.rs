//! What confines a command: which files, ports and processes it may reach.
//!
//! A [`Confinement`] is made where the tools are known ([`Sandboxes`]), travels with its job, and
//! is put into force in the launch stage of the command ([`enter()`]). A sandbox that cannot be had
//! is an error before anything runs.

mod bwrap;
mod confinement;
mod enter;
mod filter;
pub mod group;
pub mod hierarchy;
mod isolate;
mod place;
pub mod protect;
mod reach;
mod rules;
mod sandboxes;
pub mod stage;

pub use confinement::{Confined, Confinement};
pub use enter::{enter, explain};
pub use rules::version as landlock_version;
pub use sandboxes::Sandboxes;
