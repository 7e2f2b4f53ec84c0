//! Where two texts differ, by characters and after what is to be ignored.

use crate::group::cut;
use event::{quoted, safe_json};
use std::ops::Range;

/// Finds the parts of a text that are to be ignored: their places in bytes, in order, which do not
/// overlap.
pub type Ignored<'s> = &'s dyn Fn(&str) -> Vec<Range<usize>>;

/// What counts as a difference.
#[derive(Clone, Copy, Default)]
pub struct DiffSettings<'s> {
    /// Compare reasoning. Models word it differently from run to run, and no program acts on it.
    pub reasoning: bool,
    /// Compare the messages of the system and of the user.
    pub prompts: bool,
    /// Compare counts of tokens.
    pub usage: bool,
    /// White space counts as one space, and not at all at the ends of a text.
    pub ignore_space: bool,
    /// The parts of texts, and of the strings and numbers of arguments, that are ignored.
    pub ignored: Option<Ignored<'s>>,
}

impl std::fmt::Debug for DiffSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// How many characters of a text are shown on each side of the place where it differs.
const AROUND: usize = 24;
/// How many characters of a value are shown.
const SHOWN: usize = 80;

/// What is compared, item by item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Char(char),
    /// White space of any length.
    Space,
    /// A part that the user ignores.
    Ignored,
}

/// The units of a text with their places in bytes.
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

    /// The next unit and its place; at the end, the length of the text.
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
            // White space is cut at an ignored part, which may lie in it.
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

/// The first place at which two texts differ, in bytes of each; `None` if they are equal.
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

/// The part of `text` around the byte `at`, in quotes, with everything that is hidden escaped.
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

/// The beginning of `text`, in quotes, with everything that is hidden escaped.
pub(super) fn beginning(text: &str) -> String {
    shown(&cut(text, SHOWN))
}

/// Whether a text is short enough to be shown whole.
pub(super) fn is_short(text: &str) -> bool {
    text.chars().nth(SHOWN).is_none()
}

/// A name: as it is if it is one plain word, else as [`beginning`].
pub(super) fn name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if !name.is_empty() && is_short(name) && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        beginning(name)
    }
}

/// The beginning of JSON on one line, with everything that is hidden escaped.
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
