//! A report as tables for a terminal.

use super::sheet::{self, Sheet};
use super::words::{self, Named};
use crate::command_line::explain;
use crate::group::Dimension;
use crate::report::Report;
use crate::visible;
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// How wide the text may be, and what it shows.
#[derive(Clone, Debug)]
pub struct Layout {
    /// By what the report is split.
    pub by: Vec<Dimension>,
    /// Columns; at least 60 are used.
    pub width: usize,
    /// Whether the reader shows colours.
    pub has_colour: bool,
}

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Columns between two columns.
const GAP: usize = 2;
/// Columns of a group beside the checkers, and those of each checker.
const GROUP: usize = 35;
/// Of these the indent, and the counts of streams and calls.
const GROUP_COUNTS: usize = 20;
/// See `GROUP`.
const GROUP_CHECKER: usize = 15;

/// The report as text for a terminal: one row for each checker, then the details of each, then
/// groups in which they differ.
#[must_use]
pub fn table(report: &Report, layout: &Layout) -> String {
    let mut page = Page {
        out: String::new(),
        width: layout.width.max(60),
        has_colour: layout.has_colour,
    };
    for line in sheet::streams(report) {
        page.wrapped("", &line);
    }
    page.line("");
    let numbers = numbers(&sheet::summary(report, 1));
    page.sheet(
        &sheet::summary(report, page.width.saturating_sub(numbers).clamp(8, 40)),
        0,
    );
    page.wrapped(
        "",
        "p50, p90: characters of text before the decision. waited: of the text without calls.",
    );
    for checker in &report.checkers {
        page.heading(&sheet::name(&checker.name, 60));
        page.sheet(&sheet::confusion(checker), 2);
        page.sheet(&sheet::shares(checker), 2);
        page.wrapped("  ", &sheet::scores(checker));
        let places = sheet::places(checker);
        if !places.rows.is_empty() {
            page.sheet(&places, 2);
        }
        for (kind, count, streams) in words::wrong(checker) {
            page.streams(kind, count, &streams, &checker.name);
        }
    }
    for by in &layout.by {
        page.groups(report, *by);
    }
    page.baseline(report);
    if !report.verdicts.is_empty() {
        page.heading("requirements");
        for verdict in &report.verdicts {
            let (word, style) = if verdict.is_met {
                ("met   ", GOOD)
            } else {
                ("missed", BAD)
            };
            let message = visible(&verdict.message(), 400);
            let word = page.styled(word, style);
            page.line(&format!("  {word}  {message}"));
        }
    }
    page.out
}

/// The columns that all but the first of a sheet take.
fn numbers(sheet: &Sheet) -> usize {
    let width = |column: usize| {
        sheet
            .rows
            .iter()
            .chain([&sheet.head])
            .map(|row| row[column].chars().count())
            .max()
    };
    (1..sheet.head.len())
        .filter_map(width)
        .map(|width| width + GAP)
        .sum()
}

/// Text that grows line by line.
struct Page {
    out: String,
    width: usize,
    has_colour: bool,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end_matches(' '));
        self.out.push('\n');
    }

    fn styled(&self, text: &str, style: Style) -> String {
        if self.has_colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    fn heading(&mut self, text: &str) {
        let text = self.styled(text, HEADING);
        self.line("");
        self.line(&text);
    }

    /// A sentence on as many lines as it needs, each behind `indent`.
    fn wrapped(&mut self, indent: &str, text: &str) {
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty()
                && indent.len() + line.chars().count() + 1 + word.chars().count() > self.width
            {
                self.line(&format!("{indent}{line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&format!("{indent}{line}"));
    }

    fn sheet(&mut self, sheet: &Sheet, indent: u16) {
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(sheet.head.clone());
        table.add_rows(sheet.rows.clone());
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { indent } else { 0 }, 2));
            if index > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (index, line) in table.lines().enumerate() {
            let line = line.trim_end_matches(' ').to_owned();
            self.line(&if index == 0 {
                self.styled(&line, HEADING)
            } else {
                line
            });
        }
    }

    /// The first streams of a kind, one a line, and the command that shows the first of them.
    fn streams(&mut self, kind: &str, count: u64, streams: &[Named<'_>], checker: &str) {
        if count == 0 {
            return;
        }
        let of = if (streams.len() as u64) < count {
            format!(", the first {}", streams.len())
        } else {
            String::new()
        };
        let heading = self.styled(&format!("{kind}: {count}{of}"), BAD);
        self.line(&format!("  {heading}"));
        for stream in streams {
            let id = sheet::name(stream.id, 60);
            let line = format!("    {id}: {}: {}", stream.answer, stream.reason);
            self.line(&visible(&line, self.width));
        }
        if let Some(first) = streams.first() {
            self.line(&format!("    {}", explain(first.corpus, first.id, checker)));
        }
    }

    fn groups(&mut self, report: &Report, by: Dimension) {
        let (groups, left_out) = sheet::differing(report, by);
        if groups.is_empty() {
            return;
        }
        let per_table = (self.width.saturating_sub(GROUP) / GROUP_CHECKER).max(1);
        let mut start = 0;
        while start < report.checkers.len() {
            let end = (start + per_table).min(report.checkers.len());
            let name = self
                .width
                .saturating_sub(GROUP_COUNTS + GROUP_CHECKER * (end - start))
                .max(GROUP - GROUP_COUNTS);
            let limits = [name, GROUP_CHECKER - GAP];
            let sheet = sheet::groups(report, by, &groups, start..end, limits);
            start = end;
            self.heading(&format!("by {by}: recall, and +N for N false yeses"));
            self.sheet(&sheet, 2);
            if left_out > 0 {
                self.line(&format!("  {left_out} more, on which all checkers agree."));
            }
        }
    }

    fn baseline(&mut self, report: &Report) {
        let Some(baseline) = &report.baseline else {
            return;
        };
        self.heading("compared with the baseline");
        self.wrapped("  ", &words::baseline(baseline));
        for change in &baseline.checkers {
            self.wrapped(
                "  ",
                &format!(
                    "{}: {}",
                    sheet::name(&change.checker, 60),
                    words::change(change)
                ),
            );
            for (kind, count, streams) in words::changed(change) {
                self.streams(kind, count, &streams, &change.checker);
            }
        }
    }
}
