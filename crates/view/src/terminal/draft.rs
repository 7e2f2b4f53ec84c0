//! Draws Markdown while it streams: an unfinished block is shown as plain text, and is redrawn as
//! Markdown when it ends.
//!
//! A block can be redrawn only while its beginning is on the screen. Before the beginning scrolls
//! away, the block is redrawn up to a word after which it can be cut; a block that cannot be cut
//! stays plain. Fenced code is drawn line by line.

use super::pen::{Mark, Pen};
use super::render::{INDENT, Renderer, code_label, code_style};
use crate::markdown::{Blocks, Fence, lead};
use anstyle::Style;

/// Maximum number of bytes parsed at once, since each delta parses the unfinished block again. A
/// longer block stays plain.
const WINDOW: usize = 8 * 1024;

/// The visible form of a carriage return.
const RETURN: &str = "\\x0d";

/// White space as CommonMark defines it; other Unicode white space is text.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

fn is_blank(text: &str) -> bool {
    text.trim_matches(BLANKS).is_empty()
}

/// The unfinished part of a text.
#[derive(Debug, Default)]
pub(crate) struct TerminalDraft {
    source: String,
    /// Whether a carriage return follows `source`: if a line feed comes next, both are one line
    /// end.
    has_return: bool,
    /// The position on the page where `source` begins, and the number of its bytes that are shown.
    start: Mark,
    drawn: usize,
    /// The number of bytes parsed without finding a finished block.
    parsed: usize,
    /// The text before `source` in the parser's input, if `source` continues a block whose
    /// beginning is drawn; see [`lead`].
    lead: String,
    /// The fence of the code block that `source` belongs to, and whether its current line began
    /// before `source`.
    fence: Option<Fence>,
    in_line: bool,
    base: Style,
    is_open: bool,
}

impl TerminalDraft {
    /// Begins a new text.
    pub(super) fn reset(&mut self, base: Style) {
        *self = TerminalDraft {
            base,
            ..TerminalDraft::default()
        };
    }

    /// Shows the next piece of the text.
    pub(super) fn push(&mut self, pen: &mut Pen, text: &str) {
        if self.drawn == 0 {
            self.start = pen.mark();
        }
        self.is_open = true;
        self.add(text);
        while self.advances(|draft| {
            if draft.fence.is_some() {
                draft.code(pen)
            } else {
                draft.blocks(pen, false)
            }
        }) {}
        self.rest(pen);
    }

    /// Appends `text` with its line ends as `\n`. Other carriage returns are made visible: the
    /// parser would take them as line ends, and a terminal would overwrite the line.
    fn add(&mut self, text: &str) {
        if !self.has_return && !text.contains('\r') {
            return self.source.push_str(text);
        }
        for c in text.chars() {
            if std::mem::take(&mut self.has_return) && c != '\n' {
                self.source.push_str(RETURN);
            }
            if c == '\r' {
                self.has_return = true;
            } else {
                self.source.push(c);
            }
        }
    }

    /// Draws the whole text, whose last block is complete. A fenced code block may continue in the
    /// next text.
    pub(super) fn finish(&mut self, pen: &mut Pen) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        if std::mem::take(&mut self.has_return) {
            self.source.push_str(RETURN);
            self.code(pen);
        }
        if let Some(fence) = &self.fence {
            if !self.in_line && fence.is_closed_by(&self.source) {
                self.close_code(pen, self.source.len());
            }
            self.source.clear();
            (self.drawn, self.in_line) = (0, false);
        } else {
            while self.advances(|draft| draft.blocks(pen, true)) {}
            pen.put(self.source[self.drawn..].trim_matches(BLANKS), self.base);
            self.source.clear();
            (self.drawn, self.parsed) = (0, 0);
            self.lead.clear();
        }
        pen.prefix.clear();
        pen.end_row();
    }

    /// Runs a step; returns whether another step may follow. A step that changes nothing is the
    /// last.
    fn advances(&mut self, step: impl FnOnce(&mut Self) -> bool) -> bool {
        let state = |draft: &Self| (draft.source.len(), draft.lead.len(), draft.fence.is_some());
        let before = state(self);
        step(self) && state(self) != before
    }

    /// Keeps the unfinished block on the screen when `rows` are written below it, or leaves the
    /// block as it is.
    pub(super) fn make_room(&mut self, pen: &mut Pen, rows: usize) {
        if self.drawn == 0 || pen.reaches(&self.start, rows) {
            return;
        }
        if self.advance(pen) {
            self.rest(pen);
        }
        if !pen.reaches(&self.start, rows) {
            self.keep(pen);
        }
    }

    /// Leaves the shown part of the unfinished block as it is.
    pub(super) fn keep(&mut self, pen: &Pen) {
        self.in_line |= self.fence.is_some() && self.drawn > 0;
        self.go_on(0, pen);
        self.take(self.drawn, pen);
    }

    /// The block that begins at `start` in `source` continues after the drawn part.
    fn go_on(&mut self, start: usize, pen: &Pen) {
        if self.fence.is_some() || pen.is_at_start() {
            self.lead.clear();
        } else if self.lead.is_empty() || self.lead.contains('\n') || start > 0 {
            // After the drawn part of a table that stays plain, the rest of a row is text.
            self.lead = lead(&self.source[start..]);
        }
    }

    /// Removes the first `bytes` of the source, which are final on the page.
    fn take(&mut self, bytes: usize, pen: &Pen) {
        self.source.drain(..bytes);
        (self.drawn, self.parsed) = (0, 0);
        self.start = pen.mark();
    }

    /// Draws the finished blocks, or all blocks if the text is `whole`. Returns whether more may
    /// follow.
    fn blocks(&mut self, pen: &mut Pen, whole: bool) -> bool {
        if self.lead.is_empty() && self.drawn == 0 {
            self.empty_lines(pen);
        }
        let lines = if whole {
            self.source.len()
        } else {
            self.source.rfind('\n').map_or(0, |at| at + 1)
        };
        if lines == 0 || lines == self.parsed && !whole {
            return false;
        }
        let window = if lines <= WINDOW {
            lines
        } else {
            boundary(&self.source, WINDOW)
        };
        let text = &self.source[..window];
        let blocks = Blocks::parse(text, &self.lead);
        let finished = match blocks.units.len() {
            all if whole && window == lines => all,
            all if window < lines => all.saturating_sub(1),
            _ => blocks.finished(text),
        };
        let fence = blocks
            .fence(text, finished)
            .filter(|_| text.ends_with('\n'));
        if finished == 0 && fence.is_none() {
            self.parsed = lines;
            if is_blank(text) {
                return false;
            }
            if whole || window < lines {
                pen.put(&self.source[self.drawn.min(window)..window], self.base);
                self.go_on(0, pen);
                self.take(window.max(self.drawn), pen);
                return true;
            }
            return false;
        }
        let end = self.draw(pen, &blocks, finished, window);
        if finished > 0 {
            self.lead.clear();
        }
        let Some(line) = fence.filter(|line| *line >= end) else {
            self.take(end, pen);
            return true;
        };
        if self.source[end..line].contains('\n') {
            pen.blank_row();
        }
        let opening = self.source[line..]
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned();
        self.take(
            line + self.source[line..].find('\n').map_or(0, |at| at + 1),
            pen,
        );
        if let Some((fence, info)) = Fence::open(&opening) {
            self.open_code(pen, fence, &opening, info);
        }
        true
    }

    /// Drops all leading empty lines except one.
    fn empty_lines(&mut self, pen: &mut Pen) {
        let mut end = 0;
        while let Some(line) = self.source[end..].split_inclusive('\n').next()
            && line.ends_with('\n')
            && is_blank(line)
        {
            end += line.len();
            if pen.is_at_start() && pen.feeds < 2 {
                pen.feed();
            }
        }
        if end > 0 {
            self.take(end, pen);
        }
    }

    /// Draws the first `count` units in place of their plain text. Returns where their last line
    /// ends.
    fn draw(&mut self, pen: &mut Pen, blocks: &Blocks, count: usize, window: usize) -> usize {
        let text = &self.source[..window];
        let (mut first, mut at) = (0, 0);
        if self.drawn > 0 {
            let plain = blocks
                .units
                .first()
                .filter(|u| count > 0 && u.bytes.end >= self.drawn);
            let plain = plain.filter(|u| blocks.is_plain(u, text) || !pen.reaches(&self.start, 0));
            if let Some(unit) = plain {
                // The shown part is correct as it is: only the rest is missing.
                pen.put(
                    text[self.drawn..unit.bytes.end].trim_end_matches('\n'),
                    self.base,
                );
                pen.end_row();
                pen.prefix.clear();
                (first, at) = (1, unit.bytes.end);
            } else if pen.reaches(&self.start, 0) {
                pen.return_to(&self.start);
            } else {
                pen.end_row();
            }
        }
        let lead = if first == 0 { &*self.lead } else { "" };
        let mut renderer = Renderer::new(pen, text, at, self.base, lead);
        for (n, unit) in blocks.units[..count].iter().enumerate().skip(first) {
            renderer.draw(&blocks.items[unit.items.clone()]);
            if n == 0 {
                renderer.leave_containers();
            }
        }
        // Empty lines at the end of the last unit stay in the source, since they separate it from
        // the next block. If only a table header in the lead remains, it has no line here, and the
        // whole source is another block.
        let Some(unit) = blocks.units[..count]
            .last()
            .filter(|unit| !unit.bytes.is_empty())
        else {
            return 0;
        };
        let end = unit.bytes.start + text[unit.bytes.clone()].trim_end_matches(BLANKS).len();
        text[end..].find('\n').map_or(window, |at| end + at + 1)
    }

    /// Draws the unfinished block up to a position where it can be cut. Returns whether there is
    /// one.
    fn advance(&mut self, pen: &mut Pen) -> bool {
        if self.fence.is_some() || !pen.reaches(&self.start, 0) {
            return false;
        }
        let all = boundary(&self.source, WINDOW.min(self.source.len()));
        let lines = self.source[..all].rfind('\n').map_or(0, |at| at + 1);
        // The last line is incomplete and may begin another block that cannot be drawn yet.
        self.cut(pen, all)
            || (0 < lines && lines < all && self.cut(pen, lines))
            || self.cut_table(pen, lines)
    }

    /// Draws the first `window` bytes up to a word after which the text can be cut.
    fn cut(&mut self, pen: &mut Pen, window: usize) -> bool {
        let text = &self.source[..window];
        let mut blocks = Blocks::parse(text, &self.lead);
        let Some((last, cut)) = blocks.cut(text) else {
            return false;
        };
        let start = blocks.units.last().map_or(0, |unit| unit.bytes.start);
        if self.drawn > 0 {
            pen.return_to(&self.start);
        }
        blocks.items.truncate(last + 1);
        if let Some((event, range)) = blocks.items.last_mut() {
            *event = pulldown_cmark::Event::Text(text[range.start..cut].to_owned().into());
            range.end = cut;
        }
        Renderer::new(pen, text, 0, self.base, &self.lead).draw(&blocks.items);
        pen.put(" ", self.base);
        self.go_on(start, pen);
        self.take(cut + 1, pen);
        true
    }

    /// Draws the complete rows of a table, the first `window` bytes.
    fn cut_table(&mut self, pen: &mut Pen, window: usize) -> bool {
        let text = &self.source[..window];
        let blocks = Blocks::parse(text, &self.lead);
        let is_known = !self.lead.is_empty() && blocks.units.len() == 1 && window > 0;
        let header = if is_known && self.lead.contains('\n') {
            Some(&*self.lead)
        } else {
            blocks.header(text)
        };
        let Some(header) = header.map(str::to_owned) else {
            return false;
        };
        self.draw(pen, &blocks, blocks.units.len(), window);
        self.take(window, pen);
        self.lead = header;
        true
    }

    /// Shows the part of the unfinished block that is not yet on the page.
    fn rest(&mut self, pen: &mut Pen) {
        // A few spaces are invisible: if nothing else follows in their line, the line is empty.
        if self.lead.is_empty()
            && self.drawn == 0
            && self.source.len() < pen.width
            && is_blank(&self.source)
        {
            return;
        }
        let margin = (pen.rows / 2).min(4);
        while self.drawn < self.source.len() && self.fence.is_none() {
            if self.drawn > 0 && !pen.reaches(&self.start, margin) && !self.advance(pen) {
                self.keep(pen);
            }
            let rest = &self.source[self.drawn..];
            let most = rest
                .char_indices()
                .nth(pen.width / 4 + 1)
                .map_or(rest.len(), |(at, _)| at);
            let end = rest[..most].find('\n').map_or(most, |at| at + 1);
            pen.put(&rest[..end], self.base);
            self.drawn += end;
        }
    }

    fn open_code(&mut self, pen: &mut Pen, fence: Fence, line: &str, info: &str) {
        if pen.colour {
            pen.prefix = vec![(INDENT.to_owned(), self.base)];
            code_label(pen, info, self.base);
        } else {
            pen.put_code(line.trim_start(), self.base);
        }
        pen.prefix.clear();
        pen.end_row();
        self.fence = Some(fence);
        self.in_line = false;
        self.start = pen.mark();
    }

    /// Shows fenced code. Returns whether it has ended.
    fn code(&mut self, pen: &mut Pen) -> bool {
        let Some(fence) = self.fence.clone() else {
            return false;
        };
        if pen.colour {
            pen.prefix = vec![(INDENT.to_owned(), self.base)];
        }
        let mut from = 0;
        while let Some(length) = self.source[from..].find('\n') {
            let line = &self.source[from..from + length];
            if !self.in_line && fence.is_closed_by(line) {
                let line = line.to_owned();
                self.source.drain(..from);
                self.close_code(pen, line.len() + 1);
                return true;
            }
            self.line(pen, &fence, from, from + length);
            pen.feed();
            from += length + 1;
            (self.drawn, self.in_line) = (0, false);
            self.start = pen.mark();
        }
        self.source.drain(..from);
        self.line(pen, &fence, 0, self.source.len());
        self.drawn = self.source.len();
        if self.in_line || !fence.may_be_closed_by(&self.source) {
            self.in_line |= self.drawn > 0;
            self.source.clear();
            self.drawn = 0;
        }
        pen.prefix.clear();
        false
    }

    /// Shows the part of a line of code, complete or not, that is not yet on the page.
    fn line(&self, pen: &mut Pen, fence: &Fence, from: usize, to: usize) {
        let line = &self.source[from..to];
        let indent = if self.in_line {
            0
        } else {
            line.len() - fence.code(line).len()
        };
        let code = &line[self.drawn.max(indent).min(line.len())..];
        pen.put_code(code.trim_end_matches('\r'), code_style(self.base));
    }

    /// Closes the code block; the source begins with the closing line, `bytes` long.
    fn close_code(&mut self, pen: &mut Pen, bytes: usize) {
        if self.drawn > 0 && pen.reaches(&self.start, 0) {
            pen.return_to(&self.start);
        }
        pen.prefix.clear();
        if !pen.colour {
            let line = self.source[..bytes].trim().to_owned();
            pen.put_code(&line, self.base);
        }
        pen.end_row();
        self.fence = None;
        self.take(bytes, pen);
    }
}

/// Returns the end of the last line of `text` within `most` bytes, or that of the last character if
/// no line ends there.
fn boundary(text: &str, most: usize) -> usize {
    if most >= text.len() {
        return text.len();
    }
    let most = event::cut(text, most).len();
    text[..most].rfind('\n').map_or(most, |at| at + 1)
}
