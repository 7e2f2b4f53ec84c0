//! Text of a model or a tool, made fit for people's eyes.

use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// Whether a terminal would act on `c` instead of showing it: C0 but the line feed and the tab, DEL, C1, and the bidirectional
/// overrides and isolates, which reorder what stands around them.
pub fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with every hidden character written out: `\x1b`, `\x9b`, `\u202e`.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match u32::from(c) {
            _ if !is_hidden(c) => out.push(c),
            // Writing to a string cannot fail.
            code @ 0..=0xff => write!(out, "\\x{code:02x}").unwrap_or_default(),
            code => write!(out, "\\u{code:04x}").unwrap_or_default(),
        }
    }
    Cow::Owned(out)
}

/// How many columns `c` takes, rather too many than too few: terminals disagree about emoji that are put together of several
/// characters, and a card that is one column too short still looks like one.
pub(crate) fn width(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// How many columns `text` takes at most (see [`safe`]; a tab or a line feed counts nothing).
pub fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// `text` on one line, at most `limit` columns wide: safe, each run of white space one space, `…` where it was cut.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let (mut used, mut space, mut marks) = (0, false, 0);
    // Where to cut, should there turn out to be more than fits: the last place that leaves room for the sign.
    let mut cut = 0;
    for c in Shown(text.chars(), None) {
        if c.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        let (w, gap) = (width(c), usize::from(std::mem::take(&mut space)));
        marks = if w == 0 { marks + 1 } else { 0 };
        if used + gap + w > limit {
            out.truncate(cut);
            out.push('…');
            break;
        }
        if marks > 4 {
            continue; // a letter needs no more accents, and there is no end of them
        }
        if gap == 1 {
            out.push(' ');
        }
        out.push(c);
        used += gap + w;
        if used < limit {
            cut = out.len();
        }
    }
    out
}

/// The characters of a text, hidden ones written out.
struct Shown<'a>(std::str::Chars<'a>, Option<std::vec::IntoIter<char>>);

impl Iterator for Shown<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if let Some(c) = self.1.as_mut().and_then(Iterator::next) {
            return Some(c);
        }
        let c = self.0.next()?;
        if !is_hidden(c) {
            return Some(c);
        }
        let written: Vec<char> = safe(c.encode_utf8(&mut [0; 4])).chars().collect();
        self.1.insert(written.into_iter()).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_written_out() {
        assert_eq!(safe("a\u{1b}]52;c;x\u{7}\r\n\tb"), "a\\x1b]52;c;x\\x07\\x0d\n\tb");
        assert_eq!(safe("\u{9b}2J\u{7f}\u{202e}\u{2066}é"), "\\x9b2J\\x7f\\u202e\\u2066é");
        assert!(matches!(safe("plain äöü 中 🙂\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_line_never_splits_a_wide_character() {
        assert_eq!(one_line("  a \n\t b  ", 10), "a b");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("天気天気", 5), "天気…");
        assert_eq!(one_line("天気天気", 8), "天気天気");
        assert_eq!(one_line("\u{1b}[2J", 80), "\\x1b[2J");
        for limit in 1..9 {
            assert!(columns(&one_line("天a気\u{1b}🙂b", limit)) <= limit);
        }
        assert!(one_line(&"a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".repeat(99), 3).len() < 40);
    }
}
