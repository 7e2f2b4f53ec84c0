//! The forms of a report card. Names come from recordings, so each form escapes them.

use super::card::{CardLine, Example, GroupKey};
use crate::forms::{counted, markdown_text};
use crate::visible;
use std::fmt::Write;

/// The most characters of a name that is shown.
const NAME: usize = 120;

/// One line of JSON for each line of the card. Hidden characters are written as escapes.
pub fn json(lines: &[CardLine]) -> String {
    let mut out = String::new();
    for line in lines {
        // A struct of strings and numbers always has a form in JSON.
        let line = serde_json::to_string(line).unwrap_or_default();
        out.push_str(&event::safe_json(&line));
        out.push('\n');
    }
    out
}

/// The names of a group that are known.
pub fn group(key: &GroupKey) -> String {
    let names = [&key.api, &key.provider, &key.model];
    let known: Vec<String> = names
        .into_iter()
        .filter(|n| !n.is_empty())
        .map(|n| visible(n, NAME))
        .collect();
    known.join(" / ")
}

/// Where an example is.
pub fn place(example: &Example) -> String {
    let mut out = visible(&example.file, 400);
    // Writing to a string cannot fail.
    if let Some(part) = example.part {
        let _ = write!(out, ", stream {part}");
    }
    if example.event > 0 {
        let _ = write!(out, ", event {}", example.event);
    }
    let _ = write!(out, ", byte {}", example.offset);
    out
}

/// The card for people: each group with its deviations.
pub fn text(lines: &[CardLine]) -> String {
    let mut out = String::new();
    let mut last = None;
    let width = lines
        .iter()
        .filter_map(|l| l.deviation.as_ref())
        .map(String::len)
        .max()
        .unwrap_or(0);
    for line in lines {
        let key = &line.key;
        if last != Some(key) {
            if last.is_some() {
                out.push('\n');
            }
            let _ = writeln!(out, "{}: {}", group(key), counted(line.streams, "stream"));
            last = Some(key);
        }
        let Some(code) = &line.deviation else {
            out.push_str("  no deviation\n");
            continue;
        };
        let row = line.row.as_deref().unwrap_or("");
        let seen = line.seen;
        let _ = writeln!(
            out,
            "  {seen:>5}  {code:<width$}  {row:<6}  {}",
            line.words()
        );
        if let Some(example) = &line.example {
            let _ = writeln!(
                out,
                "  {:>5}  {:<width$}  {:<6}  {}",
                "",
                "",
                "",
                place(example)
            );
        }
    }
    out
}

/// The card as a table of Markdown, such as the summary of a CI job shows.
pub fn markdown(lines: &[CardLine]) -> String {
    let mut out = String::from(
        "| streams of | deviation | seen | row | first |\n| --- | --- | ---: | --- | --- |\n",
    );
    for line in lines {
        let code = line.deviation.as_deref().map_or_else(
            || "none".to_owned(),
            |code| format!("`{code}`: {}", line.words()),
        );
        let example = line.example.as_ref().map(place).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {code} | {} of {} | {} | {} |",
            markdown_text(&group(&line.key), usize::MAX),
            line.seen,
            line.streams,
            line.row.as_deref().unwrap_or(""),
            markdown_text(&example, usize::MAX),
        );
    }
    out
}
