//! Where in Markdown a text stands: what is quoted there is no call.
//!
//! Fenced code, inline code up to the end of its line, block quotes, and what follows a quotation mark at once.
//! After CommonMark 0.31, sections 4.5, 5.1 and 6.1, as far as it can be told without looking ahead.

use memchr::memrchr;

/// The state of the text so far; see the module.
#[derive(Clone, Debug)]
pub(crate) struct Quote {
    /// The character and the length of the open fence.
    fence: Option<(u8, usize)>,
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
}

impl Default for Quote {
    fn default() -> Self {
        Quote { fence: None, code: 0, run: (0, 0), line_start: true, block: false, mark: false }
    }
}

impl Quote {
    /// A call or a marker stood here: its line goes on outside code.
    pub fn restart(&mut self) {
        *self = Quote { line_start: false, ..Quote::default() };
    }

    /// Takes text without backticks and tildes.
    pub fn plain(&mut self, text: &str) {
        let b = text.as_bytes();
        let Some(last) = b.last() else { return };
        if self.run.1 > 0 {
            self.settle();
        }
        let line = match newline(b) {
            Some(at) => {
                (self.line_start, self.block, self.code) = (true, false, 0);
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
            // “ ‘ « in UTF-8.
            0x80..=0xbf => text.ends_with(['“', '‘', '«', '„']),
            _ => false,
        };
    }

    /// Takes one backtick or tilde.
    pub fn tick(&mut self, c: u8) {
        if self.run.0 != c {
            self.settle();
        }
        self.run = (c, self.run.1 + 1);
        self.mark = false;
    }

    /// The run of backticks is over.
    fn settle(&mut self) {
        let (c, length) = std::mem::take(&mut self.run);
        if length == 0 {
            return;
        }
        let fence = self.line_start && length >= 3;
        self.line_start = false;
        match self.fence {
            Some((open, least)) if fence && open == c && length >= least => self.fence = None,
            Some(_) => {}
            None if fence => self.fence = Some((c, length)),
            None if c == b'~' => {}
            None if self.code == 0 => self.code = length,
            None if self.code == length => self.code = 0,
            None => {}
        }
    }

    /// Whether what comes next is quoted.
    pub fn is_quoted(&mut self) -> bool {
        self.settle();
        self.fence.is_some() || self.code > 0 || self.block || self.mark
    }

    /// Whether what comes next is the first of its line, outside code.
    pub fn is_line_start(&self) -> bool {
        self.line_start && self.run.1 == 0 && self.fence.is_none() && !self.block
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
            ("```xml\ncode\n```\n", false),
            ("  ~~~\ncode\n```\n", true),
            ("a ```b``` ", false),
            ("> quoted ", true),
            ("> quoted\n", false),
            ("he said \"", true),
            ("he said “", true),
            ("é", false),
        ] {
            assert_eq!(quoted(text), want, "{text:?}");
        }
    }
}
