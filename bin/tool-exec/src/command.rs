//! A call as a command: one process for each call, under a supervisor of its own.

mod answer;
mod capture;
pub mod confine;
pub mod folder;
mod identity;
mod process;
pub mod program;
mod removal;
mod runner;
pub mod scratch;
pub mod supervisor;

pub use folder::folder_of;
pub use runner::{CommandRunner, raise_limits};
