//! Draws Markdown blocks. Without colours, the markers of headings, code, emphasis and
//! strikethrough are drawn as characters, since nothing else would show their meaning.

use super::pen::Pen;
use super::table::{TableCell, TerminalTable};
use crate::markdown::{BlockEvent, Fence};
use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd};

/// The indentation of fenced code whose fence is not drawn.
pub(crate) const INDENT: &str = "  ";

/// Returns the style of code within text of the style `base`.
pub(crate) fn code_style(base: Style) -> Style {
    base.fg_color(Some(AnsiColor::Cyan.into()))
}

/// Draws blocks from their events, one after the other.
pub(crate) struct Renderer<'p> {
    pen: &'p mut Pen,
    /// The text that the ranges of the events point into.
    text: &'p str,
    styles: Vec<Style>,
    /// The length of the pen's prefix before each open container.
    prefixes: Vec<usize>,
    /// The end of the drawn part of the text.
    at: usize,
    in_code: bool,
    /// The fence of the current code block, if fences are shown.
    fence: Option<Fence>,
    /// Whether a list item has begun and nothing has begun or ended since: its first paragraph
    /// continues the row of the marker.
    after_marker: bool,
    /// `goes_on`: whether the first block continues a block on the page and has no text so far.
    /// `in_lead`: whether that text has come and no other block has begun a row since.
    goes_on: bool,
    in_lead: bool,
    /// Whether the lead contains a line end: only then does a table continue the table on the page.
    has_header: bool,
    table: Option<TerminalTable>,
    /// The addresses of the open links, each with its drawn text.
    links: Vec<(String, String)>,
}

impl<'p> Renderer<'p> {
    /// Creates a renderer of `text`, of which the first `at` bytes are already on the page. With a
    /// `lead`, the first block continues a block on the page.
    pub(super) fn new(pen: &'p mut Pen, text: &'p str, at: usize, base: Style, lead: &str) -> Self {
        Renderer {
            pen,
            text,
            styles: vec![base],
            prefixes: Vec::new(),
            at,
            in_code: false,
            fence: None,
            after_marker: false,
            goes_on: !lead.is_empty(),
            has_header: lead.contains('\n'),
            in_lead: false,
            table: None,
            links: Vec::new(),
        }
    }

    /// Drops the prefixes of all containers, since they end with the first block.
    pub(super) fn leave_containers(&mut self) {
        self.pen.prefix.clear();
    }

    /// Draws `items`: all events of a unit, or the first ones.
    pub(super) fn draw(&mut self, items: &[BlockEvent]) {
        for (event, range) in items {
            if matches!(event, Event::Text(_)) && std::mem::take(&mut self.goes_on) {
                self.in_lead = true;
            }
            match event {
                Event::Start(Tag::Item | Tag::BlockQuote(_) | Tag::Paragraph) if self.goes_on => {}
                Event::Start(tag) => self.start(tag, range.start),
                Event::End(tag) => self.end(*tag, range.end),
                Event::Text(text) if self.in_code => self.code(text),
                Event::Text(text) | Event::InlineHtml(text) => self.put(text, self.style()),
                Event::Html(text) => self.code(text),
                Event::Code(text) if self.pen.colour => self.put(text, code_style(self.style())),
                Event::Code(_) => self.put(&self.text[range.clone()], self.style()),
                Event::SoftBreak | Event::HardBreak => self.pen.feed(),
                Event::Rule => {
                    self.row(range.start);
                    self.pen
                        .put_code(&"─".repeat(self.pen.room()), self.style().dimmed());
                    self.pen.end_row();
                }
                Event::TaskListMarker(_)
                | Event::FootnoteReference(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_) => self.put(&self.text[range.clone()], self.style()),
            }
            if !matches!(event, Event::Start(_)) {
                self.at = self.at.max(range.end);
            }
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style, mark: &str) {
        self.put_mark(mark);
        self.styles.push(style);
    }

    fn pop_style(&mut self, mark: &str) {
        self.styles.pop();
        self.put_mark(mark);
    }

    fn put_mark(&mut self, mark: &str) {
        if !self.pen.colour {
            self.put(mark, self.style());
        }
    }

    fn put(&mut self, text: &str, style: Style) {
        if let Some((_, drawn)) = self.links.last_mut() {
            drawn.push_str(text);
        }
        match self.table.as_mut().and_then(|table| table.rows.last_mut()) {
            Some(row) => {
                let cell = row.last_mut();
                cell.into_iter()
                    .for_each(|cell: &mut TableCell| cell.push((text.to_owned(), style)));
            }
            None => self.pen.put(text, style),
        }
    }

    fn code(&mut self, text: &str) {
        self.pen.put_code(text, self.style());
    }

    /// Begins a block at `start` in a new row, after a blank row if the text has an empty line
    /// before the block.
    fn row(&mut self, start: usize) {
        if std::mem::take(&mut self.in_lead) {
            // The block that was cut may be nested more deeply than the next block in the same
            // container.
            self.pen.end_row();
            self.pen.prefix.truncate(1);
        }
        let before = self.text[..self.at]
            .trim_end_matches([' ', '\t', '\n'])
            .len();
        let between = self.text.get(before..start).unwrap_or_default();
        if self.at > 0 && between.matches('\n').count() > 1 {
            self.pen.blank_row();
        } else {
            self.pen.end_row();
        }
    }

    fn start(&mut self, tag: &Tag<'_>, start: usize) {
        let base = self.style();
        let after_marker = std::mem::take(&mut self.after_marker);
        match tag {
            Tag::Paragraph if self.at == 0 || after_marker => {}
            Tag::Paragraph | Tag::HtmlBlock => self.row(start),
            Tag::Heading { level, .. } => {
                self.row(start);
                let marks = format!("{} ", "#".repeat(*level as usize));
                let style = if *level == HeadingLevel::H1 {
                    base.underline()
                } else {
                    base
                };
                self.push_style(style.bold(), &marks);
            }
            Tag::BlockQuote(_) => {
                self.row(start);
                let (bar, style) = if self.pen.colour {
                    ("│ ", base.dimmed())
                } else {
                    ("> ", base)
                };
                self.open(bar, style);
                self.pass_marker(start);
            }
            Tag::Item => {
                self.row(start);
                let marker = self.text[start..]
                    .trim_start()
                    .split([' ', '\t', '\n'])
                    .next()
                    .unwrap_or_default();
                let is_number = marker.starts_with(|c: char| c.is_ascii_digit());
                let marker = if is_number || !self.pen.colour {
                    marker
                } else {
                    "•"
                };
                self.pen.put(&format!("{marker} "), base);
                self.open(&" ".repeat(marker.chars().count() + 1), base);
                self.after_marker = true;
                self.pass_marker(start);
            }
            Tag::CodeBlock(kind) => {
                self.row(start);
                match kind {
                    CodeBlockKind::Fenced(_) if !self.pen.colour => {
                        let line = self.text[start..].lines().next().unwrap_or_default();
                        self.fence = Fence::open(line).map(|(fence, _)| fence);
                        self.open("", base);
                        self.pen.put_code(line, base);
                        self.pen.end_row();
                    }
                    CodeBlockKind::Fenced(_) => {
                        self.open(INDENT, base);
                        // As it was written: a fence that opens while its text streams is also
                        // drawn with these words.
                        let line = self.text[start..].lines().next().unwrap_or_default();
                        code_label(
                            self.pen,
                            Fence::open(line).map_or("", |(_, info)| info),
                            base,
                        );
                    }
                    CodeBlockKind::Indented => self.open("    ", base),
                }
                self.in_code = true;
                self.styles.push(code_style(base));
            }
            Tag::Table(alignments) => {
                self.row(start);
                let goes_on = std::mem::take(&mut self.goes_on) && self.has_header;
                self.table = Some(TerminalTable {
                    alignments: alignments.clone(),
                    rows: Vec::new(),
                    goes_on,
                });
            }
            Tag::TableHead | Tag::TableRow => {
                self.at = start;
                self.table
                    .iter_mut()
                    .for_each(|table| table.rows.push(Vec::new()));
            }
            Tag::TableCell => {
                self.table
                    .iter_mut()
                    .filter_map(|t| t.rows.last_mut())
                    .for_each(|row| row.push(Vec::new()));
            }
            Tag::Emphasis => self.push_style(base.italic(), "*"),
            Tag::Strong => self.push_style(base.bold(), "**"),
            Tag::Strikethrough => self.push_style(base.strikethrough(), "~~"),
            Tag::Link {
                dest_url,
                link_type,
                ..
            } => {
                let shown = matches!(link_type, LinkType::Autolink | LinkType::Email);
                self.links.push((
                    if shown {
                        String::new()
                    } else {
                        dest_url.to_string()
                    },
                    String::new(),
                ));
                self.styles.push(base.underline());
            }
            Tag::Image { dest_url, .. } => {
                self.put("[image: ", base);
                self.links.push((dest_url.to_string(), String::new()));
                self.styles.push(base);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, end: usize) {
        self.after_marker = false;
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.pen.end_row(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.pen.end_row();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.pen.end_row();
                self.close();
            }
            TagEnd::CodeBlock => {
                self.pen.end_row();
                self.in_code = false;
                self.styles.pop();
                self.close();
                let last = self.text[..end]
                    .trim_end()
                    .lines()
                    .next_back()
                    .unwrap_or_default();
                let last = last.trim_start_matches([' ', '>']);
                if self
                    .fence
                    .take()
                    .is_some_and(|fence| fence.is_closed_by(last))
                {
                    self.pen.put_code(last, self.style());
                    self.pen.end_row();
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => self.cells_without_a_header(end),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    table.draw(self.pen, self.style());
                }
            }
            TagEnd::Emphasis => self.pop_style("*"),
            TagEnd::Strong => self.pop_style("**"),
            TagEnd::Strikethrough => self.pop_style("~~"),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if tag == TagEnd::Image {
                    self.put("]", self.style());
                }
                if let Some((address, drawn)) = self.links.pop()
                    && !address.is_empty()
                    && address != drawn
                {
                    self.put(&format!(" ({address})"), self.style().dimmed());
                }
            }
            _ => {}
        }
    }

    /// Adds the part of a table row after the last column as one cell, since the parser drops its
    /// text.
    fn cells_without_a_header(&mut self, end: usize) {
        let rest = self
            .text
            .get(self.at..end)
            .unwrap_or_default()
            .trim_matches([' ', '\t', '\r', '\n', '|']);
        let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
        if let (Some(row), false) = (row, rest.is_empty()) {
            row.push(vec![(rest.to_owned(), self.styles[0])]);
        }
    }

    /// Moves `at` past the first byte of the marker at `start`, so that an empty line before the
    /// container is not counted again for its first block.
    fn pass_marker(&mut self, start: usize) {
        let spaces = self.text[start..]
            .bytes()
            .take_while(|b| *b == b' ')
            .count();
        self.at = (start + spaces + 1).min(self.text.len());
    }

    /// Opens a container whose rows begin with `prefix`.
    fn open(&mut self, prefix: &str, style: Style) {
        self.prefixes.push(self.pen.prefix.len());
        self.pen.prefix.push((prefix.to_owned(), style));
    }

    fn close(&mut self) {
        if let Some(length) = self.prefixes.pop() {
            self.pen.prefix.truncate(length);
        }
    }
}

/// Draws the row above a code block: the info string of the fence, if there is one.
pub(crate) fn code_label(pen: &mut Pen, info: &str, base: Style) {
    if !info.is_empty() {
        pen.put(info, base.dimmed());
        pen.end_row();
    }
}
