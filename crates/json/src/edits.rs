//! The edits that lead from one text to another, named so that a person can check them.

use crate::lex::{self, Piece};
use std::ops::Range;

/// One edit of a repair: `after` replaces `before`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Where `before` begins, in bytes of the original text.
    pub offset: usize,
    /// The kind of edit, such as `trailing_comma`.
    pub kind: &'static str,
    /// The text that was removed; may be empty.
    pub before: String,
    /// The text that was inserted; may be empty.
    pub after: String,
}

/// Applies `repairs`, in order of their offsets, to the text they were made for. `None` if they do
/// not fit that text.
pub fn apply(original: &str, repairs: &[Repair]) -> Option<String> {
    let mut out = String::with_capacity(original.len());
    let mut at = 0;
    for r in repairs {
        out.push_str(original.get(at..r.offset)?);
        at = r.offset + r.before.len();
        if original.get(r.offset..at)? != r.before {
            return None;
        }
        out.push_str(&r.after);
    }
    out.push_str(original.get(at..)?);
    Some(out)
}

/// How many items ahead the two sequences are searched for the place where they agree again.
const WINDOW: usize = 24;
/// The most comparisons, for each item of both sequences; after that the rest becomes one edit.
/// Keeps hostile texts linear.
const EFFORT: usize = 64;

/// The edits from `old` to `new`, offsets counted from `base`. Linear: texts that differ too much
/// give one large edit.
pub(crate) fn between(old: &str, new: &str, base: usize) -> Vec<Repair> {
    let (a, b) = (lex::pieces(old), lex::pieces(new));
    let (at, bt) = (
        starts(a.iter().map(|p| p.1.len())),
        starts(b.iter().map(|p| p.1.len())),
    );
    let anchor = |i: usize, j: usize| a[i] == b[j] && a[i].0 != Piece::Space;
    let mut out = Vec::new();
    for (x, y) in align(a.len(), b.len(), |i, j| a[i] == b[j], anchor) {
        let next = a[x.end..]
            .iter()
            .find(|p| p.0 != Piece::Space)
            .map_or("", |p| p.1);
        let (before, after) = (&old[at[x.start]..at[x.end]], &new[bt[y.start]..bt[y.end]]);
        let offset = base + at[x.start];
        let pair = x.len() == 1 && y.len() == 1;
        if pair
            && a[x.start].0 == Piece::Quoted
            && before.starts_with('"')
            && after.starts_with('"')
        {
            inside(before, after, offset, &mut out);
        } else {
            out.push(Repair {
                offset,
                kind: kind(before, after, next),
                before: before.to_owned(),
                after: after.to_owned(),
            });
        }
    }
    out
}

/// The edits inside one string, character by character.
fn inside(old: &str, new: &str, base: usize, out: &mut Vec<Repair>) {
    let (a, b): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let (at, bt) = (
        starts(a.iter().map(|c| c.len_utf8())),
        starts(b.iter().map(|c| c.len_utf8())),
    );
    let anchor = |i: usize, j: usize| {
        let (x, y) = (&a[i..], &b[j..]);
        let n = 3.min(x.len()).min(y.len());
        x[..n] == y[..n]
    };
    for (x, y) in align(a.len(), b.len(), |i, j| a[i] == b[j], anchor) {
        let (before, after) = (&old[at[x.start]..at[x.end]], &new[bt[y.start]..bt[y.end]]);
        out.push(Repair {
            offset: base + at[x.start],
            kind: "escape",
            before: before.to_owned(),
            after: after.to_owned(),
        });
    }
}

/// The offset of each item, and the end of the last one.
fn starts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut at = vec![0];
    let mut sum = 0;
    for n in lengths {
        sum += n;
        at.push(sum);
    }
    at
}

/// The pairs of ranges in which two sequences differ. `same` compares two items; `anchor` returns
/// whether two equal items are enough to end a difference (white space is not).
fn align(
    n: usize,
    m: usize,
    same: impl Fn(usize, usize) -> bool,
    anchor: impl Fn(usize, usize) -> bool,
) -> Vec<(Range<usize>, Range<usize>)> {
    let mut tail = 0;
    while tail < n.min(m) && same(n - 1 - tail, m - 1 - tail) {
        tail += 1;
    }
    let (mut i, mut j) = (0, 0);
    let mut left = EFFORT * (n + m) + 4096;
    let mut out = Vec::new();
    loop {
        while i < n && j < m && same(i, j) {
            (i, j) = (i + 1, j + 1);
        }
        // Where a text repeats itself, the common end may overlap the common start, which then
        // counts.
        let (n, m) = (
            n - tail.min(n - i).min(m - j),
            m - tail.min(n - i).min(m - j),
        );
        if i == n && j == m {
            return out;
        }
        let meets = |x: usize, y: usize| {
            if x < n && y < m {
                anchor(x, y)
            } else {
                x == n && y == m
            }
        };
        let mut found = None;
        'search: for d in 1..=2 * WINDOW {
            for (di, dj) in splits(d) {
                if i + di > n || j + dj > m {
                    continue;
                }
                if left == 0 {
                    break 'search;
                }
                left -= 1;
                if meets(i + di, j + dj) {
                    found = Some((di, dj));
                    break 'search;
                }
            }
        }
        let (x, y) = found.map_or((n, m), |(di, dj)| (i + di, j + dj));
        out.push((i..x, j..y));
        (i, j) = (x, y);
    }
}

/// The ways to split `d` items between two sequences, the most even first.
fn splits(d: usize) -> impl Iterator<Item = (usize, usize)> {
    let half = d / 2;
    (0..=half).flat_map(move |off| {
        let (di, dj) = (d - half + off, half - off);
        let both = [Some((di, dj)), (di != dj).then_some((dj, di))];
        both.into_iter()
            .flatten()
            .filter(|(di, dj)| *di <= WINDOW && *dj <= WINDOW)
    })
}

/// The kind of an edit, from the texts before and after it and the piece that follows.
fn kind(before: &str, after: &str, next: &str) -> &'static str {
    let (old, new) = (before.trim(), after.trim());
    match (old, new) {
        (",", "") => "trailing_comma",
        ("", ",") => "missing_comma",
        ("", ":") => "missing_colon",
        ("", "]" | "}") => "missing_bracket",
        ("]" | "}", "") => "extra_bracket",
        ("=" | "=>", ":") => "missing_colon",
        ("", "") => "white_space",
        _ if new.is_empty()
            && (old.starts_with("//") || old.starts_with("/*") || old.starts_with('#')) =>
        {
            "comment"
        }
        (_, "") => "text_removed",
        ("", _) => "text_added",
        (_, "true" | "false" | "null") => "literal",
        _ if old.starts_with('\'') && new.starts_with('"') => "single_quotes",
        _ if old.starts_with('"') => "quotes",
        _ if new.starts_with('"')
            && old.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') =>
        {
            if next == ":" {
                "unquoted_key"
            } else {
                "unquoted_string"
            }
        }
        _ if new.starts_with('"') => "quotes",
        _ if new.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => "number",
        _ => "text_replaced",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(old: &str, new: &str) -> Vec<(&'static str, String, String)> {
        let edits = between(old, new, 0);
        assert_eq!(apply(old, &edits).unwrap(), new);
        edits
            .into_iter()
            .map(|r| (r.kind, r.before, r.after))
            .collect()
    }

    #[test]
    fn edits_are_small_and_named() {
        let e = |k, a: &str, b: &str| (k, a.to_owned(), b.to_owned());
        assert_eq!(
            kinds("{\"a\":1,}", "{\"a\":1}"),
            [e("trailing_comma", ",", "")]
        );
        assert_eq!(
            kinds("{'a':'b', c: None}", "{\"a\":\"b\", \"c\": null}"),
            [
                e("single_quotes", "'a'", "\"a\""),
                e("single_quotes", "'b'", "\"b\""),
                e("unquoted_key", "c", "\"c\""),
                e("literal", "None", "null"),
            ]
        );
        assert_eq!(
            kinds("{\"a\":[1,2}", "{\"a\":[1,2]}"),
            [e("missing_bracket", "", "]")]
        );
        assert_eq!(
            kinds("{\"a\":1 \"b\":2}", "{\"a\":1, \"b\":2}"),
            [e("missing_comma", "", ",")]
        );
        assert_eq!(
            kinds("{\"p\":\"C:\\Users\\x\"}", "{\"p\":\"C:\\\\Users\\\\x\"}"),
            [e("escape", "", "\\"), e("escape", "", "\\")]
        );
        assert_eq!(kinds("aaaa", "aa"), [e("text_replaced", "aaaa", "aa")]);
        assert_eq!(kinds("same", "same"), []);
    }

    proptest! {
        #[test]
        fn edits_always_lead_to_the_new_text(old in "[{}\\[\\],:\"'a1 \\\\é]{0,40}", new in "[{}\\[\\],:\"'a1 \\\\é]{0,40}") {
            prop_assert_eq!(apply(&old, &between(&old, &new, 0)), Some(new));
        }
    }
}
