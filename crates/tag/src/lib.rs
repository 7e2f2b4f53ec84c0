//! Parses tool calls that models write as text.
//!
//! This crate contains one table of dialects, the engines that parse a call while it streams, the
//! router that separates reasoning, answer and calls, and the way each dialect is prompted. The
//! crate performs no I/O and does not repair JSON.

mod calls;
mod dialect;
mod envelope;
mod expression;
mod free;
pub mod lint;
mod look;
mod machine;
mod mark;
mod notation;
mod outlet;
mod params;
mod parser;
mod prompt;
mod quote;
mod response_template;
mod run;
mod table;
mod write;

pub use dialect::Dialect;
pub use look::Look;
pub use machine::{Streams, Tag, TagOptions};
pub use notation::NotationError;
pub use outlet::{CallPiece, Outlet};
pub use parser::Parser;
pub use prompt::{PromptChoice, PromptResult, neutral};
pub use table::{DEFAULT, Dialects, UnknownDialect};
pub use write::PromptCall;
