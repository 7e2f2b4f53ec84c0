//! Converts a model's Markdown to HTML. Blocks become elements, and HTML in the Markdown is shown
//! as text. Links cannot be clicked and images are not loaded: their addresses are shown as text,
//! so that a reader can copy them.

use super::html_writer::HtmlWriter;
use crate::markdown::Blocks;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd};

/// Maximum nesting depth of containers; deeper ones are flattened.
const DEEPEST: usize = 24;

/// An open link or image.
struct OpenLink<'e> {
    /// The address; empty if the text is the address.
    address: &'e str,
    /// The text so far.
    text: String,
}

/// Converts a passage of Markdown to HTML.
pub(super) fn prose(out: &mut Vec<u8>, passage: &str) {
    let mut form = HtmlProse {
        out: HtmlWriter(out),
        is_open: Vec::new(),
        alignments: Vec::new(),
        column: 0,
        in_head: false,
    };
    let blocks = Blocks::parse(passage, "");
    let mut links: Vec<OpenLink<'_>> = Vec::new();
    // The end of the part of the current table row that was written, in bytes.
    let mut written = 0;
    for (event, range) in &blocks.items {
        match event {
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                for link in &mut links {
                    link.text.push_str(text);
                }
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => written = range.start,
            // The parser drops the part of a row after the last column, so its text is written
            // here.
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => {
                let rest = passage.get(written..range.end).unwrap_or_default();
                let rest = rest.trim_matches([' ', '\t', '\n', '|']);
                if !rest.is_empty() {
                    form.text(&format!(" | {rest}"));
                }
            }
            _ => {}
        }
        match event {
            Event::Start(Tag::Link {
                dest_url,
                link_type,
                ..
            }) => {
                let is_shown = matches!(link_type, LinkType::Autolink | LinkType::Email);
                links.push(OpenLink {
                    address: if is_shown { "" } else { dest_url },
                    text: String::new(),
                });
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                form.text("[image: ");
                links.push(OpenLink {
                    address: dest_url,
                    text: String::new(),
                });
            }
            Event::End(tag @ (TagEnd::Link | TagEnd::Image)) => {
                if *tag == TagEnd::Image {
                    form.text("]");
                }
                let link = links.pop();
                if let Some(OpenLink { address, text }) = link
                    && !address.is_empty()
                    && address != text
                {
                    form.address(address);
                    for link in &mut links {
                        link.text.push_str(address);
                    }
                }
            }
            Event::Start(tag) => form.start(tag, &passage[range.start..]),
            Event::End(tag) => form.end(*tag),
            Event::Text(text) | Event::InlineHtml(text) => form.text(text),
            Event::Html(text) => form.html(text),
            Event::Code(text) => form.code(text),
            Event::SoftBreak => form.soft_break(),
            Event::HardBreak => form.hard_break(),
            Event::Rule => form.rule(),
            Event::TaskListMarker(_)
            | Event::FootnoteReference(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_) => form.text(&passage[range.clone()]),
        }
        if !matches!(event, Event::Start(_)) {
            written = written.max(range.end);
        }
    }
}

struct HtmlProse<'o> {
    out: HtmlWriter<'o>,
    /// For each open container, whether it has an element.
    is_open: Vec<bool>,
    alignments: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

impl HtmlProse<'_> {
    /// Opens a container. A container that must hold an item leaves one level of nesting for it.
    fn open(&mut self, markup: &'static str) -> bool {
        let room = if markup == "<li>" { 0 } else { 1 };
        let opens = self.is_open.len() + room < DEEPEST;
        self.is_open.push(opens);
        self.out.markup(if opens { markup } else { "\n" });
        opens
    }

    fn close(&mut self, markup: &'static str) {
        if self.is_open.pop() == Some(true) {
            self.out.markup(markup);
        }
    }

    /// Ends the open cell. A cell stays open until the next cell begins or its row ends, since it
    /// may get more text.
    fn end_cell(&mut self) {
        if self.column > 0 {
            self.out
                .markup(if self.in_head { "</th>" } else { "</td>" });
        }
    }

    fn text(&mut self, text: &str) {
        self.out.text(text);
    }

    fn html(&mut self, text: &str) {
        self.out.text(text);
    }

    fn code(&mut self, text: &str) {
        self.out.markup("<code>");
        self.out.text(text);
        self.out.markup("</code>");
    }

    // Line feeds are kept, since the style sheet preserves them.
    fn soft_break(&mut self) {
        self.out.text("\n");
    }

    fn hard_break(&mut self) {
        self.out.markup("<br>");
    }

    fn rule(&mut self) {
        self.out.markup("<hr>");
    }

    fn start(&mut self, tag: &Tag<'_>, _: &str) {
        match tag {
            Tag::Paragraph => drop(self.out.markup("<p>")),
            Tag::HtmlBlock => drop(self.out.markup("<p>")),
            Tag::Heading { level, .. } => {
                // A model's headings are below the turn's heading, whatever their level.
                self.out.markup(match level {
                    HeadingLevel::H1 => "<h3 class=\"heading\" data-level=\"1\">",
                    HeadingLevel::H2 => "<h3 class=\"heading\" data-level=\"2\">",
                    _ => "<h3 class=\"heading\" data-level=\"3\">",
                });
            }
            Tag::BlockQuote(_) => drop(self.open("<blockquote>")),
            Tag::CodeBlock(kind) => {
                self.out.markup("<pre>");
                if let CodeBlockKind::Fenced(info) = kind
                    && !info.is_empty()
                {
                    self.out.markup("<span class=\"language\">");
                    self.text(info);
                    self.out.markup("</span>");
                }
                self.out.markup("<code>");
            }
            Tag::List(None) => drop(self.open("<ul>")),
            Tag::List(Some(1)) => drop(self.open("<ol>")),
            Tag::List(Some(first)) => {
                let first = usize::try_from(*first).unwrap_or_default();
                let opens = self.open("<ol start=\"");
                if opens {
                    self.out.number(first).markup("\">");
                }
            }
            // An item whose list has no element gets none either.
            Tag::Item => drop(self.open("<li>")),
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                self.out.markup("<table>");
            }
            Tag::TableHead => {
                (self.in_head, self.column) = (true, 0);
                self.out.markup("<thead><tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.markup("<tr>");
            }
            Tag::TableCell => {
                self.end_cell();
                let side = self.alignments.get(self.column);
                self.column += 1;
                self.out.markup(match (self.in_head, side) {
                    (true, Some(Alignment::Right)) => "<th class=\"right\">",
                    (true, Some(Alignment::Center)) => "<th class=\"center\">",
                    (true, _) => "<th>",
                    (false, Some(Alignment::Right)) => "<td class=\"right\">",
                    (false, Some(Alignment::Center)) => "<td class=\"center\">",
                    (false, _) => "<td>",
                });
            }
            Tag::Emphasis => drop(self.out.markup("<em>")),
            Tag::Strong => drop(self.out.markup("<strong>")),
            Tag::Strikethrough => drop(self.out.markup("<del>")),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => drop(self.out.markup("</p>")),
            TagEnd::Heading(_) => drop(self.out.markup("</h3>")),
            TagEnd::BlockQuote(_) => self.close("</blockquote>"),
            TagEnd::CodeBlock => drop(self.out.markup("</code></pre>")),
            TagEnd::List(true) => self.close("</ol>"),
            TagEnd::List(false) => self.close("</ul>"),
            TagEnd::Item => self.close("</li>"),
            TagEnd::TableHead => {
                self.end_cell();
                self.in_head = false;
                self.out.markup("</tr></thead><tbody>");
            }
            TagEnd::TableRow => {
                self.end_cell();
                self.out.markup("</tr>");
            }
            TagEnd::Table => drop(self.out.markup("</tbody></table>")),
            TagEnd::Emphasis => drop(self.out.markup("</em>")),
            TagEnd::Strong => drop(self.out.markup("</strong>")),
            TagEnd::Strikethrough => drop(self.out.markup("</del>")),
            _ => {}
        }
    }

    fn address(&mut self, address: &str) {
        self.out.markup(" <span class=\"address\">(");
        self.out.text(address);
        self.out.markup(")</span>");
    }
}
