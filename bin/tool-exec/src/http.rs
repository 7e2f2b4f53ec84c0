//! Tools that send a request: how one call is sent, and what its answer is.

mod answer;
mod received;
mod runner;
mod sender;

pub use runner::HttpRunner;
