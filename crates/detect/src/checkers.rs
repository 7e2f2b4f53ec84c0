//! The table of checkers. To add one: a file with the checker and its row, its `mod` line and its
//! line in the table.

mod auto;
mod first_chunk;
mod full;
mod lookahead;
mod tag;

use crate::checker::{CallFilter, CheckerRow, Checkers};
use crate::settings::Settings;

/// The checkers that need nothing but events.
pub const CHECKERS: &[CheckerRow] = &[
    full::ROW,
    first_chunk::ROW,
    lookahead::ROW,
    auto::ROW,
    auto::ROW_WITH_RISK,
    tag::ROW,
];

/// The checkers of that name; `calls` decides what counts as a call. `None` for a name that is not
/// in the table, or whose argument cannot be used.
pub fn checkers(name: &str, calls: &CallFilter) -> Option<Checkers> {
    checkers_with(name, calls, &Settings::default())
}

/// As [`checkers`], with the settings of the user.
pub fn checkers_with(name: &str, calls: &CallFilter, settings: &Settings) -> Option<Checkers> {
    CHECKERS
        .iter()
        .find_map(|row| match row.name.split_once(':') {
            None => (row.name == name).then(|| (row.checkers)(calls.clone(), "", settings))?,
            Some((stem, _)) => (row.checkers)(
                calls.clone(),
                name.strip_prefix(stem)?.strip_prefix(':')?,
                settings,
            ),
        })
}
