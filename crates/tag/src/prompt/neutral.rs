//! Writes text in which a parser of any dialect finds no markup.

use crate::Dialect;
use crate::dialect::{CallPart, Form, Scope};
use std::fmt::Write;
use std::sync::LazyLock;

/// Returns the text as a JSON string that cannot contain, continue or close a marker of any dialect
/// in the table: every character that markers consist of is written as `\uXXXX`. Parsing the JSON
/// string returns the original text.
pub fn neutral(text: &str) -> String {
    escaped(text, &[])
}

/// Like `neutral`, but also escapes the markers of this dialect, which may be a user's.
pub(super) fn neutral_in(dialect: &Dialect, text: &str) -> String {
    escaped(text, &own_words(dialect))
}

/// Like `neutral_in`, for a name in the frame of a result, which may be an attribute: without
/// quotes around or inside the name.
pub(super) fn name_in(dialect: &Dialect, text: &str) -> String {
    let string = neutral_in(dialect, text);
    string[1..string.len() - 1]
        .replace("\\\"", "\\u0022")
        .replace('\'', "\\u0027")
}

fn escaped(text: &str, own: &[&str]) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + 2);
    out.push('"');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let begins = |words: &[&str]| words.iter().any(|word| rest.starts_with(word));
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_unsafe(c) || begins(&WORDS) || begins(own) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out.push('"');
    out
}

/// Whether markers contain this character, or the character may end a line or control a terminal.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '<' | '>' | '[' | ']' | '{' | '}' | '`' | '&' | '|' | '✿')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '｜' | '＜' | '＞')
}

/// The markers of the table without any unsafe characters: their first letter is written as
/// `\uXXXX`.
static WORDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut words: Vec<_> = Dialect::all().iter().flat_map(words).collect();
    words.sort_unstable();
    words.dedup();
    words
});

fn words(dialect: &Dialect) -> impl Iterator<Item = &'static str> {
    markers(dialect).filter(|mark| !mark.chars().any(is_unsafe))
}

/// Returns such markers of a dialect that no dialect of the table has.
fn own_words(dialect: &Dialect) -> Vec<&'static str> {
    words(dialect)
        .filter(|word| !WORDS.contains(word))
        .collect()
}

/// Returns every marker of a dialect at which a parser may stop reading plain text. A neutral text
/// never begins a line, so markers that count only there are omitted.
fn markers(dialect: &Dialect) -> impl Iterator<Item = &'static str> {
    let framing = dialect.framing;
    let pairs = framing
        .reasoning
        .iter()
        .flat_map(|(open, close)| [*open, *close]);
    dialect
        .forms
        .iter()
        .flat_map(openers)
        .chain(pairs)
        .chain(framing.dropped.iter().copied())
}

/// Returns the markers that a form may begin with.
fn openers(form: &'static Form) -> impl Iterator<Item = &'static str> {
    let section = form
        .section
        .iter()
        .flat_map(|s| s.open.iter().chain(s.close));
    let call = match form.call.first() {
        Some(CallPart::Mark(marks)) if form.scope != Scope::Line => marks,
        Some(CallPart::Tag(tag)) => tag.open,
        _ => &[],
    };
    section.chain(call).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_marker_of_the_table_stands_in_a_neutral_text() {
        for dialect in Dialect::all() {
            for mark in markers(dialect) {
                for text in [
                    mark.to_owned(),
                    format!("x{mark}y"),
                    format!("{mark}{mark}"),
                    format!("a\n{mark} b"),
                ] {
                    let safe = neutral(&text);
                    for other in Dialect::all().iter().flat_map(markers) {
                        assert!(!safe.contains(other), "{other:?} stands in {safe}");
                    }
                    assert!(!safe.contains('\n'), "{safe}");
                    assert_eq!(
                        serde_json::from_str::<String>(&safe).ok().as_deref(),
                        Some(&text[..])
                    );
                }
            }
        }
    }

    /// Markers without any escaped character count only after other markers, or at the beginning of
    /// a line.
    #[test]
    fn what_may_stand_there_opens_nothing() {
        let forms = Dialect::all().iter().flat_map(|d| d.forms);
        let inner = forms
            .flat_map(|form| form.call)
            .flat_map(|part| match part {
                CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => *marks,
                _ => &[],
            });
        let mut plain: Vec<&str> = inner
            .copied()
            .filter(|mark| !neutral(mark).contains("\\u"))
            .collect();
        plain.sort_unstable();
        plain.dedup();
        assert_eq!(
            plain,
            [
                ":",
                "Action",
                "Action Input",
                "_call",
                "_code",
                "function",
                "json",
                "to="
            ]
        );
    }

    #[test]
    fn a_name_cannot_leave_its_attribute() {
        assert_eq!(
            name_in(&Dialect::all()[0], "a\" b='c'><x>"),
            "a\\u0022 b=\\u0027c\\u0027\\u003e\\u003cx\\u003e"
        );
    }

    proptest! {
        #[test]
        fn a_neutral_text_is_read_back_as_it_was(text in any::<String>()) {
            let safe = neutral(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&safe).ok(), Some(text));
            prop_assert!(!safe.contains(is_unsafe), "{}", safe);
        }
    }
}
