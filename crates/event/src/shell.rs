//! Quotes words for command lines that a message or a report suggests.

use crate::is_hidden;
use std::borrow::Cow;

/// Quotes `word` for a shell, on one line. Words with characters other than letters, digits and
/// harmless punctuation are put into single quotes. Invisible characters are written as escapes in
/// `$'…'` (bash, zsh, ksh; POSIX since 2024), so that the pasted command is the one that was
/// displayed.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:=,@%+-".contains(&b);
    // zsh replaces `=ls` with the path of `ls`.
    if !word.is_empty() && !word.starts_with('=') && word.bytes().all(is_plain) {
        return Cow::Borrowed(word);
    }
    let is_escaped = |c: char| c == '\n' || c == '\t' || is_hidden(c);
    if !word.contains(is_escaped) {
        return Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")));
    }
    let mut out = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            // The bytes of the UTF-8 encoding in octal. An octal escape of three digits is
            // complete, whatever character follows.
            c if is_escaped(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    out.push_str(&format!("\\{byte:03o}"));
                }
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out + "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_take_apart_stays_whole() {
        for (word, text) in [
            ("a=b,c:d@e%f+g-h_i/j.k", "a=b,c:d@e%f+g-h_i/j.k"),
            ("", "''"),
            ("=ls", "'=ls'"),
            ("~", "'~'"),
            ("it's $HOME;`id`", r"'it'\''s $HOME;`id`'"),
            ("a\nb'\\\u{202e}7", r"$'a\nb\'\\\342\200\2567'"),
        ] {
            assert_eq!(shell_word(word), text);
        }
    }
}
