//! Markup that leaked into text that people read: markers of dialects, tags of reasoning, frames of
//! results, control tokens, and calls as JSON.
//!
//! What it is: a search of whole texts ([`Lint`]), and the texts of recorded lines, each joined
//! from its deltas ([`Recorded`]). Markup in code, in a block quote or right after a quotation mark
//! is quoted and has not leaked.

mod marks;
mod recorded;
mod search;

pub use recorded::Recorded;
pub use search::{Finding, Lint};
