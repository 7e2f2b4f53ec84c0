//! Markers that models spell in several ways.

use super::entry::{Entry, Fault, NotationRow};
use super::kept::{all, keep, marker};
use std::cell::Cell;

/// Lists of spellings. The first of each is written, and names the marker in the notation.
#[derive(Debug, Default)]
pub(super) struct MarkerSpellings {
    lists: Vec<(Entry<&'static [&'static str]>, Cell<bool>)>,
}

impl MarkerSpellings {
    pub fn read(row: &NotationRow<'_>) -> Result<MarkerSpellings, Fault> {
        let mut lists = Vec::new();
        for list in row.lists("spellings", marker)? {
            if list.value.len() < 2 {
                return Err(list.fault(
                    "spellings: a list of fewer than two; expected all spellings of one marker",
                ));
            }
            lists.push((
                Entry {
                    at: list.at,
                    value: all(list.value),
                },
                Cell::new(false),
            ));
        }
        Ok(MarkerSpellings { lists })
    }

    /// All spellings of a marker.
    pub fn of(&self, marker: &str) -> &'static [&'static str] {
        match self.lists.iter().find(|(list, _)| list.value[0] == marker) {
            Some((list, used)) => {
                used.set(true);
                list.value
            }
            None => all(vec![keep(marker)]),
        }
    }

    /// That every list is of a marker of the dialect: one that is not holds a mistake.
    pub fn expect_used(&self) -> Result<(), Fault> {
        match self.lists.iter().find(|(_, used)| !used.get()) {
            None => Ok(()),
            Some((list, _)) => Err(list.fault(format!(
                "spellings: no marker is written '{}'; expected the spelling that the notation has as the first one",
                list.value[0]
            ))),
        }
    }
}
