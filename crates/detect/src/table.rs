//! The table of checkers. To add one: a file with the trait, and a line here.

use crate::checker::{Calls, Checker};
use crate::first_chunk::FirstChunk;
use crate::full::Full;
use crate::lookahead::Lookahead;

/// The names that `--checker` takes, as help shows them.
pub const NAMES: [&str; 5] = ["full", "first-chunk", "lookahead:N", "tag", "cmd:COMMAND"];

/// A name that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownChecker {
    /// The name as it was given.
    pub name: String,
}

impl std::fmt::Display for UnknownChecker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown checker '{}', use one of: {}", self.name, NAMES.join(", "))
    }
}

impl std::error::Error for UnknownChecker {}

/// Makes a checker by its name; `calls` says what counts as a call. `tag` and `cmd:` are not
/// made here, since they need a parser and a process.
///
/// # Errors
/// A name that is not in the table, or a number that is none.
pub fn build(name: &str, calls: &Calls) -> Result<Box<dyn Checker>, UnknownChecker> {
    let calls = calls.clone();
    match name {
        "full" => Ok(Box::new(Full { calls })),
        "first-chunk" => Ok(Box::new(FirstChunk { calls })),
        _ => match name.strip_prefix("lookahead:").and_then(|n| n.parse().ok()) {
            Some(limit) => Ok(Box::new(Lookahead { calls, limit, seen: 0, white: 0 })),
            None => Err(UnknownChecker { name: name.to_owned() }),
        },
    }
}
