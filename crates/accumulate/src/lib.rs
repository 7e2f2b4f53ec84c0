//! Deltas merged into tool calls, and the assistant message that commits them.
//!
//! What it is: [`Accumulate`], the machine of `tc-accumulate`; the routing rule (which call does a delta belong to, `route.rs`),
//! one call and its arguments as they grow (`call.rs`), the judgement on arguments that have ended (`judge.rs`), ids, the message
//! (`message.rs`) and whole responses in a provider's shape (`shape.rs`). What it is not: it knows no provider; how a provider
//! deviates was either mended in `upstream` or is a case of the routing rule.
//!
//! A call goes through `open → balanced → sealed → final`; it is emitted at the level that [`Options::emit_on`] names, and never
//! when its text was cut.

mod before;
mod call;
mod failure;
mod id;
mod judge;
mod machine;
mod message;
mod payload;
mod route;
mod shape;

pub use machine::{Accumulate, EmitOn, Options};
pub use shape::Shape;
