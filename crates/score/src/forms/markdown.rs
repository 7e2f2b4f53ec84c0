//! Formats a report as Markdown for the summary of a CI job.
//!
//! GitHub shows at most 1 MiB of Markdown, so the number of rows is bounded.

use super::document::{Block, Sheet, confusion, sections};
use super::words::{NAME, NamedStreams, name};
use crate::group::Dimension;
use crate::report::Report;
use crate::visible;
use std::fmt::Write as _;

/// Maximum number of groups per dimension.
const GROUPS: usize = 100;

/// Returns the report as [GitHub Flavored Markdown](https://github.github.com/gfm/), split by the
/// dimensions `by`; if `is_summary`, only the sections that are not folded. Names are escaped, so
/// that they are never parsed as Markdown or HTML.
#[must_use]
pub fn markdown(report: &Report, by: &[Dimension], is_summary: bool) -> String {
    let mut out = String::new();
    for section in sections(report, by, GROUPS) {
        let title = text(&name(&section.title, NAME), NAME);
        // Writing to a string cannot fail. Without the empty lines the content would be read as
        // HTML.
        let _ = match () {
            () if matches!(section.blocks[..], [Block::Curves]) => continue,
            () if section.is_folded && is_summary => continue,
            () if section.is_folded => writeln!(out, "<details><summary>{title}</summary>\n"),
            () => writeln!(out, "## {title}\n"),
        };
        for part in &section.blocks {
            block(&mut out, part);
        }
        if section.is_folded {
            out.push_str("</details>\n\n");
        }
    }
    out
}

fn block(out: &mut String, block: &Block<'_>) {
    let _ = match block {
        Block::Sentence(words) => writeln!(out, "{}\n", text(words, 1_000)),
        Block::Heading(words) => writeln!(out, "**{}**\n", text(words, NAME)),
        Block::Sheet(sheet) => return table(out, sheet),
        Block::Confusion(counts) => return table(out, &confusion(counts)),
        Block::Claims(claims) => {
            for (is_good, _, claim) in claims {
                let mark = if *is_good { "✅" } else { "❌" };
                let _ = writeln!(out, "- {mark} {}", text(claim, 400));
            }
            writeln!(out)
        }
        Block::Streams(streams) => return list(out, streams),
        // Only the HTML page has plots.
        Block::Curves | Block::Decisions(..) => Ok(()),
    };
}

/// Writes the streams of a kind, and the command that shows the first of them.
fn list(out: &mut String, streams: &NamedStreams<'_>) {
    let _ = writeln!(out, "**{}**\n", text(&streams.title(NAME), 200));
    for stream in &streams.streams {
        let words = text(&stream.outcome(), 400);
        let _ = writeln!(out, "- {}{words}", item(stream.id));
    }
    if let Some(command) = streams.first_command() {
        // A name cannot end an indented code block.
        let _ = writeln!(out, "\n<!-- -->\n\n    {command}");
    }
    out.push('\n');
}

/// Writes a table with its caption; writes nothing if the table has no rows.
fn table(out: &mut String, sheet: &Sheet) {
    if sheet.rows.is_empty() {
        return;
    }
    let cell = |(column, cell): (usize, &String)| match column {
        0 => text(&name(cell, NAME), 400),
        _ => text(&visible(cell, NAME), 400),
    };
    let rule = " ---: |".repeat(sheet.head.len().saturating_sub(1));
    for (at, row) in [&sheet.head].into_iter().chain(&sheet.rows).enumerate() {
        let mut cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        if at == 0 && row[0].is_empty() {
            cells[0].clear();
        }
        let _ = writeln!(out, "| {} |", cells.join(" | "));
        if at == 0 {
            let _ = writeln!(out, "| --- |{rule}");
        }
    }
    out.push('\n');
    if !sheet.caption.is_empty() {
        let _ = writeln!(out, "{}\n", sheet.caption);
    }
}

/// Text without meaning in Markdown and HTML, on one line: hidden characters are written out, and
/// each ASCII punctuation mark that may have a meaning becomes an entity, which also holds in HTML
/// blocks, where a backslash would show.
pub(crate) fn text(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in visible(text, limit).chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' | '|' | '`' | '*' | '_' | '~' | '[' | ']' | '\\' | '#'
            | '@' | '!' | '$' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
        if matches!(c, '@' | '#') && !before.is_alphanumeric() {
            // GitHub looks for people and issues after decoding entities, but a name in a file must
            // not notify anybody. A zero-width space prevents GitHub from recognizing it.
            out.push_str("&#8203;");
        }
        before = c;
    }
    // A scheme or `www.` would become a link even without markup.
    out.replace("://", "&#58;//").replace("www.", "www&#46;")
}

/// The same at the beginning of an item of a list, where `-`, `+` or a number would begin a list
/// within it.
fn item(name: &str) -> String {
    let mut out = text(name, NAME);
    let is_mark = |c: char| c == '-' || c == '+' || c.is_ascii_digit();
    if let Some(first) = out.chars().next().filter(|c| is_mark(*c)) {
        out.replace_range(..1, &format!("&#{};", u32::from(first)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_notifies_a_person_or_links_an_issue() {
        assert_eq!(text("@octocat", 100), "&#64;&#8203;octocat");
        assert_eq!(text("see #1", 100), "see &#35;&#8203;1");
        assert_eq!(
            text("sonnet@2025", 100),
            "sonnet&#64;2025",
            "a name that notifies nobody can be copied"
        );
    }
}
