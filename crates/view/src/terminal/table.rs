//! Draws tables: as a grid if it fits, otherwise with a line for each cell.

use super::pen::Pen;
use crate::escape::{columns, safe};
use anstyle::Style;
use pulldown_cmark::Alignment;

/// Pieces of text with their styles.
pub(crate) type TableCell = Vec<(String, Style)>;

/// A table that is being read.
#[derive(Debug, Default)]
pub(crate) struct TerminalTable {
    pub alignments: Vec<Alignment>,
    /// The rows, beginning with the header. A row may have more cells than the header.
    pub rows: Vec<Vec<TableCell>>,
    /// Whether the header is already on the page.
    pub goes_on: bool,
}

fn wide(cell: &TableCell) -> usize {
    cell.iter().map(|(text, _)| columns(&safe(text))).sum()
}

impl TerminalTable {
    pub(super) fn draw(&self, pen: &mut Pen, base: Style) {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        // A continued table keeps its column widths if they are sufficient.
        let mut widths = if self.goes_on {
            std::mem::take(&mut pen.columns)
        } else {
            Vec::new()
        };
        widths.resize(count.max(widths.len()), 0);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = wide(cell).max(*width);
            }
        }
        if widths.iter().sum::<usize>() + 3 * count.saturating_sub(1) <= pen.room() {
            self.grid(pen, base, &widths);
        } else {
            self.list(pen, base);
        }
        pen.columns = widths;
    }

    fn grid(&self, pen: &mut Pen, base: Style, widths: &[usize]) {
        for (n, row) in self.rows.iter().enumerate().skip(usize::from(self.goes_on)) {
            for (at, (width, cell)) in widths.iter().zip(row).enumerate() {
                if at > 0 {
                    pen.put_code(" │ ", base.dimmed());
                }
                let space = width.saturating_sub(wide(cell));
                let before = match self.alignments.get(at) {
                    Some(Alignment::Right) => space,
                    Some(Alignment::Center) => space / 2,
                    _ => 0,
                };
                pen.put_code(&" ".repeat(before), base);
                put(pen, cell, n == 0);
                if at + 1 < row.len() {
                    pen.put_code(&" ".repeat(space - before), base);
                }
            }
            pen.end_row();
            if n == 0 {
                let line: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                pen.put_code(&line.join("─┼─"), base.dimmed());
                pen.end_row();
            }
        }
    }

    fn list(&self, pen: &mut Pen, base: Style) {
        let Some((header, rows)) = self.rows.split_first() else {
            return;
        };
        if rows.is_empty() && !self.goes_on {
            header.iter().for_each(|cell| line(pen, None, cell, base));
        }
        for (n, row) in rows.iter().enumerate() {
            if n > 0 || self.goes_on {
                pen.blank_row();
            }
            for (at, cell) in row.iter().enumerate() {
                let name = header.get(at).filter(|name| !name.is_empty());
                if name.is_some() || !cell.is_empty() {
                    line(pen, name, cell, base);
                }
            }
        }
    }
}

/// Draws a cell in its own line, after the name of its column.
fn line(pen: &mut Pen, name: Option<&TableCell>, cell: &TableCell, base: Style) {
    if let Some(name) = name {
        put(pen, name, true);
        pen.put(": ", base);
    }
    pen.prefix.push(("  ".to_owned(), base));
    put(pen, cell, false);
    pen.prefix.pop();
    pen.end_row();
}

fn put(pen: &mut Pen, cell: &TableCell, bold: bool) {
    for (text, style) in cell {
        pen.put(text, if bold { style.bold() } else { *style });
    }
}
