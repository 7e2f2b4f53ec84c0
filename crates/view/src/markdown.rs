//! Splits Markdown into blocks with their positions in the text: which blocks are finished, and
//! where a block can be cut.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use std::borrow::Cow;
use std::ops::Range;

/// Precedes text that continues a paragraph, so that the parser does not parse it as a list or a
/// heading.
const WORD: &str = "x ";

/// Returns the prefix for text that continues the block at the start of `before`, so that the
/// parser parses the text as if the block had not been cut: the marker of an item or a quote, and a
/// word. The prefix for a table is its header.
pub(crate) fn lead(before: &str) -> String {
    let first = before
        .trim_start()
        .split([' ', '\t', '\n'])
        .next()
        .unwrap_or_default();
    let digits = first.trim_end_matches(['.', ')']);
    let is_number = first.len() == digits.len() + 1
        && digits.len() < 10
        && digits.bytes().all(|b| b.is_ascii_digit());
    match first {
        "-" | "*" | "+" => format!("{first} {WORD}"),
        _ if is_number && !digits.is_empty() => format!("{first} {WORD}"),
        _ if first.starts_with('>') => format!("> {WORD}"),
        _ => WORD.to_owned(),
    }
}

/// An event of the parser, with its byte range in the text.
pub(crate) type BlockEvent = (Event<'static>, Range<usize>);

/// A block that is drawn as a unit: a top-level block, or an item of a top-level list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopBlock {
    /// The range of its events in [`Blocks::items`].
    pub items: Range<usize>,
    /// Its byte range in the text.
    pub bytes: Range<usize>,
}

/// A text split into blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub items: Vec<BlockEvent>,
    pub units: Vec<TopBlock>,
}

impl Blocks {
    /// Parses `text`, which continues a block if `lead` is not empty.
    pub(crate) fn parse(text: &str, lead: &str) -> Self {
        let mut source = Cow::Borrowed(text);
        // The parser removes link definitions (`[1]: https://…`) from the text, but models use them
        // as footnotes. With another character instead of the colon they stay in the text.
        let colon = || ('\u{1}'..='\u{8}').find(|c| !text.contains(*c));
        let colon = text.contains("]:").then(colon).flatten();
        if let Some(colon) = colon {
            source = source.replace("]:", &format!("]{colon}")).into();
        }
        if !lead.is_empty() {
            source = format!("{lead}{source}").into();
        }
        let parser = Parser::new_ext(
            &source,
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
        );
        let mut led = lead.ends_with(WORD);
        let items: Vec<BlockEvent> = parser
            .into_offset_iter()
            .map(|(mut event, range)| {
                if led && let Event::Text(text) = &event {
                    event =
                        Event::Text(text.get(WORD.len()..).unwrap_or_default().to_owned().into());
                    led = false;
                }
                if let Some(colon) = colon {
                    event = with_colons(event, colon);
                }
                (
                    event.into_static(),
                    range.start.saturating_sub(lead.len())..range.end.saturating_sub(lead.len()),
                )
            })
            .collect();
        Blocks {
            units: units(&items),
            items,
        }
    }

    /// Returns the number of units that further text cannot change. `text` consists of whole lines.
    pub(crate) fn finished(&self, text: &str) -> usize {
        let Some(last) = self.units.last() else {
            return 0;
        };
        let ends = match &self.items[last.items.start].0 {
            Event::Start(Tag::Heading { .. }) | Event::Rule => true,
            // More lines may belong to the unit, even after an empty line.
            Event::Start(Tag::Item | Tag::CodeBlock(_)) => false,
            _ => text[last.bytes.end..].contains('\n'),
        };
        self.units.len() - usize::from(!ends)
    }

    /// Returns the start of the line that opens unit `n`, if the unit is a fenced code block.
    pub(crate) fn fence(&self, text: &str, n: usize) -> Option<usize> {
        let unit = self.units.get(n)?;
        let fenced = matches!(
            self.items[unit.items.start].0,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))
        );
        fenced.then(|| text[..unit.bytes.start].rfind('\n').map_or(0, |at| at + 1))
    }

    /// Whether the unit has no markup, so that it looks the same drawn and as written.
    pub(crate) fn is_plain(&self, unit: &TopBlock, text: &str) -> bool {
        let items = &self.items[unit.items.clone()];
        let mut at = unit.bytes.start;
        let [(Event::Start(Tag::Paragraph), _), inner @ .., _] = items else {
            return false;
        };
        for (event, range) in inner {
            let same = match event {
                Event::Text(t) => **t == text[range.clone()],
                Event::SoftBreak => true,
                _ => false,
            };
            if !same || range.start != at {
                return false;
            }
            at = range.end;
        }
        text[at..unit.bytes.end].trim_end_matches('\n').is_empty()
    }

    /// Returns the header of the last unit with the delimiter line below it, if the unit is a table
    /// with at least one more row.
    pub(crate) fn header<'t>(&self, text: &'t str) -> Option<&'t str> {
        let unit = self.units.last()?;
        let is_table = matches!(self.items[unit.items.start].0, Event::Start(Tag::Table(_)));
        let mut lines = text[unit.bytes.clone()]
            .match_indices('\n')
            .map(|(at, _)| at + 1);
        let end = lines.nth(1)?;
        let _ = lines.next()?;
        is_table.then(|| &text[unit.bytes.start..unit.bytes.start + end])
    }

    /// Returns where the last unit, an unfinished paragraph or a block that ends with one, may be
    /// cut: after a word of plain text before any marker that may still be closed, otherwise after
    /// any word. The result is the index of the event with that word, and the offset of the cut in
    /// the text.
    pub(crate) fn cut(&self, text: &str) -> Option<(usize, usize)> {
        let unit = self.units.last()?;
        let items = &self.items[unit.items.clone()];
        let begin = items.iter().rposition(|(e, _)| is_block(e))?;
        if !matches!(
            items[begin].0,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::BlockQuote(_))
        ) {
            return None;
        }
        let (mut depth, mut before, mut any, mut marker) = (0, None, None, false);
        for (n, (event, range)) in items.iter().enumerate().skip(begin + 1) {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) if depth == 0 => break,
                Event::End(_) => depth -= 1,
                Event::Text(t) if depth == 0 && text.get(range.clone()) == Some(t) => {
                    let first = if marker {
                        Some(0)
                    } else {
                        t.find(['*', '_', '`', '[', '~', '<'])
                    };
                    let at = |space: Option<usize>| {
                        space.map(|at| (unit.items.start + n, range.start + at))
                    };
                    before = at(t[..first.unwrap_or(t.len())].rfind(' ')).or(before);
                    any = at(t.rfind(' ')).or(any);
                    marker |= first.is_some();
                }
                _ => {}
            }
        }
        before.or(any).filter(|(_, at)| *at > unit.bytes.start)
    }
}

/// Restores the colon in an event's text or address, where another character replaced it.
fn with_colons(mut event: Event<'_>, colon: char) -> Event<'_> {
    use Tag::{CodeBlock, Image, Link};
    let text = match &mut event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => text,
        Event::Start(CodeBlock(CodeBlockKind::Fenced(info))) => info,
        Event::Start(Link { dest_url, .. } | Image { dest_url, .. }) => dest_url,
        _ => return event,
    };
    if text.contains(colon) {
        *text = text.replace(colon, ":").into();
    }
    event
}

fn units(items: &[BlockEvent]) -> Vec<TopBlock> {
    let mut units = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (n, (event, range)) in items.iter().enumerate() {
        match event {
            // The items of a top-level list are separate units.
            Event::Start(Tag::List(_)) | Event::End(pulldown_cmark::TagEnd::List(_))
                if depth == 0 =>
            {
                continue;
            }
            Event::Start(_) => {
                start = if depth == 0 { n } else { start };
                depth += 1;
                continue;
            }
            Event::End(_) => depth -= 1,
            _ if depth == 0 => start = n,
            _ => {}
        }
        if depth == 0 {
            units.push(TopBlock {
                items: start..n + 1,
                bytes: range.clone(),
            });
        }
    }
    units
}

/// Whether the event starts a block that may contain text.
fn is_block(event: &Event<'_>) -> bool {
    use Tag::{BlockQuote, CodeBlock, Heading, HtmlBlock, Item, Paragraph, Table};
    matches!(
        event,
        Event::Start(
            Paragraph | Item | BlockQuote(_) | CodeBlock(_) | HtmlBlock | Table(_) | Heading { .. }
        )
    )
}

/// The fence that opened a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
}

impl Fence {
    /// Returns the fence that `line` opens, and the text after it.
    pub(crate) fn open(line: &str) -> Option<(Self, &str)> {
        let rest = line.trim_start_matches(' ');
        let mark = *rest
            .as_bytes()
            .first()
            .filter(|b| matches!(b, b'`' | b'~'))?;
        let length = rest.bytes().take_while(|b| *b == mark).count();
        Some((
            Fence {
                mark,
                length,
                indent: line.len() - rest.len(),
            },
            rest[length..].trim(),
        ))
    }

    /// Whether the fence is long enough, and indented little enough, to open a code block.
    pub(crate) fn opens(&self) -> bool {
        self.length > 2 && self.indent < 4
    }

    /// Whether `line` closes the fence.
    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let rest = line.trim_start_matches(' ');
        let length = rest.bytes().take_while(|b| *b == self.mark).count();
        line.len() - rest.len() < 4
            && length >= self.length
            && rest[length..].trim_matches([' ', '\t', '\r']).is_empty()
    }

    /// Whether `line` may become a closing line once more text arrives.
    pub(crate) fn may_be_closed_by(&self, line: &str) -> bool {
        let rest = line.trim_start_matches(' ');
        let marks = rest.trim_start_matches(char::from(self.mark));
        line.len() - rest.len() < 4 && marks.trim_matches([' ', '\t', '\r']).is_empty()
    }

    /// Returns `line` without the indentation of the opening line.
    pub(crate) fn code<'l>(&self, line: &'l str) -> &'l str {
        let spaces = line.bytes().take_while(|b| *b == b' ').count();
        &line[spaces.min(self.indent)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text before the cut.
    fn cut<'t>(text: &'t str, lead: &str) -> Option<&'t str> {
        Blocks::parse(text, lead)
            .cut(text)
            .map(|(_, at)| &text[..at])
    }

    #[test]
    fn a_block_is_cut_after_a_word_outside_of_any_markup() {
        assert_eq!(
            cut("One two **three four** five six", ""),
            Some("One two **three four** five")
        );
        assert_eq!(
            cut("1. One **two** three four", ""),
            Some("1. One **two** three")
        );
        assert_eq!(
            cut("> One\n> two three four", ""),
            Some("> One\n> two three")
        );
        assert_eq!(cut("One two **three four five", ""), Some("One two"));
        assert_eq!(cut("**three four five", ""), Some("**three four"));
        assert_eq!(
            cut("- not an item, but four", "x "),
            Some("- not an item, but")
        );
        assert_eq!(cut("| a | b |\n|---|---|\n| c | d |", ""), None);
        assert_eq!(cut("# One two", ""), None);
        assert_eq!(
            cut("rest of one\n2. item two", "1. x "),
            Some("rest of one\n2. item")
        );
        assert_eq!(cut("One", ""), None);
    }

    #[test]
    fn a_block_goes_on_as_what_it_began_as() {
        let leads = [
            "1. One", "- One", "12) One", "> One", "One", "**One**", "1.5 One", "",
        ]
        .map(lead);
        assert_eq!(
            leads,
            ["1. x ", "- x ", "12) x ", "> x ", "x ", "x ", "x ", "x "]
        );
        assert_eq!(Blocks::parse("rest\n2. Two\n", "1. x ").units.len(), 2);
        assert_eq!(
            Blocks::parse("rest\n  - nested\n- Two\n", "- x ")
                .units
                .len(),
            2
        );
    }
}
