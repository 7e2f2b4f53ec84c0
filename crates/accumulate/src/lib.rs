//! Merges deltas into tool calls, and writes the assistant message that commits them.
//!
//! [`Accumulate`] is the state machine of `tc-accumulate` (`machine.rs`). A stream (`stream.rs`)
//! routes each delta to its call by the rule of the protocol (`route.rs`), and the call (`call.rs`)
//! joins its fragments. `judge.rs` checks and repairs arguments that have ended,
//! [`json::LiveArguments`] finds the bytes of open arguments that no later byte can change, and
//! `ending.rs` ends the stream with the message (`message.rs`). No file handles a single provider:
//! the `api` crate removes the differences between providers, or the routing rule covers them.
//!
//! A call goes through `open → balanced → sealed → final`. It is emitted at the level that
//! [`AccumulateOptions::emit_on`] names; a truncated call is emitted only with an error.

mod before;
mod call;
mod ending;
mod id;
mod judge;
mod machine;
mod message;
mod options;
mod provider;
mod route;
mod stream;

pub use machine::Accumulate;
pub use options::{AccumulateOptions, EmitOn};
