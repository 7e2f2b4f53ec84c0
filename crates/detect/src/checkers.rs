//! The table of checkers. To add one: a file with the checker and its row, its `mod` line and its line in the table.

mod first_chunk;
mod full;
mod lookahead;
mod tag;

use crate::checker::{CallFilter, CheckerRow, Checkers};

/// The checkers that need nothing but events.
pub const CHECKERS: &[CheckerRow] = &[full::ROW, first_chunk::ROW, lookahead::ROW, tag::ROW];

/// The checkers of that name; `calls` decides what counts as a call. `None` for a name that is not in the table, or whose argument
/// cannot be used.
pub fn checkers(name: &str, calls: &CallFilter) -> Option<Checkers> {
    CHECKERS.iter().find_map(|row| match row.name.split_once(':') {
        None => (row.name == name).then(|| (row.checkers)(calls.clone(), ""))?,
        Some((stem, _)) => (row.checkers)(calls.clone(), name.strip_prefix(stem)?.strip_prefix(':')?),
    })
}
