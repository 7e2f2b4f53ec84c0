//! Text of files (names, ids, reasons) that is safe to show on one line.

use std::fmt::Write;

/// `text` with every line break, tab and hidden character written out (`\n`, `\x1b`, `\u202e`, `\u{e0041}`), cut to `limit`
/// characters, the last of which is then `…`.
///
/// Names in a report are read by people who decide by them, so two names that differ must look different: an invisible character
/// may neither disappear nor reorder its neighbours. An escape is never cut in two.
pub fn visible(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut chars = 0;
    // The length before the last character that leaves room for `…`.
    let mut cut = 0;
    for c in text.chars() {
        let length = out.len();
        push(c, &mut out);
        let added = out[length..].chars().count();
        if chars + added > limit {
            out.truncate(cut);
            out.push('…');
            return out;
        }
        chars += added;
        if chars < limit {
            cut = out.len();
        }
    }
    out
}

fn push(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        c if event::is_hidden(c) => {
            // Writing to a string cannot fail.
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
        assert_eq!(visible("a\nb\tc\x1b[1m\u{202e}x\u{e0041}é中", 100), "a\\nb\\tc\\x1b[1m\\u202ex\\u{e0041}é中");
        assert_eq!(visible("", 3), "");
    }

    #[test]
    fn a_cut_is_marked_and_keeps_to_the_limit() {
        assert_eq!(visible("abcd", 4), "abcd");
        assert_eq!(visible("abcde", 4), "abc…");
        assert_eq!(visible(&"é".repeat(10_000), 10).chars().count(), 10);
        assert_eq!(visible("ab\u{202e}", 4), "ab…", "an escape is whole or absent");
        assert_eq!(visible("ab\u{202e}", 8), "ab\\u202e");
        assert_eq!(visible("abcd", 1), "…");
    }
}
