//! Draws blocks of Markdown. Without colours the marks of headings, code, emphasis and
//! strikethrough are drawn as characters, since nothing else shows their meaning.

use super::pen::Pen;
use super::table::{TableCell, TerminalTable};
use crate::markdown::{BlockEvent, Fence};
use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd};

/// The indentation of fenced code that is drawn without its fence.
pub(crate) const INDENT: &str = "  ";

/// The style of code in text of style `base`.
pub(crate) fn code_style(base: Style) -> Style {
    base.fg_color(Some(AnsiColor::Cyan.into()))
}

/// Draws blocks one after the other from their events.
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
    /// The fence of the current code, where fences are shown.
    fence: Option<Fence>,
    /// Whether an item has begun and nothing has begun or ended since: its first paragraph goes
    /// into the row of the marker.
    after_marker: bool,
    /// Whether the first block continues one on the page and none of its text has come yet, and
    /// whether no other block has begun a row since that text came.
    goes_on: bool,
    in_lead: bool,
    /// Whether the lead has a line end: only then does a table continue the one on the page.
    has_header: bool,
    table: Option<TerminalTable>,
    /// The addresses of the open links, each with the text drawn for it.
    links: Vec<(String, String)>,
}

impl<'p> Renderer<'p> {
    /// A renderer of `text`, of which the first `at` bytes are on the page already. With a `lead`
    /// the first block continues one that is on the page.
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

    /// Drops the prefixes of all containers, because they end with the first block.
    pub(super) fn leave_containers(&mut self) {
        self.pen.prefix.clear();
    }

    /// Draws `items`, the events of a unit or their beginning.
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

    /// Begins a block at `start` in a row of its own, after a blank row where the text has an empty
    /// line before the block.
    fn row(&mut self, start: usize) {
        if std::mem::take(&mut self.in_lead) {
            // The block that was cut may be nested deeper than the next one in the same container.
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
                        // As it was written: a fence that opens while its text streams is drawn
                        // with these words too.
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

    /// Adds what a row of a table has after the last column, as one cell: the parser leaves it out,
    /// and its text would be lost.
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
    /// container does not count for its first block again.
    fn pass_marker(&mut self, start: usize) {
        let spaces = self.text[start..]
            .bytes()
            .take_while(|b| *b == b' ')
            .count();
        self.at = (start + spaces + 1).min(self.text.len());
    }

    /// Begins a container whose rows begin with `prefix`.
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

/// Draws the row above code: the words after the opening fence, where there are any.
pub(crate) fn code_label(pen: &mut Pen, info: &str, base: Style) {
    if !info.is_empty() {
        pen.put(info, base.dimmed());
        pen.end_row();
    }
}
