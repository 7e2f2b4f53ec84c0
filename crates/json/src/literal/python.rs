//! The parts that only Python's notation has: prefixes and joined strings, round brackets,
//! arguments with and without names.

use super::advance::{Advance, Outcome};
use super::number::Number;
use super::reader::{Bracket, Literal, LiteralState, MAX_WORD, Role, TOO_LONG};
use super::string::{self, StringForm, escape};

const NO_VALUE: &str = "unexpected text where a value should begin";
/// The constants of Python and of JSON, in JSON.
const CONSTANTS: &[(&str, &str)] = &[
    ("True", "true"),
    ("true", "true"),
    ("False", "false"),
    ("false", "false"),
    ("None", "null"),
    ("null", "null"),
];

impl Literal {
    /// Reads the beginning of a scalar of Python, or of round brackets.
    pub(super) fn python(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        let key = self.role == Role::Key;
        match text.as_bytes()[at] {
            b'"' | b'\'' => {
                self.sink(out).push('"');
                Ok(self.go(LiteralState::Quote { raw: false }, at))
            }
            b'(' => {
                if self.undecided.is_empty() {
                    self.held.clear();
                }
                self.undecided.push(self.held.len());
                self.begin(Bracket::Group, false)?;
                Ok(self.go(LiteralState::Item, at + 1))
            }
            b'0'..=b'9' | b'+' | b'-' | b'.' => {
                if key {
                    self.sink(out).push('"');
                }
                Ok(self.go(LiteralState::Number(Number::new()), at))
            }
            _ => {
                self.word.clear();
                Ok(self.go(LiteralState::Word, at))
            }
        }
    }

    /// Reads the beginning of an argument at `at`.
    pub(super) fn argument(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        let rest = &text[at..];
        if rest.starts_with('*') {
            return match rest.as_bytes().get(1) {
                None => Ok(Advance::Hold(at)),
                Some(b'*') => Ok(self.go(LiteralState::Splat, at + 2)),
                Some(_) => Err("the call unpacks a list"),
            };
        }
        if rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            self.role = Role::Argument;
            self.word.clear();
            return Ok(self.go(LiteralState::Word, at));
        }
        self.unnamed(out)?;
        Ok(self.go(LiteralState::Value, at))
    }

    /// Begins an argument without a name: it gets the next positional one.
    fn unnamed(&mut self, out: &mut String) -> Result<(), &'static str> {
        if self.named {
            return Err("an argument without a name comes after one with a name");
        }
        let Some(name) = self.positional.next() else {
            return Err("an argument has no name");
        };
        self.member(&name, out);
        self.role = Role::Value;
        Ok(())
    }

    /// Writes the key of an argument.
    fn member(&mut self, name: &str, out: &mut String) {
        self.comma(out);
        let sink = self.sink(out);
        sink.push('"');
        escape(name, sink);
        sink.push_str("\":");
    }

    /// Reads a word of Python: a constant, the prefix of a string, or the name of an argument.
    pub(super) fn read_word(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        let argument = self.role == Role::Argument;
        let own = |c: char| c.is_alphanumeric() || c == '_' || (argument && matches!(c, '-' | '.'));
        // Stops at the first character that makes the word invalid, so that the error has the same
        // offset however the text was split.
        let mut end = at;
        for c in text[at..].chars().take_while(|c| own(*c)) {
            self.word.push(c);
            if !(if argument {
                self.word.len() <= MAX_WORD
            } else {
                begins_word(&self.word)
            }) {
                self.word.pop();
                break;
            }
            end += c.len_utf8();
        }
        if end > at {
            return Ok(Advance::On(end));
        }
        if text[at..].starts_with(own) {
            return Err(if argument { TOO_LONG } else { NO_VALUE });
        }
        let Some(&byte) = text.as_bytes().get(end) else {
            return Ok(Advance::On(end));
        };
        if let (b'"' | b'\'', Some(raw)) = (byte, string::prefix(&self.word)) {
            if argument {
                self.unnamed(out)?;
            }
            self.sink(out).push('"');
            return Ok(self.go(LiteralState::Quote { raw }, end));
        }
        if argument {
            return Ok(self.go(LiteralState::Name, end));
        }
        self.constant(end, out)
    }

    /// Decides on a word that begins an argument, at the next byte that is not white space.
    pub(super) fn name(&mut self, byte: u8, at: usize, out: &mut String) -> Outcome {
        if byte != b'=' {
            known(&self.word).ok_or(NO_VALUE)?;
            self.unnamed(out)?;
            return self.constant(at, out);
        }
        self.named = true;
        let name = std::mem::take(&mut self.word);
        self.member(&name, out);
        self.role = Role::Value;
        Ok(self.go(LiteralState::Value, at + 1))
    }

    /// Writes the word as a constant, which ends at `at`.
    fn constant(&mut self, at: usize, out: &mut String) -> Outcome {
        let json = known(&self.word).ok_or(NO_VALUE)?;
        let quote = if self.role == Role::Key { "\"" } else { "" };
        let sink = self.sink(out);
        for part in [quote, json, quote] {
            sink.push_str(part);
        }
        Ok(self.scalar(at))
    }

    /// Reads the quotation marks that open a string of Python: one, three, or the two of an empty
    /// string.
    pub(super) fn quote(&mut self, text: &str, at: usize, raw: bool) -> Advance {
        let rest = &text.as_bytes()[at..];
        let quote = rest[0];
        let marks = rest.iter().take(3).take_while(|b| **b == quote).count();
        if marks == rest.len() && marks < 3 {
            return Advance::Hold(at);
        }
        let (state, width) = match marks {
            2 => (LiteralState::Joint { spaced: false }, 2),
            n => (
                LiteralState::Text(StringForm::Python {
                    quote,
                    triple: n == 3,
                    raw,
                }),
                n,
            ),
        };
        self.go(state, at + width)
    }

    /// Reads on after a string of Python: the next string joins it, with its prefix after white
    /// space; anything else ends it. Letters right after a quotation mark are text: a model that
    /// writes `"A "b" c"` forgot to escape the quotation marks.
    pub(super) fn joint(
        &mut self,
        text: &str,
        at: usize,
        spaced: bool,
        out: &mut String,
    ) -> Outcome {
        let rest = &text.as_bytes()[at..];
        let letters = if spaced {
            rest.iter()
                .take(3)
                .take_while(|b| b.is_ascii_alphabetic())
                .count()
        } else {
            0
        };
        match rest.get(letters) {
            None if string::prefix(&text[at..]).is_some() => return Ok(Advance::Hold(at)),
            Some(b'"' | b'\'') => {
                if let Some(raw) = string::prefix(&text[at..at + letters]) {
                    return Ok(self.go(LiteralState::Quote { raw }, at + letters));
                }
            }
            _ => {}
        }
        self.sink(out).push('"');
        Ok(self.scalar(at))
    }
}

/// The JSON of a constant of Python or JSON.
fn known(word: &str) -> Option<&'static str> {
    CONSTANTS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, json)| *json)
}

/// Whether this is the beginning of a constant or of a string's prefix.
fn begins_word(word: &str) -> bool {
    CONSTANTS.iter().any(|(known, _)| known.starts_with(word)) || string::prefix(word).is_some()
}
