//! Compares a card with one that was saved.

use super::card::{CardLine, GroupKey};
use super::card_forms as forms;
use std::collections::{BTreeMap, BTreeSet};

/// The codes of each group.
type Codes<'c> = BTreeMap<GroupKey, BTreeSet<&'c str>>;

/// The differences in words, in the order of the groups: deviations that are new, and those that
/// are gone. Counts and examples do not matter, since more recordings change both.
pub fn card_changes(expected: &[CardLine], now: &[CardLine]) -> Vec<String> {
    let (old, new) = (codes(expected), codes(now));
    let mut out = Vec::new();
    for (key, codes) in &old {
        let Some(found) = new.get(key) else {
            out.push(format!(
                "{}: no recording of it; record one, or remove its lines",
                forms::group(key)
            ));
            continue;
        };
        out.extend(
            codes
                .difference(found)
                .map(|code| format!("{}: {code} is gone", forms::group(key))),
        );
    }
    for (key, found) in &new {
        let known = old.get(key);
        for line in now.iter().filter(|line| line.key() == *key) {
            let Some(code) = line
                .deviation
                .as_deref()
                .filter(|code| found.contains(code))
            else {
                continue;
            };
            if known.is_some_and(|known| known.contains(code)) {
                continue;
            }
            let example = line.example.as_ref().map(forms::place).unwrap_or_default();
            out.push(format!(
                "{}: {code} is new ({}), {example}",
                forms::group(key),
                line.words()
            ));
        }
    }
    out
}

fn codes(lines: &[CardLine]) -> Codes<'_> {
    let mut out = Codes::new();
    for line in lines {
        let codes = out.entry(line.key()).or_default();
        codes.extend(line.deviation.as_deref());
    }
    out
}
