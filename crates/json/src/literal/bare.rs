//! The words of Gemma's notation, which have no quotes.

use super::advance::{Advance, Outcome};
use super::reader::{Literal, LiteralState, MAX_WORD, Role, TOO_LONG};
use super::string::{MarkStart, StringForm, escape};

impl Literal {
    /// Reads the beginning of a scalar at `at`.
    pub(super) fn gemma(
        &mut self,
        text: &str,
        at: usize,
        quote: &'static str,
        out: &mut String,
    ) -> Outcome {
        let rest = &text[at..];
        if MarkStart::with(rest, quote) == MarkStart::Perhaps {
            return Ok(Advance::Hold(at));
        }
        if let Some((quoted, width)) = opening(rest, quote) {
            out.push('"');
            return Ok(self.go(LiteralState::Text(quoted), at + width));
        }
        if ends(rest.as_bytes()[0]) {
            return Err("a value is missing");
        }
        self.word.clear();
        Ok(self.go(LiteralState::Head, at))
    }

    /// Reads the beginning of a key at `at`.
    pub(super) fn gemma_key(
        &mut self,
        text: &str,
        at: usize,
        quote: &'static str,
        out: &mut String,
    ) -> Outcome {
        let rest = &text[at..];
        if MarkStart::with(rest, quote) == MarkStart::Perhaps {
            return Ok(Advance::Hold(at));
        }
        let opening = opening(rest, quote);
        if opening.is_none() && no_key(rest.as_bytes()[0]) {
            return Err("a key is missing");
        }
        self.comma(out);
        self.role = Role::Key;
        out.push('"');
        self.word.clear();
        Ok(match opening {
            Some((quoted, width)) => self.go(LiteralState::Text(quoted), at + width),
            None => self.go(LiteralState::Bare, at),
        })
    }

    /// Reads a word that may still be a number or a constant.
    pub(super) fn head(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        for (n, byte) in text[at..].bytes().enumerate() {
            if ends(byte) {
                let word = trimmed(&self.word);
                if matches!(word, "true" | "false" | "null") || is_number(word) {
                    out.push_str(word);
                } else {
                    out.push('"');
                    escape(word, out);
                    out.push('"');
                }
                return Ok(self.scalar(at + n));
            }
            if !may_follow(&self.word, byte) {
                out.push('"');
                return Ok(self.go(LiteralState::Bare, at + n));
            }
            if self.word.len() == MAX_WORD {
                return Err(TOO_LONG);
            }
            self.word.push(char::from(byte));
        }
        Ok(Advance::On(text.len()))
    }

    /// Reads a word that is a string or a key.
    pub(super) fn bare(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        let at = self.run(
            text,
            at,
            if self.role == Role::Key { no_key } else { ends },
            out,
        )?;
        if at < text.len() {
            out.push('"');
            return Ok(self.scalar(at));
        }
        Ok(Advance::On(at))
    }

    /// Writes a word up to its end, without the white space there. White space that may be the last
    /// is kept in `word`.
    fn run(
        &mut self,
        text: &str,
        at: usize,
        ends: fn(u8) -> bool,
        out: &mut String,
    ) -> Result<usize, &'static str> {
        let end = text
            .bytes()
            .skip(at)
            .position(ends)
            .map_or(text.len(), |n| at + n);
        let mut rest = &text[at..end];
        while !rest.is_empty() {
            let black = rest.find(WHITE).unwrap_or(rest.len());
            if black > 0 {
                escape(&self.word, out);
                self.word.clear();
                escape(&rest[..black], out);
            }
            rest = &rest[black..];
            let white = rest.len() - rest.trim_start_matches(WHITE).len();
            if self.word.len() + white > MAX_WORD {
                return Err(TOO_LONG);
            }
            self.word.push_str(&rest[..white]);
            rest = &rest[white..];
        }
        Ok(end)
    }
}

/// The kind of string that `rest` begins with, and the length of its opening mark.
fn opening(rest: &str, quote: &'static str) -> Option<(StringForm, usize)> {
    match rest.strip_prefix(quote) {
        Some(_) => Some((StringForm::Between(quote), quote.len())),
        None => rest.starts_with('"').then_some((StringForm::Json, 1)),
    }
}

const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

fn trimmed(word: &str) -> &str {
    word.trim_end_matches(WHITE)
}

/// Whether a byte ends a word.
fn ends(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']')
}

/// Whether a byte ends a key, or cannot be in one.
fn no_key(byte: u8) -> bool {
    matches!(byte, b':' | b',' | b'{' | b'}' | b'[' | b']' | b'"' | b'<')
}

/// Whether the word may still be a number or a constant with this byte after it.
fn may_follow(word: &str, byte: u8) -> bool {
    if WHITE.contains(&char::from(byte)) {
        return true;
    }
    match word.as_bytes() {
        [] => matches!(byte, b'0'..=b'9' | b'-' | b't' | b'f' | b'n'),
        [.., b' ' | b'\t' | b'\n' | b'\r'] => false,
        [b'0'..=b'9' | b'-', ..] => matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'),
        [..] => {
            let next = |known: &&str| {
                known.starts_with(word) && known.as_bytes().get(word.len()) == Some(&byte)
            };
            ["true", "false", "null"].iter().any(next)
        }
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && event::Raw::parse(word).is_ok()
}
