//! Splits Markdown text into passages: whole blocks that are parsed and written independently.
//!
//! A passage ends before a line that no block above can contain: a line after an empty line,
//! outside of fenced code, that starts in the first column and is not a list item. So the output
//! does not depend on how the text was split into deltas, each byte is parsed once, and at most one
//! passage is buffered.

use crate::markdown::Fence;

/// Maximum length of a passage in bytes. A longer block is written in parts.
const PASSAGE: usize = 64 * 1024;

/// Maximum length in bytes of a fence line that is repeated in the next part.
const OPENING: usize = 200;

/// The visible form of a carriage return, which the parser would treat as a line end.
const RETURN: &str = "\\x0d";

/// The part of a text that is not written yet.
#[derive(Debug, Default)]
pub(super) struct Passages {
    source: String,
    /// The number of bytes examined so far, always whole lines.
    seen: usize,
    /// The number of leading bytes that repeat the fence of the previous passage.
    opening: usize,
    /// The fence of the code block that is open at `seen`, and the line that opened it.
    fence: Option<(Fence, String)>,
    is_after_empty_line: bool,
    /// Whether a carriage return follows `source`: if a line feed comes next, both are one line
    /// end.
    has_return: bool,
}

impl Passages {
    /// Appends the next piece of the text.
    pub(super) fn push(&mut self, text: &str) {
        if !self.has_return && !text.contains('\r') {
            return self.source.push_str(text);
        }
        for c in text.chars() {
            if std::mem::take(&mut self.has_return) && c != '\n' {
                self.source.push_str(RETURN);
            }
            match c {
                '\r' => self.has_return = true,
                _ => self.source.push(c),
            }
        }
    }

    /// Returns the next passage. If the text is `whole`, this includes the last one.
    pub(super) fn next(&mut self, whole: bool) -> Option<String> {
        if whole && std::mem::take(&mut self.has_return) {
            self.source.push_str(RETURN);
        }
        while let Some(length) = self.source[self.seen..].find('\n') {
            let end = self.seen + length + 1;
            let line = &self.source[self.seen..end - 1];
            if self.seen > self.opening && self.is_after_empty_line && begins_block(line) {
                return Some(self.take(self.seen));
            }
            if end - self.opening > PASSAGE {
                return Some(self.part());
            }
            self.is_after_empty_line = match &self.fence {
                Some((fence, _)) if fence.is_closed_by(line) => {
                    self.fence = None;
                    false
                }
                Some(_) => false,
                None => {
                    let fence = opened(line);
                    self.fence = fence.map(|fence| (fence, line.to_owned()));
                    self.fence.is_none() && line.trim_matches([' ', '\t']).is_empty()
                }
            };
            self.seen = end;
        }
        if self.source.len() - self.opening > PASSAGE {
            return Some(self.part());
        }
        if !whole {
            return None;
        }
        if self.seen > self.opening
            && self.is_after_empty_line
            && begins_block(&self.source[self.seen..])
        {
            return Some(self.take(self.seen));
        }
        let rest = std::mem::take(self);
        (rest.source.len() > rest.opening).then_some(rest.source)
    }

    /// Takes a part of a block that is longer than a passage: its complete lines, or a part of one
    /// line.
    fn part(&mut self) -> String {
        let end = match self.seen {
            seen if seen > self.opening => seen,
            _ => event::cut(&self.source, self.opening + PASSAGE).len(),
        };
        self.take(end)
    }

    /// Takes the first `end` bytes; a code block that is open there continues in the next passage.
    fn take(&mut self, end: usize) -> String {
        let rest = self.source.split_off(end);
        let passage = std::mem::take(&mut self.source);
        if let Some((_, line)) = &self.fence {
            self.source.push_str(event::cut(line, OPENING));
            self.source.push('\n');
        }
        self.opening = self.source.len();
        self.seen = self.opening;
        self.source.push_str(&rest);
        self.is_after_empty_line = false;
        passage
    }
}

/// Whether `line`, after an empty line, belongs to no block above it.
fn begins_block(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = rest.len() < line.len() && rest.starts_with(['.', ')']);
    !line.is_empty() && !line.starts_with([' ', '\t', '-', '*', '+']) && !is_number
}

/// Returns the fence that `line` opens.
fn opened(line: &str) -> Option<Fence> {
    let (fence, info) = Fence::open(line)?;
    let is_ticks = line.trim_start_matches(' ').starts_with('`');
    (fence.opens() && !(is_ticks && info.contains('`'))).then_some(fence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passages(pieces: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        let mut passages = Passages::default();
        for piece in pieces {
            passages.push(piece);
            while let Some(passage) = passages.next(false) {
                all.push(passage);
            }
        }
        while let Some(passage) = passages.next(true) {
            all.push(passage);
        }
        all
    }

    #[test]
    fn a_passage_ends_where_no_block_goes_on() {
        assert_eq!(passages(&["a\nb\n\nc\n"]), ["a\nb\n\n", "c\n"]);
        assert_eq!(
            passages(&["- a\n\n  b\n\n- c\n\nd"]),
            ["- a\n\n  b\n\n- c\n\n", "d"]
        );
        assert_eq!(
            passages(&["```\na\n\nb\n```\n\n1. c\n\n2) d\n\n3 e"]),
            ["```\na\n\nb\n```\n\n1. c\n\n2) d\n\n", "3 e"]
        );
        assert_eq!(
            passages(&["a\r", "\nb\r\n\r\nc\rd\r"]),
            ["a\nb\n\n", "c\\x0dd\\x0d"]
        );
    }

    #[test]
    fn a_long_block_is_written_in_parts_and_code_stays_code() {
        let line = format!("{}\n", "x".repeat(99));
        let code = format!("```sh\n{}```\n\nend", line.repeat(2000));
        let all = passages(&[&code]);
        let (last, parts) = all.split_last().unwrap();
        assert!(parts.len() > 2 && parts.iter().all(|part| part.starts_with("```sh\n")));
        assert!(parts.iter().all(|part| part.len() < PASSAGE + OPENING));
        assert_eq!(last, "end");
        let text: String = parts
            .iter()
            .map(|part| part.trim_start_matches("```sh\n"))
            .collect();
        assert_eq!(text, format!("{}```\n\n", line.repeat(2000)));
        // The result does not depend on how the text was split.
        for size in [1, 7, 4096, 65_537] {
            let pieces: Vec<_> = (0..code.len())
                .step_by(size)
                .map(|at| &code[at..(at + size).min(code.len())])
                .collect();
            assert_eq!(passages(&pieces), all, "{size}");
        }
        let long = "é".repeat(PASSAGE);
        let pieces: Vec<_> = long.split_inclusive('é').collect();
        assert_eq!(passages(&pieces), passages(&[&long]));
        assert_eq!(passages(&pieces).concat(), long);
    }
}
