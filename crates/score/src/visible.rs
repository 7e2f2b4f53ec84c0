//! Text from files (names, ids, reasons) in a form that is safe to show on one line.

use std::fmt::Write;

/// Returns `text` with every line break, tab and hidden character escaped (`\n`,
/// `\x1b`, `\u202e`, `\u{e0041}`). Longer text is cut to `limit` characters, the last of which is
/// `…`.
///
/// People make decisions by the names in a report, so different names must look different: an
/// invisible character must neither disappear nor reorder its neighbours. An escape is never split.
pub fn visible(text: &str, limit: usize) -> String {
    cut(text, limit, 0)
}

/// Like [`visible`], but cut in the middle, which matters less than the end of a path or a command.
pub fn visible_ends(text: &str, limit: usize) -> String {
    cut(text, limit, limit / 2)
}

/// Keeps the start and, if the text has to be cut, at most `last` characters of the end.
fn cut(text: &str, limit: usize, last: usize) -> String {
    let mut out = String::new();
    // For each character of `text`, its offset in `out` and the number of characters written before
    // it.
    let mut pieces = Vec::new();
    let mut written = 0;
    for c in text.chars() {
        pieces.push((out.len(), written));
        let length = out.len();
        push(c, &mut out);
        written += out[length..].chars().count();
        if last == 0 && written > limit {
            break;
        }
    }
    if written <= limit {
        return out;
    }
    let first = limit.saturating_sub(last + 1);
    let head = pieces
        .iter()
        .rev()
        .find(|(_, before)| *before <= first)
        .map_or(0, |(at, _)| *at);
    let tail = pieces
        .iter()
        .find(|(_, before)| written - before <= last)
        .map_or(out.len(), |(at, _)| *at);
    let tail = if last == 0 { "" } else { &out[tail..] };
    format!("{}…{tail}", &out[..head])
}

fn push(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        c if event::is_hidden(c) => {
            // Writing to a `String` cannot fail.
            let _ = match u32::from(c) {
                code @ 0..=0xff => write!(out, "\\x{code:02x}"),
                code @ 0x100..=0xffff => write!(out, "\\u{code:04x}"),
                code => write!(out, "\\u{{{code:x}}}"),
            };
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_show_is_written_out() {
        assert_eq!(
            visible("a\nb\tc\x1b[1m\u{202e}x\u{e0041}é中", 100),
            "a\\nb\\tc\\x1b[1m\\u202ex\\u{e0041}é中"
        );
        assert_eq!(visible("", 3), "");
    }

    #[test]
    fn a_cut_in_the_middle_keeps_both_ends() {
        assert_eq!(visible_ends("abcdefgh", 8), "abcdefgh");
        assert_eq!(visible_ends("abcdefghi", 8), "abc…fghi");
        assert_eq!(
            visible_ends("abcd\u{202e}", 6),
            "ab…",
            "an escape is whole or absent"
        );
        assert_eq!(visible_ends("\u{202e}abcde", 7), "…cde");
        assert_eq!(visible_ends(&"é".repeat(10_000), 10).chars().count(), 10);
        assert_eq!(visible_ends("ab", 1), "…");
    }

    #[test]
    fn a_cut_is_marked_and_keeps_to_the_limit() {
        assert_eq!(visible("abcd", 4), "abcd");
        assert_eq!(visible("abcde", 4), "abc…");
        assert_eq!(visible(&"é".repeat(10_000), 10).chars().count(), 10);
        assert_eq!(
            visible("ab\u{202e}", 4),
            "ab…",
            "an escape is whole or absent"
        );
        assert_eq!(visible("ab\u{202e}", 8), "ab\\u202e");
        assert_eq!(visible("abcd", 1), "…");
    }
}
