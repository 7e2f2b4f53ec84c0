//! A call as a command: one process for each call, under a supervisor of its own.

mod answer;
mod capture;
pub mod confine;
mod identity;
mod process;
pub mod program;
mod removal;
mod runner;
pub mod scratch;
pub mod supervisor;

pub use runner::{CommandRunner, folder_of, raise_limits};
