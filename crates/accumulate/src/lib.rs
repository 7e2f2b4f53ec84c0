//! Deltas merged into tool calls, and the assistant message that commits them.
//!
//! [`Accumulate`] is the machine of `tc-accumulate` (`machine.rs`). A stream (`stream.rs`) routes
//! each delta to its call by the rule of the protocol (`route.rs`); a call (`call.rs`) joins its
//! fragments; `judge.rs` checks and repairs arguments that have ended, and [`json::LiveArguments`]
//! finds the bytes of open arguments that no later byte can change; `ending.rs` ends the stream
//! with the message (`message.rs`). No file handles a single provider: what a provider does
//! differently is mended in `api`, or is a case of the routing rule.
//!
//! A call goes through `open → balanced → sealed → final`; it is emitted at the level that
//! [`AccumulateOptions::emit_on`] names, and never when its text was cut.

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
