//! The table of checkers. To add one: a file with the checker and its row, its `mod` line and its line in the table.

mod first_chunk;
mod full;
mod lookahead;

use crate::checker::{Calls, CheckerRow, Factory};

/// The checkers that need nothing but events.
pub const CHECKERS: [CheckerRow; 3] = [full::ROW, first_chunk::ROW, lookahead::ROW];

/// What makes the checker of that name; `calls` says what counts as a call. `None` for a name that is not in the table, or that
/// lacks its number.
pub fn factory(name: &str, calls: &Calls) -> Option<Factory> {
    CHECKERS.iter().find_map(|row| match row.name.split_once(':') {
        None => (row.name == name).then(|| (row.factory)(calls.clone(), ""))?,
        Some((stem, _)) => (row.factory)(calls.clone(), name.strip_prefix(stem)?.strip_prefix(':')?),
    })
}
