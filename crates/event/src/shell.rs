//! Words of command lines that a message or a report suggests.

use crate::is_hidden;
use std::borrow::Cow;

/// `word` as a shell reads it, on one line: in single quotes where it holds anything but letters,
/// digits and marks without a meaning. A character that cannot be seen is written as an escape in
/// `$'…'` (bash, zsh, ksh; POSIX since 2024), so that what is pasted is what was read.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:=,@%+-".contains(&b);
    // zsh replaces `=ls` by the path of `ls`.
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
            // The bytes of UTF-8 in octal: an escape of three digits ends by itself, whatever
            // follows.
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
