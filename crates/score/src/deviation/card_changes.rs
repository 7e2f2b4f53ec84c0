//! Compares a card with one that was saved.

use super::card::{CardLine, GroupKey};
use super::card_forms as forms;
use std::collections::{BTreeMap, BTreeSet};

/// The codes of each group.
type Codes<'c> = BTreeMap<&'c GroupKey, BTreeSet<&'c str>>;

/// The differences in words, in the order of the groups: deviations that are new, and those that
/// are gone. Counts and examples do not matter, since more recordings change both.
pub fn card_changes(expected: &[CardLine], now: &[CardLine]) -> Vec<String> {
    let old = codes(expected);
    let new = codes(now);
    let mut out = Vec::new();
    for (key, codes) in &old {
        let group = forms::group(key);
        match new.get(key) {
            None => out.push(format!(
                "{group}: no recording of it; record one, or remove its lines"
            )),
            Some(found) => {
                let gone = codes.difference(found);
                out.extend(gone.map(|code| format!("{group}: {code} is gone")));
            }
        }
    }
    let mut lines: Vec<&CardLine> = now.iter().collect();
    lines.sort_by_key(|line| &line.key);
    for line in lines {
        let Some(code) = line.deviation.as_deref() else {
            continue;
        };
        if old.get(&line.key).is_none_or(|known| !known.contains(code)) {
            let example = line.example.as_ref().map(forms::place).unwrap_or_default();
            let group = forms::group(&line.key);
            let words = line.words();
            out.push(format!("{group}: {code} is new ({words}), {example}"));
        }
    }
    out
}

fn codes(lines: &[CardLine]) -> Codes<'_> {
    let mut out = Codes::new();
    for line in lines {
        let codes = out.entry(&line.key).or_default();
        codes.extend(line.deviation.as_deref());
    }
    out
}
