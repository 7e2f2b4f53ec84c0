//! Tool calls that models write as text.
//!
//! What it is: one table of dialects, the engines that read a call as it streams, the router that tells reasoning, answer and
//! calls apart, and how each dialect is prompted. What it is not: it opens nothing, and it repairs no JSON.

mod calls;
mod dialect;
mod expression;
mod literal;
mod params;
mod prompt;
mod start_tag;
mod table;
mod tree;
mod write;

pub use dialect::Dialect;
pub use prompt::{Call, Choice, Output, neutral};
