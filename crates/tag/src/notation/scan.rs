//! Splits a notation into its pieces: markers in all their spellings, white space and slots.
//!
//! `⏎`, `␣` and `·` are white space: any white space is accepted there, and a newline, a space or
//! nothing is written. `¦` separates two adjacent markers. `{…}` is a slot, `[{…}]` a list of
//! slots, unless the slot is a single word as in `[[{name}]]`. `?` after a piece makes the piece
//! optional. `(…)` is a marker that is accepted but never written. `\` before a character makes the
//! character part of a marker.

use crate::notation::entry::{Entry, Fault, NotationRow, all, keep, marker};
use std::cell::Cell;

/// A piece of a notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotationToken {
    /// A marker, or the part of a marker up to a slot.
    Text(String),
    /// White space. This text is written.
    Space(String),
    /// The boundary between two adjacent markers.
    Cut,
    /// The content of the braces.
    Slot(String),
    /// The content of the braces inside brackets.
    List(String),
    /// The previous piece is optional.
    Maybe,
    /// A marker that is accepted but not written.
    Unwritten(String),
}

/// Returns the pieces of `text`.
pub(super) fn scan(text: &str) -> Result<Vec<NotationToken>, String> {
    let mut tokens: Vec<NotationToken> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '⏎' | '\n' => space(&mut tokens, "\n"),
            '␣' => space(&mut tokens, " "),
            '·' => space(&mut tokens, ""),
            '¦' => tokens.push(NotationToken::Cut),
            '?' => tokens.push(NotationToken::Maybe),
            '{' => {
                let inside = inside(&mut rest, '{', '}')?;
                let is_word = inside.chars().all(char::is_alphabetic);
                match tokens.last_mut() {
                    Some(NotationToken::Text(before))
                        if before.ends_with('[') && rest.starts_with(']') && !is_word =>
                    {
                        rest = &rest[1..];
                        before.pop();
                        if before.is_empty() {
                            tokens.pop();
                        }
                        tokens.push(NotationToken::List(inside));
                    }
                    _ => tokens.push(NotationToken::Slot(inside)),
                }
            }
            '(' => {
                let inside = inside(&mut rest, '(', ')')?;
                tokens.push(NotationToken::Unwritten(inside));
            }
            '\\' => match rest.chars().next() {
                Some(c) => {
                    rest = &rest[c.len_utf8()..];
                    letter(&mut tokens, c);
                }
                None => return Err("it ends with '\\'; expected a character after it".to_owned()),
            },
            c => letter(&mut tokens, c),
        }
    }
    Ok(tokens)
}

fn letter(tokens: &mut Vec<NotationToken>, c: char) {
    match tokens.last_mut() {
        Some(NotationToken::Text(text)) => text.push(c),
        _ => tokens.push(NotationToken::Text(c.to_string())),
    }
}

fn space(tokens: &mut Vec<NotationToken>, written: &str) {
    match tokens.last_mut() {
        Some(NotationToken::Space(space)) => space.push_str(written),
        _ => tokens.push(NotationToken::Space(written.to_owned())),
    }
}

/// Returns the text up to the matching closing bracket, and removes both from `rest`.
fn inside(rest: &mut &str, open: char, close: char) -> Result<String, String> {
    let mut depth = 1;
    for (at, c) in rest.char_indices() {
        depth += i32::from(c == open) - i32::from(c == close);
        if depth == 0 {
            let inside = rest[..at].to_owned();
            *rest = &rest[at + 1..];
            return Ok(inside);
        }
    }
    Err(format!(
        "'{open}' has no '{close}'; expected it, or '\\{open}' for the character itself"
    ))
}

/// Lists of spellings. The first spelling of each list is written, and names the marker in the
/// notation.
#[derive(Debug, Default)]
pub(super) struct MarkerSpellings {
    lists: Vec<(Entry<&'static [&'static str]>, Cell<bool>)>,
}

impl MarkerSpellings {
    pub(super) fn read(row: &NotationRow<'_>) -> Result<MarkerSpellings, Fault> {
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

    /// Returns all spellings of a marker.
    pub(super) fn of(&self, marker: &str) -> &'static [&'static str] {
        match self.lists.iter().find(|(list, _)| list.value[0] == marker) {
            Some((list, used)) => {
                used.set(true);
                list.value
            }
            None => all(vec![keep(marker)]),
        }
    }

    /// Checks that every list belongs to a marker of the dialect; an unused list is a mistake.
    pub(super) fn expect_used(&self) -> Result<(), Fault> {
        match self.lists.iter().find(|(_, used)| !used.get()) {
            None => Ok(()),
            Some((list, _)) => Err(list.fault(format!(
                "spellings: no marker is written '{}'; expected the spelling that the notation has as the first one",
                list.value[0]
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_markers_white_space_and_slots() {
        let text = |text: &str| NotationToken::Text(text.to_owned());
        let slot = |text: &str| NotationToken::Slot(text.to_owned());
        let space = |text: &str| NotationToken::Space(text.to_owned());
        assert_eq!(
            scan("<a>⏎{name, arguments}·⏎</a>?(<b>)"),
            Ok(vec![
                text("<a>"),
                space("\n"),
                slot("name, arguments"),
                space("\n"),
                text("</a>"),
                NotationToken::Maybe,
                NotationToken::Unwritten("<b>".to_owned())
            ])
        );
        assert_eq!(
            scan("f[{x, y}]g[h][[{x}]]"),
            Ok(vec![
                text("f"),
                NotationToken::List("x, y".to_owned()),
                text("g[h][["),
                slot("x"),
                text("]]")
            ])
        );
        assert_eq!(
            scan("Action¦:␣{call:name{a:x}}"),
            Ok(vec![
                text("Action"),
                NotationToken::Cut,
                text(":"),
                space(" "),
                slot("call:name{a:x}")
            ])
        );
        assert_eq!(scan("\\{\\?\\⏎"), Ok(vec![text("{?⏎")]));
        for wrong in ["{a", "(a", "a\\", "{{a}"] {
            assert!(scan(wrong).is_err(), "{wrong}");
        }
    }
}
