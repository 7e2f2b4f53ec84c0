//! Writes rows of text on a terminal, wrapped between words, and can return to where a text began.
//!
//! The last column stays empty, since terminals disagree about the cursor position after it. The
//! current row is kept, so that its last word can move to the next row as a whole, and so that the
//! row can be rewritten after the rows below it are cleared.

use crate::escape::{columns, safe, width};
use anstyle::Style;
use std::io::Write;

/// Minimum number of columns that a terminal is assumed to have.
const NARROWEST: usize = 8;

/// The current row.
#[derive(Clone, Debug, Default)]
struct PenRow {
    text: String,
    /// The styles, each with the byte at which it begins.
    styles: Vec<(usize, Style)>,
    column: usize,
    /// The last byte offset at which the row can be wrapped: a word or a wide character begins
    /// there.
    word: usize,
    /// The end of the prefix; the row is not wrapped before it.
    start: usize,
    /// The number of bytes written to the terminal.
    written: usize,
    /// Whether the last character was wide, and whether it joins with the next one.
    was_wide: bool,
    joins: bool,
}

/// A position to return to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark {
    row: usize,
    line: PenRow,
    feeds: usize,
}

/// Writes rows to a terminal.
#[derive(Debug)]
pub(crate) struct Pen {
    /// The bytes to send to the terminal.
    pub out: Vec<u8>,
    /// The number of columns used.
    pub width: usize,
    /// The number of rows on the screen.
    pub rows: usize,
    pub colour: bool,
    /// The prefix of each row, in pieces with their styles.
    pub prefix: Vec<(String, Style)>,
    /// The column widths of the latest table.
    pub columns: Vec<usize>,
    /// The number of line feeds at the end of the page; two before the first word.
    pub feeds: usize,
    line: PenRow,
    /// The number of the current row, from 0.
    row: usize,
    /// The lowest row ever written to, and the highest row that is certainly on the screen.
    deepest: usize,
    highest: usize,
}

impl Pen {
    pub(super) fn new(columns: usize, rows: usize, colour: bool) -> Self {
        Pen {
            out: Vec::new(),
            width: columns.max(NARROWEST) - 1,
            rows: rows.max(4),
            colour,
            prefix: Vec::new(),
            columns: Vec::new(),
            feeds: 2,
            line: PenRow::default(),
            row: 0,
            deepest: 0,
            highest: 0,
        }
    }

    /// Sets the size of the terminal.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        // Rows that scrolled off a smaller screen do not all come back on a larger one.
        self.highest = self.top();
        (self.width, self.rows) = (columns.max(NARROWEST) - 1, rows.max(4));
        if self.line.column > self.width {
            self.feed();
        }
    }

    /// Fixes all rows above the current one: they are never redrawn.
    pub(super) fn fix(&mut self) {
        self.highest = self.row;
    }

    /// Returns the highest row that the cursor can go back to, wherever on the screen the first row
    /// was.
    fn top(&self) -> usize {
        self.highest
            .max((self.deepest + 1).saturating_sub(self.rows))
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            row: self.row,
            line: self.line.clone(),
            feeds: self.feeds,
        }
    }

    /// Whether `mark` is still on the screen after `more` rows were written below the current row.
    pub(super) fn reaches(&self, mark: &Mark, more: usize) -> bool {
        let deepest = self.deepest.max(self.row + more);
        mark.row >= self.highest.max((deepest + 1).saturating_sub(self.rows))
    }

    /// Clears everything from `mark` on and continues there. The caller must have checked
    /// [`Pen::reaches`].
    pub(super) fn return_to(&mut self, mark: &Mark) {
        let up = self.row - mark.row;
        (self.row, self.line, self.feeds) = (mark.row, mark.line.clone(), mark.feeds);
        self.rewrite(up);
    }

    /// Clears the `below` rows that the caller wrote below the current row.
    pub(super) fn lift(&mut self, below: usize) {
        self.rewrite(below);
    }

    /// Rewrites the current row, which is `up` rows above the cursor, and clears everything below
    /// it. The cursor's column is unknown, since terminals disagree about the width of emoji.
    fn rewrite(&mut self, up: usize) {
        self.out.push(b'\r');
        if up > 1 {
            // Writing to a vector cannot fail.
            let _ = write!(self.out, "\x1b[{}A", up - 1);
        }
        if up > 0 {
            // Clear from the second row on: if the whole screen is cleared at once, tmux copies it
            // into its scroll-back.
            self.out.extend_from_slice(b"\x1b[J\x1b[A");
        }
        self.out.extend_from_slice(b"\x1b[K");
        self.line.written = 0;
        self.flush();
    }

    /// Records that the caller wrote `rows` rows below the current row.
    pub(super) fn laid(&mut self, rows: usize) {
        self.deepest = self.deepest.max(self.row + rows);
    }

    /// Records that the caller wrote `rows` complete rows; the cursor is at the beginning of the
    /// next row.
    pub(super) fn skip(&mut self, rows: usize) {
        self.row += rows;
        self.deepest = self.deepest.max(self.row);
        self.line = PenRow::default();
        self.feeds = 1;
    }

    /// Whether the current row is empty.
    pub(super) fn is_at_start(&self) -> bool {
        self.line.text.is_empty()
    }

    /// Returns the number of columns that a row has after its prefix.
    pub(super) fn room(&self) -> usize {
        self.width
            - if self.has_prefix() {
                self.prefix_width()
            } else {
                0
            }
    }

    /// Whether rows begin with the prefix: only if it takes at most half of the width.
    fn has_prefix(&self) -> bool {
        self.prefix_width() <= self.width / 2
    }

    fn prefix_width(&self) -> usize {
        self.prefix.iter().map(|(text, _)| columns(text)).sum()
    }

    /// Ends the current row.
    pub(super) fn feed(&mut self) {
        self.flush();
        self.out.push(b'\n');
        self.row += 1;
        self.deepest = self.deepest.max(self.row);
        self.feeds += 1;
        self.line = PenRow::default();
    }

    /// Ends the current row unless it is empty.
    pub(super) fn end_row(&mut self) {
        if !self.is_at_start() {
            self.feed();
        }
    }

    /// Ends the current row unless it is empty, and leaves one empty row after it.
    pub(super) fn blank_row(&mut self) {
        self.end_row();
        if self.feeds < 2 {
            self.feed();
        }
    }

    /// Writes text, wrapped between words, with hidden characters made visible. A word that does
    /// not fit moves to the next row, including the part of it that was already written.
    pub(super) fn put(&mut self, text: &str, style: Style) {
        self.write(&safe(text), style, true);
        self.flush();
    }

    /// Writes text without wrapping between words: spaces are kept, and a row breaks at its last
    /// column.
    pub(super) fn put_code(&mut self, text: &str, style: Style) {
        self.write(&safe(text), style, false);
        self.flush();
    }

    fn write(&mut self, text: &str, style: Style, words: bool) {
        for c in text.chars() {
            if c == '\n' {
                self.feed();
                continue;
            }
            if self.is_at_start() {
                self.begin_row();
            }
            let blank = matches!(c, ' ' | '\t');
            let w = if c == '\t' {
                8 - self.line.column % 8
            } else {
                width(c)
            };
            // The second limit is for combining accents, which take no column: a letter can have
            // any number of them.
            if self.line.column + w > self.width || self.line.text.len() > 16 * self.width + 256 {
                let at_start = self.line.text.len() == self.line.start;
                if words && blank {
                    self.feed(); // the break takes the place of the space
                    continue;
                }
                let word = columns(&self.line.text[self.line.word..]);
                let can_break = words
                    && w > 0
                    && (w != 2 || self.line.joins)
                    && self.line.word > self.line.start;
                if can_break && word + w <= self.room() {
                    self.move_word_down();
                } else if !at_start {
                    self.feed();
                    self.begin_row();
                }
            }
            let w = if c == '\t' {
                (8 - self.line.column % 8).min(self.width - self.line.column)
            } else {
                w
            };
            self.push(c, w, blank, style);
        }
    }

    fn push(&mut self, c: char, w: usize, blank: bool, style: Style) {
        let line = &mut self.line;
        if w == 2 && !line.joins || w == 1 && line.was_wide {
            line.word = line.text.len();
        }
        if line.styles.last().is_none_or(|last| last.1 != style) {
            line.styles.push((line.text.len(), style));
        }
        if blank {
            line.text.extend(std::iter::repeat_n(' ', w));
        } else {
            line.text.push(c);
        }
        // A word that ends in an emoji selector is never moved: whether the selector widens the
        // emoji depends on the terminal.
        if blank || c == '\u{fe0f}' {
            line.word = line.text.len();
        }
        if w > 0 {
            line.was_wide = w == 2 && !blank;
        }
        line.joins = c == '\u{200d}';
        line.column += w;
        self.feeds = 0;
    }

    /// Writes the prefix.
    fn begin_row(&mut self) {
        if self.has_prefix() {
            for (text, style) in std::mem::take(&mut self.prefix).iter() {
                text.chars()
                    .for_each(|c| self.push(c, width(c), c == ' ', *style));
                self.prefix.push((text.clone(), *style));
            }
        }
        self.line.start = self.line.text.len();
        self.line.word = self.line.start;
    }

    fn move_word_down(&mut self) {
        let line = &mut self.line;
        let word = line.text.split_off(line.word);
        let at = line.word;
        let first = line.styles.iter().rposition(|s| s.0 <= at).unwrap_or(0);
        let styles: Vec<_> = line.styles[first..]
            .iter()
            .map(|(from, s)| (from.saturating_sub(at), *s))
            .collect();
        if line.written > at {
            let _ = write!(
                self.out,
                "\x1b[{}D\x1b[K",
                columns(&word[..line.written - at])
            );
            line.written = at;
        }
        self.feed();
        self.begin_row();
        let shift = self.line.text.len();
        self.line.text.push_str(&word);
        self.line.column += columns(&word);
        self.line
            .styles
            .extend(styles.into_iter().map(|(from, s)| (from + shift, s)));
        self.feeds = 0;
    }

    /// Sends the part of the current row that was not yet written to the terminal.
    fn flush(&mut self) {
        let line = &mut self.line;
        if line.written == line.text.len() {
            return;
        }
        let ends = line
            .styles
            .iter()
            .skip(1)
            .map(|s| s.0)
            .chain([line.text.len()]);
        for ((from, style), end) in line.styles.iter().zip(ends) {
            let text = &line.text[line.written.clamp(*from, end)..end];
            if !text.is_empty() {
                paint(&mut self.out, self.colour, *style, text);
            }
        }
        line.written = line.text.len();
    }
}

/// Writes `text`, in `style` if colours are enabled.
pub(crate) fn paint(out: &mut Vec<u8>, colour: bool, style: Style, text: &str) {
    let _ = if colour {
        write!(out, "{style}{text}{style:#}")
    } else {
        write!(out, "{text}")
    };
}
