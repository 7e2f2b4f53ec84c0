//! Formats a report as tables for a terminal.

use super::document::{Block, Sheet, confusion, sections};
use super::words::{NamedStreams, name};
use crate::group::Dimension;
use crate::report::Report;
use crate::visible;
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// The width and the content of the text.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The dimensions by which the report is split.
    pub by: Vec<Dimension>,
    /// Whether only the summary and the requirements are written, without stream lists, groups and
    /// checker sections.
    pub is_summary: bool,
    /// The width in columns; at least 60 are used.
    pub width: usize,
    /// Whether the output may contain colours.
    pub has_colour: bool,
}

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The number of spaces between two columns.
const GAP: usize = 2;
/// Maximum length of a column heading in characters.
const HEAD: usize = 13;
/// Minimum and maximum length of the names in a table that is split, in characters.
const NAMES: [usize; 2] = [15, 60];

/// Returns the report as text for a terminal.
#[must_use]
pub fn table(report: &Report, layout: &Layout) -> String {
    let mut page = TextPage {
        out: String::new(),
        width: layout.width.max(60),
        has_colour: layout.has_colour,
    };
    for section in sections(report, &layout.by, usize::MAX) {
        let is_left_out = layout.is_summary && section.is_folded;
        if is_left_out || matches!(section.blocks[..], [Block::Curves]) {
            continue;
        }
        if !page.out.is_empty() {
            page.line("");
        }
        page.styled(&name(&section.title, 60), HEADING);
        for block in &section.blocks {
            page.block(block);
        }
    }
    page.out
}

/// Text that grows line by line.
struct TextPage {
    out: String,
    width: usize,
    has_colour: bool,
}

impl TextPage {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end_matches(' '));
        self.out.push('\n');
    }

    /// Writes a line in a style.
    fn styled(&mut self, text: &str, style: Style) {
        let text = self.coloured(text.trim_end_matches(' '), style);
        self.line(&text);
    }

    fn coloured(&self, text: &str, style: Style) -> String {
        if self.has_colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    fn block(&mut self, block: &Block<'_>) {
        match block {
            Block::Sentence(text) => self.wrapped(&visible(text, 1_000)),
            Block::Heading(text) => self.styled(&format!("  {text}"), HEADING),
            Block::Sheet(sheet) => self.sheet(sheet),
            Block::Confusion(counts) => self.sheet(&confusion(counts)),
            Block::Claims(claims) => {
                for (is_good, word, claim) in claims {
                    let style = if *is_good { GOOD } else { BAD };
                    let word = self.coloured(&format!("{word:6}"), style);
                    self.line(&format!("  {word}  {}", visible(claim, 400)));
                }
            }
            Block::Streams(streams) => self.streams(streams),
            // Only the HTML page has plots.
            Block::Curves | Block::Decisions(..) => {}
        }
    }

    /// Writes a sentence, wrapped to the width.
    fn wrapped(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + word.chars().count() + 3 > self.width {
                self.line(&line);
                line.clear();
            }
            line.push_str(if line.is_empty() { "  " } else { " " });
            line.push_str(word);
        }
        self.line(&line);
    }

    /// Writes a table; one that is too wide is split into several that repeat its first columns.
    fn sheet(&mut self, sheet: &Sheet) {
        let cell = |text: &String, column: usize| match (column, text.as_str()) {
            (0, text) => text.to_owned(),
            (_, text) => name(text, HEAD),
        };
        let head: Vec<String> = (0..)
            .zip(&sheet.head)
            .map(|(c, text)| cell(text, c))
            .collect();
        let width = |column: usize| {
            let cells = sheet.rows.iter().chain([&head]);
            let widths = cells.map(|row| row[column].chars().count());
            widths.max().unwrap_or(0) + GAP
        };
        let fixed = 1..=sheet.fixed;
        let mut start = fixed.end() + 1;
        while !sheet.rows.is_empty() {
            let mut used = GAP + fixed.clone().map(width).sum::<usize>();
            let mut end = start;
            while end < head.len() && (end == start || used + width(end) + NAMES[0] <= self.width) {
                used += width(end);
                end += 1;
            }
            let limit = self.width.saturating_sub(used).clamp(8, NAMES[1]);
            let columns: Vec<usize> = fixed.clone().chain(start..end).collect();
            let row = |first: String, row: &[String]| {
                let others = columns.iter().map(|column| row[*column].clone());
                [first].into_iter().chain(others).collect::<Vec<_>>()
            };
            let rows = sheet
                .rows
                .iter()
                .map(|cells| row(name(&cells[0], limit), cells));
            self.drawn(row(head[0].clone(), &head), rows.collect());
            start = end;
            if start >= head.len() {
                break;
            }
        }
        if !sheet.caption.is_empty() && !sheet.rows.is_empty() {
            self.wrapped(sheet.caption);
        }
    }

    fn drawn(&mut self, head: Vec<String>, rows: Vec<Vec<String>>) {
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(head);
        table.add_rows(rows);
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 2 } else { 0 }, 2));
            if index > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (index, line) in table.lines().enumerate() {
            self.styled(&line, if index == 0 { HEADING } else { Style::new() });
        }
    }

    /// Writes the first streams of a kind, one per line, and the command that shows the first of
    /// them.
    fn streams(&mut self, streams: &NamedStreams<'_>) {
        self.styled(&format!("  {}", streams.title(40)), BAD);
        for stream in &streams.streams {
            let line = format!("    {}{}", name(stream.id, 60), stream.outcome());
            self.line(&visible(&line, self.width));
        }
        if let Some(command) = streams.first_command() {
            self.line(&format!("    {command}"));
        }
    }
}
