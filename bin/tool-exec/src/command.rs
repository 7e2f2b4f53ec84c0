//! A call as a command: one process for each call, under a supervisor of its own.

mod answer;
mod capture;
pub mod program;
mod runner;
pub mod scratch;
pub mod supervise;

pub use runner::{Handle, Report, Runner, raise_limits};
