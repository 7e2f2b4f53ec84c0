//! The pieces of text that the search for costly inputs repeats.

use std::collections::BTreeSet;
use tag::{Dialect, PromptCall};

/// The longest marker, in bytes; longer texts of the table are prompts and sentences.
const LONGEST_MARKER: usize = 48;

/// Pieces of JSON, of fences and of escapes.
pub(crate) const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    ",",
    ":",
    " ",
    "\n",
    "0",
    "-",
    "a",
    "é",
    "{}",
    "[]",
    "{ }{}",
    "[{",
    "}]",
    "{\"",
    "\"}",
    "\"\"",
    "\\\"",
    "\\u",
    "\\ud83d",
    "{\"a\":",
    "{\"a\":1}",
    "{\"a\":1},",
    ",{\"a\":1}",
    "{\"a\":1}}",
    "[1,",
    "null",
    "tru",
    "1e",
    "//",
    "/*",
    "*/",
    "`",
    "```",
    "```\n",
    "```json\n",
    "<",
    "</",
    "<|",
    "|>",
    "#",
    "True",
    "(",
    ")",
    "a(",
    "a=",
    "\"\"\"",
    "\u{feff}",
    "\u{2028}",
    "\u{1b}[",
];

/// Every text of a dialect's row in the table that may be a marker, as the table writes them.
pub(crate) fn markers(dialect: &Dialect) -> BTreeSet<String> {
    let names: BTreeSet<&str> = [dialect.name, dialect.models]
        .into_iter()
        .chain(dialect.aliases.iter().copied())
        .collect();
    let row = format!("{dialect:?}");
    let is_marker = |text: &String| {
        let signs = text
            .chars()
            .any(|c| !c.is_alphanumeric() && !c.is_whitespace() && c != '_');
        signs && text.len() <= LONGEST_MARKER && !names.contains(text.as_str())
    };
    literals(&row).into_iter().filter(is_marker).collect()
}

/// The string literals of a value as `Debug` writes it.
fn literals(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut chars = text.chars();
    while chars.by_ref().any(|c| c == '"') {
        let mut literal = String::new();
        while let Some(c) = chars.next().filter(|c| *c != '"') {
            literal.push(match c {
                '\\' => match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(c) => c,
                    None => break,
                },
                c => c,
            });
        }
        out.push(literal);
    }
    out
}

/// A marker and some of its prefixes: without its last character, its first half, its first
/// characters.
pub(crate) fn prefixes(marker: &str) -> BTreeSet<&str> {
    let ends: Vec<usize> = marker
        .char_indices()
        .map(|(at, _)| at)
        .chain([marker.len()])
        .collect();
    let last = ends.len() - 1;
    let ends = [last, last - 1, last / 2, 2.min(last), 1.min(last)].map(|n| &marker[..ends[n]]);
    ends.into_iter()
        .filter(|prefix| !prefix.is_empty())
        .collect()
}

/// A dialect's call of the tool `f`: the text before its argument's value, and the text after it.
pub(crate) fn written(dialect: &Dialect) -> (String, String) {
    let call = dialect.calls(&[PromptCall {
        id: "call_1",
        name: "f",
        arguments: r#"{"x":"VALUE"}"#,
    }]);
    let (before, after) = call.split_once("VALUE").unwrap_or((&call, ""));
    (before.to_owned(), after.to_owned())
}
