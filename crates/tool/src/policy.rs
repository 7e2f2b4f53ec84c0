//! A policy: the rules of a file about what may run, by tool and by argument, and the limits of a
//! conversation.

mod condition;
pub(crate) mod counts;
mod document;
mod error;
mod path;
mod read;
mod rule;

pub use document::{Budget, Policy};
pub use error::PolicyError;
pub use rule::{Effect, Rate, Rule};
