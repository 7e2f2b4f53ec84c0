//! Tool calls that models write as text.
//!
//! What it is: one table of dialects, the engines that read a call as it streams, the router that
//! tells reasoning, answer and calls apart, and how each dialect is prompted. What it is not: it
//! opens nothing, and it repairs no JSON.

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
