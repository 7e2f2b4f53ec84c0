//! Finds where two texts differ, character by character, apart from ignored parts.

use crate::group::cut;
use event::{quoted, safe_json};
use std::ops::Range;

/// Returns the byte ranges of a text that are ignored, in order and without overlap.
pub type Ignored<'s> = &'s dyn Fn(&str) -> Vec<Range<usize>>;

/// The settings of a comparison.
#[derive(Clone, Copy, Default)]
pub struct DiffSettings<'s> {
    /// Whether to compare reasoning. Models word it differently from run to run, and no program
    /// acts on it.
    pub reasoning: bool,
    /// Whether to compare system and user messages.
    pub prompts: bool,
    /// Whether to compare token counts.
    pub usage: bool,
    /// Whether any run of white space counts as one space, and as nothing at the ends of a text.
    pub ignore_space: bool,
    /// The parts of texts, and of strings and numbers in arguments, that are ignored; `None` if
    /// nothing is.
    pub ignored: Option<Ignored<'s>>,
}

impl std::fmt::Debug for DiffSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// The number of characters shown on each side of a difference.
const AROUND: usize = 24;
/// The number of characters shown of a value.
const SHOWN: usize = 80;

/// The unit of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Char(char),
    /// White space of any length.
    Space,
    /// A part that the user ignores.
    Ignored,
}

/// Iterates over the units of a text with their byte offsets.
struct Units<'t> {
    text: &'t str,
    at: usize,
    ignored: std::vec::IntoIter<Range<usize>>,
    next_ignored: Option<Range<usize>>,
    ignore_space: bool,
}

impl<'t> Units<'t> {
    fn of(text: &'t str, settings: &DiffSettings<'_>) -> Self {
        let mut ignored = settings
            .ignored
            .map(|ignored| ignored(text))
            .unwrap_or_default()
            .into_iter();
        let next_ignored = ignored.next();
        let at = if settings.ignore_space {
            text.len() - text.trim_start().len()
        } else {
            0
        };
        Units {
            text,
            at,
            ignored,
            next_ignored,
            ignore_space: settings.ignore_space,
        }
    }

    /// Returns the next unit and its byte offset; at the end, the length of the text and `None`.
    fn next(&mut self) -> (usize, Option<Unit>) {
        let at = self.at;
        while let Some(range) = self.next_ignored.clone().filter(|range| range.start <= at) {
            self.next_ignored = self.ignored.next();
            if range.end > at {
                self.at = range.end;
                return (at, Some(Unit::Ignored));
            }
        }
        let rest = &self.text[at..];
        let Some(first) = rest.chars().next() else {
            return (at, None);
        };
        if self.ignore_space && first.is_whitespace() {
            let after = rest.trim_start();
            // A run of white space ends where an ignored part starts, which may be inside the run.
            let end = self
                .next_ignored
                .as_ref()
                .map_or(self.text.len(), |range| range.start);
            self.at = (self.text.len() - after.len()).min(end);
            return (at, (!after.is_empty()).then_some(Unit::Space));
        }
        self.at += first.len_utf8();
        (at, Some(Unit::Char(first)))
    }
}

/// Returns the byte offsets, in `a` and `b`, of the first difference; `None` if the texts are
/// equal.
pub(super) fn first_difference(
    a: &str,
    b: &str,
    settings: &DiffSettings<'_>,
) -> Option<(usize, usize)> {
    if a == b {
        return None;
    }
    let mut left = Units::of(a, settings);
    let mut right = Units::of(b, settings);
    loop {
        let ((at, x), (bt, y)) = (left.next(), right.next());
        if x != y {
            return Some((at, bt));
        }
        x?;
    }
}

/// Returns the part of `text` around the byte `at`, quoted, with hidden characters escaped.
pub(super) fn around(text: &str, at: usize) -> String {
    let from = text[..at]
        .char_indices()
        .rev()
        .nth(AROUND - 1)
        .map_or(0, |(from, _)| from);
    let to = text[at..]
        .char_indices()
        .nth(AROUND)
        .map_or(text.len(), |(to, _)| at + to);
    let [before, after] = [from > 0, to < text.len()].map(|is_cut| if is_cut { "…" } else { "" });
    shown(&format!("{before}{}{after}", &text[from..to]))
}

/// Returns the start of `text`, quoted, with hidden characters escaped.
pub(super) fn beginning(text: &str) -> String {
    shown(&cut(text, SHOWN))
}

/// Whether a text is short enough to be shown whole.
pub(super) fn is_short(text: &str) -> bool {
    text.chars().nth(SHOWN).is_none()
}

/// Returns a name unchanged if it is a single plain word, otherwise like [`beginning`].
pub(super) fn name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if !name.is_empty() && is_short(name) && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        beginning(name)
    }
}

/// Returns the start of JSON on one line, with hidden characters escaped.
pub(super) fn json(json: &str) -> String {
    safe_json(&cut(json, SHOWN)).into_owned()
}

fn shown(text: &str) -> String {
    safe_json(&quoted(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaces() -> DiffSettings<'static> {
        DiffSettings {
            ignore_space: true,
            ..DiffSettings::default()
        }
    }

    /// Digits are ignored.
    fn digits(text: &str) -> Vec<Range<usize>> {
        let is_digit = |at: &usize| text.as_bytes()[*at].is_ascii_digit();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for at in (0..text.len()).filter(is_digit) {
            match ranges.last_mut() {
                Some(range) if range.end == at => range.end += 1,
                _ => ranges.push(at..at + 1),
            }
        }
        ranges
    }

    #[test]
    fn the_first_place_is_found_whatever_is_ignored() {
        let exact = DiffSettings::default();
        let masked = DiffSettings {
            ignored: Some(&digits),
            ..DiffSettings::default()
        };
        let both = DiffSettings {
            ignored: Some(&digits),
            ignore_space: true,
            ..DiffSettings::default()
        };
        for (a, b, settings, place) in [
            ("", "", &exact, None),
            ("ab", "ab", &exact, None),
            ("ab", "abc", &exact, Some((2, 2))),
            ("äb", "äc", &exact, Some((2, 2))),
            ("a b", "a  b", &exact, Some((2, 2))),
            ("a b", " a \n b ", &spaces(), None),
            ("a b", "ab", &spaces(), Some((1, 1))),
            ("", " \t", &spaces(), None),
            ("ab", "a b", &spaces(), Some((1, 1))),
            ("at 12 h", "at 7 h", &masked, None),
            ("at 12 h", "at h", &masked, Some((3, 3))),
            ("at 12 h", "at 7 m", &masked, Some((6, 5))),
            ("12", "", &masked, Some((0, 0))),
            (" 12 ", "7", &both, None),
            ("a  12", "a 7", &both, None),
        ] {
            assert_eq!(first_difference(a, b, settings), place, "{a:?} {b:?}");
            let other = place.map(|(a, b)| (b, a));
            assert_eq!(first_difference(b, a, settings), other, "{b:?} {a:?}");
        }
    }

    #[test]
    fn hidden_characters_are_escaped_and_long_texts_are_cut() {
        let text = format!("{}\u{1b}[31m\u{202e}é\n{}", "x".repeat(50), "y".repeat(50));
        let shown = around(&text, 50);
        assert!(
            shown.starts_with("\"…xxx") && shown.ends_with("y…\""),
            "{shown}"
        );
        assert!(shown.contains("x\\u001b[31m\\u202eé\\ny"), "{shown}");
        assert_eq!(around("ab", 2), "\"ab\"");
        assert_eq!(
            beginning(&"é".repeat(81)),
            format!("\"{}…\"", "é".repeat(80))
        );
        assert_eq!(json("{\"a\":\"\u{202e}\"}"), "{\"a\":\"\\u202e\"}");
    }
}
