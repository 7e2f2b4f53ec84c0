//! Where in Markdown a text stands: what is quoted there is no call.
//!
//! Fenced code, also in fenced code, inline code up to the end of its line, block quotes, the strings of an answer that is JSON,
//! and what follows a quotation mark at once. After CommonMark 0.31, sections 4.5, 5.1 and 6.1, as far as it can be told without
//! looking ahead.

use crate::data::Data;
use memchr::memrchr;

/// The quotation marks of Unicode, opening and closing: which of them opens depends on the language.
const MARKS: [char; 21] =
    ['"', '\'', '“', '”', '„', '‟', '‘', '’', '‚', '‛', '«', '»', '‹', '›', '「', '」', '『', '』', '〝', '＂', '＇'];

/// The state of the text so far; see the module.
#[derive(Clone, Debug)]
pub(crate) struct Quote {
    /// The character and the length of the open fence.
    fence: Option<(u8, usize)>,
    /// It was opened on this line.
    opened: bool,
    /// The fence that was closed by the last run, if a word right behind the run may say that it opens another one inside.
    closed: Option<(u8, usize)>,
    /// How many fences are open, one inside the other, as models write them though CommonMark has no such thing.
    deep: usize,
    /// The length of the run of backticks that opened inline code; 0 outside.
    code: usize,
    /// A run of backticks or tildes that has not ended yet.
    run: (u8, usize),
    /// Nothing but white space since the line began.
    line_start: bool,
    /// The line begins with `>`.
    block: bool,
    /// The last character is a quotation mark.
    mark: bool,
    /// Whether the message is JSON so far.
    data: Data,
}

impl Default for Quote {
    fn default() -> Self {
        Quote {
            fence: None,
            opened: false,
            closed: None,
            deep: 0,
            code: 0,
            run: (0, 0),
            line_start: true,
            block: false,
            mark: false,
            data: Data::default(),
        }
    }
}

impl Quote {
    /// A call or a marker stood here: its line goes on outside code.
    pub fn restart(&mut self) {
        *self = Quote { line_start: false, ..Quote::markdown() };
    }

    /// A text of which it does not matter whether it is JSON.
    pub fn markdown() -> Quote {
        Quote { data: Data::other(), ..Quote::default() }
    }

    /// Takes text without backticks and tildes.
    pub fn plain(&mut self, text: &str) {
        let b = text.as_bytes();
        let Some(last) = b.last() else { return };
        self.data.push(text);
        if self.run.1 > 0 {
            self.settle();
        }
        if let Some(fence) = self.closed.take()
            && b[0].is_ascii_alphanumeric()
        {
            // "```xml" closes nothing: it is a fence inside the other.
            (self.fence, self.deep) = (Some(fence), self.deep + 2);
        }
        let line = match newline(b) {
            Some(at) => {
                (self.line_start, self.block, self.code, self.opened) = (true, false, 0, false);
                &b[at + 1..]
            }
            None => b,
        };
        if self.line_start
            && let Some(first) = line.iter().find(|c| !matches!(c, b' ' | b'\t' | b'\r'))
        {
            (self.line_start, self.block) = (false, *first == b'>');
        }
        self.mark = match last {
            b'"' | b'\'' => true,
            // The last byte of a character of more than one.
            0x80..=0xbf => text.ends_with(MARKS),
            _ => false,
        };
    }

    /// What follows is as quoted as what came last: text that was told by what stands in it and not by its own quotation mark.
    pub fn cite(&mut self) {
        self.mark = true;
    }

    /// Takes one backtick or tilde.
    pub fn tick(&mut self, c: u8) {
        if self.run.0 != c {
            self.settle();
        }
        self.run = (c, self.run.1 + 1);
        self.mark = false;
        self.data.push(if c == b'`' { "`" } else { "~" });
    }

    /// The run of backticks is over.
    fn settle(&mut self) {
        let (c, length) = std::mem::take(&mut self.run);
        if length == 0 {
            return;
        }
        let fence = self.line_start && length >= 3;
        self.line_start = false;
        self.closed = None;
        match self.fence {
            Some(open) if fence && open.0 == c && length >= open.1 => {
                self.deep = self.deep.saturating_sub(1);
                (self.fence, self.closed) = (Some(open).filter(|_| self.deep > 0), Some(open));
            }
            // Backticks behind a fence of backticks, on its own line: it was inline code.
            Some((b'`', least)) if self.opened && c == b'`' => {
                (self.fence, self.opened) = (None, false);
                self.code = if length == least { 0 } else { least };
            }
            Some(_) => {}
            None if fence => (self.fence, self.opened, self.deep) = (Some((c, length)), true, 1),
            None if c == b'~' => {}
            None if self.code == 0 => self.code = length,
            None if self.code == length => self.code = 0,
            None => {}
        }
    }

    /// Whether what comes next is quoted.
    pub fn is_quoted(&mut self) -> bool {
        self.settle();
        self.is_inside() || self.mark
    }

    /// Whether what comes next stands right behind a quotation mark, and in nothing else that is quoted: the mark quotes it as
    /// far as it goes.
    pub fn is_cited(&self) -> bool {
        // No run of backticks is open behind a quotation mark.
        self.mark && !self.is_inside()
    }

    fn is_inside(&self) -> bool {
        self.fence.is_some() || self.code > 0 || self.block || self.is_data()
    }

    /// Whether what comes next is inside a string of an answer that is JSON.
    pub fn is_data(&self) -> bool {
        self.data.is_in_text()
    }

    /// Whether what comes next is the first of its line, outside code.
    pub fn is_line_start(&self) -> bool {
        self.line_start && self.run.1 == 0 && self.fence.is_none() && !self.block && !self.is_data()
    }
}

/// The last line feed. Deltas are a few bytes long, for which a search by vectors is not worth its beginning.
#[inline]
fn newline(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < 32 { bytes.iter().rposition(|c| *c == b'\n') } else { memrchr(b'\n', bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> bool {
        let mut q = Quote::default();
        let mut from = 0;
        for (at, c) in text.bytes().enumerate().filter(|(_, c)| matches!(c, b'`' | b'~')) {
            q.plain(&text[from..at]);
            q.tick(c);
            from = at + 1;
        }
        q.plain(&text[from..]);
        q.is_quoted()
    }

    #[test]
    fn what_is_quoted() {
        for (text, want) in [
            ("", false),
            ("see `", true),
            ("see `x` ", false),
            ("see `x\n", false),
            ("``a`b", true),
            ("```\ncode\n", true),
            ("```x``` is code\n", false),
            ("```x``` `y", true),
            ("```md\n```xml\n", true),
            ("```md\n```xml\n```\n", true),
            ("```md\n```xml\n```\n```\n", false),
            ("```md\n```xml\n```\n~~~\n```\n", false),
            ("````md\n```xml\n````\n", false),
            ("```md\n``` and\n", false),
            ("```xml\ncode\n```\n", false),
            ("  ~~~\ncode\n```\n", true),
            ("a ```b``` ", false),
            ("> quoted ", true),
            ("> quoted\n", false),
            ("he said \"", true),
            ("he said “", true),
            ("er sagte „", true),
            ("er sagte »", true),
            ("il dit «", true),
            ("hän sanoi ”", true),
            ("彼は「", true),
            ("{\"a\": \"see ", true),
            ("{\"a\": \"see ` ", true),
            ("{\"a\": \"see \" ", false),
            ("See {\"a\": \"see ", false),
            ("é", false),
        ] {
            assert_eq!(quoted(text), want, "{text:?}");
        }
    }
}
