//! Tools of servers that speak the Model Context Protocol: the servers' processes and connections,
//! their sessions, and the calls.

mod answer;
mod backend;
mod http;
mod hub;
mod lines;
mod listener;
mod lock_file;
mod pool;
mod program;
mod runner;
mod session;
mod setup;
mod stdio;

pub use backend::Backend;
pub use lock_file::LockFile;
pub use program::Confines;
pub use runner::McpRunner;
pub use setup::{Setup, Unlocked};
