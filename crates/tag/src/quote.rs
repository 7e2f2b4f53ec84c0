//! Detects quotations in the Markdown of an answer: a quoted call is an example and does not count.
//!
//! These are quotations: fenced code (nested fences too), inline code up to the end of its line,
//! block quotes, strings in an answer that is JSON, and text directly after a quotation mark.
//! Models that explain a format write calls in all of these, and parsers that ignore quotations run
//! the example (<https://github.com/gptme/gptme/pull/1472>). The rules are those of CommonMark
//! 0.31, sections [4.5](https://spec.commonmark.org/0.31.2/#fenced-code-blocks),
//! [5.1](https://spec.commonmark.org/0.31.2/#block-quotes) and
//! [6.1](https://spec.commonmark.org/0.31.2/#code-spans), as far as they do not depend on later
//! text.

use event::cut;
use json::JsonScanner;
use memchr::memrchr;

/// Unicode's quotation marks. Opening and closing marks are not distinguished, because `»` opens in
/// German and closes in French.
const MARKS: [char; 21] = [
    '"', '\'', '“', '”', '„', '‟', '‘', '’', '‚', '‛', '«', '»', '‹', '›', '「', '」', '『', '』',
    '〝', '＂', '＇',
];

/// The state of the Markdown so far; see the module.
#[derive(Clone, Debug)]
pub(crate) struct Quote {
    /// The character and the length of the open code fence; `None` outside fences.
    fence: Option<(u8, usize)>,
    /// Whether the fence was opened on this line.
    opened_on_line: bool,
    /// The fence that the last run of fence characters closed. If a word follows the run directly,
    /// the run opens a nested fence instead.
    closed: Option<(u8, usize)>,
    /// The number of nested open fences. CommonMark does not nest fences, but models do.
    deep: usize,
    /// The length of the backtick run that opened inline code; 0 outside inline code.
    code: usize,
    /// The character and the length of the run of backticks or tildes at the end of the text.
    run: (u8, usize),
    /// Whether the line contains only white space so far.
    is_line_start: bool,
    /// Whether the line begins with `>`.
    in_block_quote: bool,
    /// Whether the last character is a quotation mark.
    is_after_mark: bool,
    /// Whether the last character is a space, as before a word of prose.
    is_after_space: bool,
    /// Whether the message is JSON so far.
    data: Data,
}

impl Default for Quote {
    fn default() -> Self {
        Quote {
            fence: None,
            opened_on_line: false,
            closed: None,
            deep: 0,
            code: 0,
            run: (0, 0),
            is_line_start: true,
            in_block_quote: false,
            is_after_mark: false,
            is_after_space: false,
            data: Data::default(),
        }
    }
}

impl Quote {
    /// Continues after a call: the line continues outside code, and the message is not JSON.
    pub(crate) fn restart(&mut self) {
        *self = Quote {
            is_line_start: false,
            ..Quote::markdown()
        };
    }

    /// Creates the state for a text that is not checked for JSON.
    pub(crate) fn markdown() -> Quote {
        Quote {
            data: Data::other(),
            ..Quote::default()
        }
    }

    /// Reads text without backticks and tildes.
    pub(crate) fn plain(&mut self, text: &str) {
        let b = text.as_bytes();
        let Some(last) = b.last() else { return };
        self.data.push(text);
        if self.run.1 > 0 {
            self.settle();
        }
        if let Some(fence) = self.closed.take()
            && b[0].is_ascii_alphanumeric()
        {
            // "```xml" does not close a fence: it opens one inside it.
            (self.fence, self.deep) = (Some(fence), self.deep + 2);
        }
        let line = match newline(b) {
            Some(at) => {
                (
                    self.is_line_start,
                    self.in_block_quote,
                    self.code,
                    self.opened_on_line,
                ) = (true, false, 0, false);
                &b[at + 1..]
            }
            None => b,
        };
        if self.is_line_start
            && let Some(first) = line.iter().find(|c| !matches!(c, b' ' | b'\t' | b'\r'))
        {
            (self.is_line_start, self.in_block_quote) = (false, *first == b'>');
        }
        self.is_after_space = *last == b' ';
        self.is_after_mark = match last {
            b'"' | b'\'' => true,
            // The last byte of a multi-byte character.
            0x80..=0xbf => text.ends_with(MARKS),
            _ => false,
        };
    }

    /// Marks the following text as quoted, like the text that was passed last.
    pub(crate) fn cite(&mut self) {
        self.is_after_mark = true;
    }

    /// Reads one backtick or tilde.
    pub(crate) fn tick(&mut self, c: u8) {
        if self.run.0 != c {
            self.settle();
        }
        self.run = (c, self.run.1 + 1);
        (self.is_after_mark, self.is_after_space) = (false, false);
        self.data.push(if c == b'`' { "`" } else { "~" });
    }

    /// Ends the run of backticks or tildes.
    fn settle(&mut self) {
        let (c, length) = std::mem::take(&mut self.run);
        if length == 0 {
            return;
        }
        let fence = self.is_line_start && length >= 3;
        self.is_line_start = false;
        self.closed = None;
        match self.fence {
            Some(open) if fence && open.0 == c && length >= open.1 => {
                self.deep = self.deep.saturating_sub(1);
                (self.fence, self.closed) = (Some(open).filter(|_| self.deep > 0), Some(open));
            }
            // Backticks later on the line of a backtick fence: the fence was inline code (section
            // 4.5).
            Some((b'`', least)) if self.opened_on_line && c == b'`' => {
                (self.fence, self.opened_on_line) = (None, false);
                self.code = if length == least { 0 } else { least };
            }
            Some(_) => {}
            None if fence => {
                (self.fence, self.opened_on_line, self.deep) = (Some((c, length)), true, 1)
            }
            None if c == b'~' => {}
            None if self.code == 0 => self.code = length,
            None if self.code == length => self.code = 0,
            None => {}
        }
    }

    /// Whether the next byte is quoted.
    pub(crate) fn is_quoted(&mut self) -> bool {
        self.settle();
        self.is_inside() || self.is_after_mark
    }

    /// Whether the next byte is quoted only by a quotation mark, which quotes a whole call, so that
    /// the call is read to its end.
    pub(crate) fn is_cited(&self) -> bool {
        // The quotation mark ended any earlier run of backticks.
        self.is_after_mark && !self.is_inside()
    }

    /// Whether a marker at the next byte is only mentioned: it is quoted, or a word in a sentence.
    pub(crate) fn is_mentioned(&mut self) -> bool {
        self.is_after_space || self.is_quoted()
    }

    fn is_inside(&self) -> bool {
        self.fence.is_some() || self.code > 0 || self.in_block_quote || self.is_data()
    }

    /// Whether the next byte is inside a string of an answer that is JSON.
    pub(crate) fn is_data(&self) -> bool {
        self.data.is_in_text()
    }

    /// Whether the next byte begins a line outside code.
    pub(crate) fn is_line_start(&self) -> bool {
        self.is_line_start
            && self.run.1 == 0
            && self.fence.is_none()
            && !self.in_block_quote
            && !self.is_data()
    }
}

/// Finds the last line feed. Deltas have only a few bytes, for which setting up a vectorized search
/// costs more than it saves.
#[inline]
fn newline(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < 32 {
        bytes.iter().rposition(|c| *c == b'\n')
    } else {
        memrchr(b'\n', bytes)
    }
}

// Tracks whether a message is JSON so far: a marker in a string of such an answer is data without
// meaning.

/// Line ends are searched for in steps of this many bytes; otherwise each of many short values
/// would search the whole text.
const STEP: usize = 256;

/// Follows a message from its first byte; see the module. Reads each byte once and stores none.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    state: DataState,
}

#[derive(Clone, Debug)]
enum DataState {
    /// Only white space so far.
    Start,
    /// The beginning of a JSON value. The flag is set if the value is an object or an array.
    Json(JsonScanner, bool),
    /// A text that is not JSON.
    Other,
}

impl Default for Data {
    fn default() -> Self {
        Data {
            state: DataState::Start,
        }
    }
}

impl Data {
    /// Creates the state of a message that is not JSON.
    pub(crate) fn other() -> Data {
        Data {
            state: DataState::Other,
        }
    }

    /// Reads the next piece of the message.
    #[inline]
    pub(crate) fn push(&mut self, text: &str) {
        if !matches!(self.state, DataState::Other) {
            self.follow(text);
        }
    }

    fn follow(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            match &mut self.state {
                DataState::Other => return,
                DataState::Start => {
                    rest = rest.trim_ascii_start();
                    self.state = match rest.bytes().next() {
                        None => return,
                        Some(first @ (b'{' | b'[' | b'"')) => {
                            DataState::Json(JsonScanner::default(), first != b'"')
                        }
                        Some(_) => DataState::Other,
                    };
                }
                DataState::Json(scanner, container) => {
                    // Models write raw line ends in strings of an object. A message in quotation
                    // marks that contains a line end is prose.
                    let room = cut(rest, STEP).len();
                    let end = rest[..room].bytes().position(|c| c < b' ').unwrap_or(room);
                    let used = scanner.push(&rest[..end]);
                    if used < end {
                        // The value has ended; another value may follow.
                        (self.state, rest) = (DataState::Start, &rest[used..]);
                        continue;
                    }
                    let control = end < room;
                    if control && !(*container && scanner.is_in_text()) {
                        scanner.push(&rest[end..=end]);
                    }
                    if !scanner.is_valid() {
                        self.state = DataState::Other;
                        return;
                    }
                    rest = &rest[end + usize::from(control)..];
                }
            }
        }
    }

    /// Whether the next byte is inside a string of the JSON.
    #[inline]
    pub(crate) fn is_in_text(&self) -> bool {
        matches!(&self.state, DataState::Json(scanner, _) if scanner.is_in_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> bool {
        let mut q = Quote::default();
        let mut from = 0;
        for (at, c) in text
            .bytes()
            .enumerate()
            .filter(|(_, c)| matches!(c, b'`' | b'~'))
        {
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

#[cfg(test)]
mod data_tests {
    use super::*;

    #[test]
    fn inside_a_string_of_json() {
        for (text, want) in [
            ("", false),
            ("\"", true),
            ("\"a", true),
            ("\"a\\", true),
            ("\"a\nb", false),
            ("\"a\" \"b", true),
            ("\"a\" b \"", false),
            (" \n{\"a", true),
            ("{\"a\"", false),
            ("{\"a\": \"", true),
            ("{\"a\": \"b\n\t\r\n<", true),
            ("{\"a\": \"b\n\"", false),
            ("{\"a\": \"b\"c \"", false),
            ("{\"a\":\n[1, true,\n\"x\"], \"b\": {\"c\": \"", true),
            ("{\"a\": 1}\n{\"a\": \"", true),
            ("{\"a\": 1} {\"a\" \"", false),
            ("{\"a\": 1} is it: \"", false),
            ("[see \"", false),
            ("[TOOL_CALLS] [{\"name\": \"", false),
            ("I say: {\"a\": \"", false),
        ] {
            let mut whole = Data::default();
            whole.push(text);
            let mut letters = Data::default();
            text.split_inclusive(|_| true)
                .for_each(|letter| letters.push(letter));
            assert_eq!(
                (whole.is_in_text(), letters.is_in_text()),
                (want, want),
                "{text:?}"
            );
        }
    }
}
