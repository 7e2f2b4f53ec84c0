//! The Markdown of a model in a report: one walk over its events, which each form writes in its own
//! markup. What a reader has to see in every form is decided here: the address of a link, and what a
//! table has behind its last column.

use crate::markdown::Blocks;
use pulldown_cmark::{Event, LinkType, Tag, TagEnd};

/// Writes the parts of a passage in one form.
pub(super) trait ProseForm {
    /// A piece of text.
    fn text(&mut self, text: &str);
    /// HTML that is a block of its own, which is text here.
    fn html(&mut self, text: &str);
    /// Code within a line.
    fn code(&mut self, text: &str);
    fn soft_break(&mut self);
    fn hard_break(&mut self);
    fn rule(&mut self);
    /// An element begins, but for links and images, which are text; `source` is the passage from it
    /// on.
    fn start(&mut self, tag: &Tag<'_>, source: &str);
    /// An element ends, but for links and images.
    fn end(&mut self, tag: TagEnd);
    /// The address of a link or an image whose text does not show it.
    fn address(&mut self, address: &str);
}

/// A link or an image that is open.
struct OpenLink<'e> {
    /// Empty where the text is the address.
    address: &'e str,
    /// Its text so far.
    text: String,
}

/// Writes one passage of Markdown.
pub(super) fn walk(passage: &str, form: &mut impl ProseForm) {
    let blocks = Blocks::parse(passage, "");
    let mut links: Vec<OpenLink<'_>> = Vec::new();
    // The end of what is written of a row of a table.
    let mut written = 0;
    for (event, range) in &blocks.items {
        match event {
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                for link in &mut links {
                    link.text.push_str(text);
                }
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => written = range.start,
            // The parser leaves out what a row has behind the last column, and its text would be
            // lost.
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
