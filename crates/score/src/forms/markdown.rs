//! A report as Markdown, fit for the summary of a CI job.
//!
//! GitHub shows at most 1 MiB of it; the number of rows is bounded.

use super::sheet::{self, Sheet};
use super::words::{self, Named};
use crate::command_line::explain;
use crate::group::Dimension;
use crate::report::Report;
use crate::visible;
use std::fmt::Write as _;

/// Characters of a name.
const NAME: usize = 80;
/// Groups of a dimension.
const GROUPS: usize = 100;

/// The report as [GitHub Flavored Markdown](https://github.github.com/gfm/), split by the
/// dimensions `by`. Names are escaped, so that none is read as Markdown or HTML.
#[must_use]
pub fn markdown(report: &Report, by: &[Dimension]) -> String {
    let mut out = String::from("## Checkers of tool calls\n\n");
    let missed: Vec<_> = report
        .verdicts
        .iter()
        .filter(|verdict| !verdict.is_met)
        .collect();
    if !report.verdicts.is_empty() {
        paragraph(
            &mut out,
            &match missed.len() {
                0 => format!("✅ All {} requirements are met.", report.verdicts.len()),
                number => format!(
                    "❌ {number} of {} requirements are missed.",
                    report.verdicts.len()
                ),
            },
        );
        for verdict in &report.verdicts {
            let mark = if verdict.is_met { "✅" } else { "❌" };
            let _ = writeln!(out, "- {mark} {}", text(&verdict.message(), 400));
        }
        out.push('\n');
    }
    for line in sheet::streams(report) {
        paragraph(&mut out, &line);
    }
    table(&mut out, &sheet::summary(report, NAME));
    paragraph(
        &mut out,
        "p50 and p90 are characters of text before the decision; waited is the share of the text without calls.",
    );
    baseline(&mut out, report);
    for checker in &report.checkers {
        let wrong = words::wrong(checker);
        let [missed, false_yes] = [wrong[0].1, wrong[1].1];
        details(
            &mut out,
            &format!(
                "{}: {missed} missed, {false_yes} false yes",
                text(&checker.name, NAME)
            ),
            |out| {
                table(out, &sheet::confusion(checker));
                table(out, &sheet::shares(checker));
                paragraph(out, &sheet::scores(checker));
                table(out, &sheet::places(checker));
                for (kind, count, streams) in wrong {
                    list(out, kind, count, &streams, &checker.name);
                }
            },
        );
    }
    for by in by {
        let (mut groups, left_out) = sheet::differing(report, *by);
        let more = left_out + groups.len().saturating_sub(GROUPS);
        groups.truncate(GROUPS);
        let sheet = sheet::groups(report, *by, &groups, 0..report.checkers.len(), [NAME; 2]);
        if !sheet.rows.is_empty() {
            details(
                &mut out,
                &format!("By {by}: recall, and +N for N false yeses"),
                |out| {
                    table(out, &sheet);
                    if more > 0 {
                        paragraph(out, &format!("{more} more groups."));
                    }
                },
            );
        }
    }
    out
}

fn baseline(out: &mut String, report: &Report) {
    let Some(baseline) = &report.baseline else {
        return;
    };
    let mark = if baseline.has_regressions() {
        "❌"
    } else {
        "✅"
    };
    paragraph(
        out,
        &format!(
            "{mark} Compared with the baseline: {}",
            words::baseline(baseline)
        ),
    );
    for change in &baseline.checkers {
        let _ = writeln!(
            out,
            "- {}: {}",
            item(&change.checker),
            words::change(change)
        );
    }
    out.push('\n');
    for change in &baseline.checkers {
        if change.broken + change.fixed == 0 {
            continue;
        }
        details(
            out,
            &format!("{}: what changed", text(&change.checker, NAME)),
            |out| {
                for (kind, count, streams) in words::changed(change) {
                    list(out, kind, count, &streams, &change.checker);
                }
            },
        );
    }
}

/// The streams of a kind, and the command that shows the first of them.
fn list(out: &mut String, kind: &str, count: u64, streams: &[Named<'_>], checker: &str) {
    if count == 0 {
        return;
    }
    let of = if (streams.len() as u64) < count {
        format!(", the first {}", streams.len())
    } else {
        String::new()
    };
    paragraph(out, &format!("**{kind}: {count}{of}**"));
    for stream in streams {
        let _ = writeln!(
            out,
            "- {}: {}: {}",
            item(stream.id),
            stream.answer,
            text(&stream.reason, 400)
        );
    }
    if let Some(first) = streams.first() {
        // An indented block has no end that a name could write.
        let _ = writeln!(
            out,
            "\n<!-- -->\n\n    {}",
            explain(first.corpus, first.id, checker)
        );
    }
    out.push('\n');
}

fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "{text}\n");
}

fn details(out: &mut String, summary: &str, fill: impl FnOnce(&mut String)) {
    // Without the empty lines the content would be read as HTML.
    let _ = writeln!(out, "<details><summary>{summary}</summary>\n");
    fill(out);
    out.push_str("</details>\n\n");
}

/// A table; nothing without rows.
fn table(out: &mut String, sheet: &Sheet) {
    if sheet.rows.is_empty() {
        return;
    }
    let row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| text(cell, 400)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    out.push_str(&row(&sheet.head));
    let _ = writeln!(
        out,
        "| --- |{}",
        " ---: |".repeat(sheet.head.len().saturating_sub(1))
    );
    sheet
        .rows
        .iter()
        .for_each(|cells| out.push_str(&row(cells)));
    out.push('\n');
}

/// Text without meaning in Markdown and HTML, on one line: hidden characters are written out, and
/// each ASCII punctuation mark that may have a meaning becomes an entity, which also holds in HTML
/// blocks, where a backslash would show.
fn text(text: &str, limit: usize) -> String {
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
            // GitHub looks for people and issues after entities are read: a name in a file must not
            // notify anybody. A space of no width keeps it from seeing one.
            out.push_str("&#8203;");
        }
        before = c;
    }
    // A scheme or `www.` would become a link without any mark.
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
