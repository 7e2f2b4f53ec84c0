//! Makes text of a model or a tool safe to show: hidden characters are escaped, and lines are cut
//! to a width.

use event::is_hidden;
use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// Returns `text` with every hidden character escaped: `\x1b`, `\u202e`, `\u{e0041}`.
pub fn safe(text: &str) -> Cow<'_, str> {
    event::escaped(text, |c, out| match u32::from(c) {
        code @ 0..=0xff => write!(out, "\\x{code:02x}"),
        code @ 0x100..=0xffff => write!(out, "\\u{code:04x}"),
        code => write!(out, "\\u{{{code:x}}}"),
    })
}

/// Returns the maximum width of `c` in columns. Terminals disagree about emoji that consist of
/// several characters; a card that is one column too short still looks like a card, but one that is
/// too long does not.
pub(crate) fn width(c: char) -> usize {
    if c == '\u{fe0f}' {
        1
    } else {
        c.width().unwrap_or(0)
    }
}

/// Returns the maximum width of `text` in columns; a tab or a line feed counts as 0. Expects text
/// from [`safe`].
pub fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Returns `text` on one line, at most `limit` columns wide: hidden characters are escaped, each
/// run of white space becomes one space, and `…` marks a cut.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let (mut used, mut space, mut marks) = (0, false, 0);
    // Where to cut if the text does not fit: the last place that leaves room for `…`.
    let mut cut = 0;
    for c in SafeChars(text.chars(), None) {
        if c.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        let w = width(c);
        let gap = usize::from(std::mem::take(&mut space));
        marks = if w == 0 { marks + 1 } else { 0 };
        if used + gap + w > limit {
            out.truncate(cut);
            out.push('…');
            break;
        }
        if marks > 4 {
            continue; // a letter takes any number of accents: without a limit a line has no end
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

/// Maximum width of a note in a document, in columns.
pub(crate) const BRIEF_NOTE: usize = 4000;

/// Iterates over the characters of a text, with hidden ones escaped.
struct SafeChars<'a>(std::str::Chars<'a>, Option<std::vec::IntoIter<char>>);

impl Iterator for SafeChars<'_> {
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
        assert_eq!(
            safe("a\u{1b}]52;c;x\u{7}\r\n\tb"),
            "a\\x1b]52;c;x\\x07\\x0d\n\tb"
        );
        assert_eq!(
            safe("\u{9b}2J\u{7f}\u{202e}\u{2066}é"),
            "\\x9b2J\\x7f\\u202e\\u2066é"
        );
        assert!(matches!(safe("plain äöü 中 🙂\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_shows_nothing_is_written_out_and_what_shapes_its_neighbours_stays() {
        for (raw, shown) in [
            ("\u{61c}\u{200e}\u{200f}", "\\u061c\\u200e\\u200f"),
            (
                "\u{2028}\u{2029}\u{feff}\u{ad}",
                "\\u2028\\u2029\\ufeff\\xad",
            ),
            (
                "\u{e0001}\u{e0041}\u{e007f}\u{e0100}\u{e01ef}",
                "\\u{e0001}\\u{e0041}\\u{e007f}\\u{e0100}\\u{e01ef}",
            ),
            (
                "\u{200b}\u{2060}\u{2064}\u{206f}",
                "\\u200b\\u2060\\u2064\\u206f",
            ),
            (
                "\u{180e}\u{fff9}\u{fffb}\u{3164}\u{fe05}",
                "\\u180e\\ufff9\\ufffb\\u3164\\ufe05",
            ),
        ] {
            assert_eq!(safe(raw), shown);
        }
        let ordinary = "👩\u{200d}👧 ❤\u{fe0f} ☎\u{fe0e} می\u{200c}خواهم क्\u{200d}ष ∩\u{fe00} a\u{301} \u{fffd}\u{a0}";
        assert!(
            matches!(safe(ordinary), Cow::Borrowed(_)),
            "{}",
            safe(ordinary)
        );
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
