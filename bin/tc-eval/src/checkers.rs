//! The checkers that `--checker` names.

use crate::evaluate::judge::Judges;
use anyhow::{Result, bail};
use detect::{CHECKERS, CallFilter};

/// A checker by its name.
pub enum Checker {
    /// One of `detect`, which each thread makes for itself.
    BuiltIn,
    /// One outside of this process.
    Outside(Box<dyn Judges>),
}

/// The checker of that name.
///
/// # Errors
/// When the name is unknown; the message lists all names.
pub fn find(name: &str) -> Result<Checker> {
    if detect::checkers(name, &CallFilter::default()).is_some() {
        return Ok(Checker::BuiltIn);
    }
    let names: Vec<_> = CHECKERS.iter().map(|row| row.name).collect();
    bail!("unknown checker '{name}', use one of: {}", names.join(", "))
}
