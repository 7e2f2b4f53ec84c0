//! The values of call expressions (Python's literals, Gemma's braces), turned into JSON text while
//! they stream in.
//!
//! JSON that is certain is written at once, and the splits of the text never show in the result.
//! Each byte is read once, except the few of an escape or a delimiter that a split went through.
//! Control characters, DEL and C1 are escaped. A key that appears twice is written twice: the
//! reader of the JSON refuses it.

mod advance;
mod bare;
mod number;
mod python;
mod reader;
mod string;
#[cfg(test)]
mod tests;

pub use reader::{Literal, Notation, Progress};

use advance::{Advance, Outcome};
use reader::{Bracket, LiteralState, MAX_HELD, OpenBracket, Role, SHORT};
use string::StringForm;

impl Literal {
    /// A reader of one value.
    pub fn value(notation: Notation) -> Literal {
        Literal::new(notation, LiteralState::Value, Vec::new())
    }

    /// A reader of the arguments of a call, as one object: from after the opening bracket up to and
    /// with the closing one. Positional arguments get the names in `positional`, in order.
    pub fn arguments(notation: Notation, positional: Vec<String>) -> Literal {
        Literal::new(notation, LiteralState::Begin, positional)
    }

    /// Takes the next piece, and appends the JSON that is certain to `out`. Leaves at most 12 bytes
    /// for the next time. A number or a word that is the whole value ends before the first byte
    /// that is not its own. After [`Progress::Invalid`] the appended text is of no use.
    pub fn push(&mut self, text: &str, out: &mut String) -> Progress {
        let mut at = 0;
        // The object opens before the first byte.
        if matches!(self.state, LiteralState::Begin) {
            out.push('{');
            let python = self.notation == Notation::Python;
            self.open.push(OpenBracket {
                bracket: if python {
                    Bracket::Call
                } else {
                    Bracket::Object
                },
                filled: false,
            });
            self.state = if python {
                LiteralState::Argument
            } else {
                LiteralState::Key
            };
        }
        loop {
            match &self.state {
                LiteralState::End => return Progress::End(at),
                LiteralState::Failed(why) => return Progress::Invalid(at, why),
                _ if at == text.len() => return Progress::More(at),
                _ => {}
            }
            let mut went = self.step(text, at, out);
            if self.held.len() > MAX_HELD {
                went = Err("a value in round brackets is too long");
            }
            match went {
                Ok(Advance::On(next)) => at = next,
                Ok(Advance::Hold(next)) => return Progress::More(next),
                Ok(Advance::End(next)) => {
                    self.state = LiteralState::End;
                    at = next;
                }
                Err(why) => self.state = LiteralState::Failed(why),
            }
        }
    }

    fn step(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        match &mut self.state {
            LiteralState::Text(quoted) => {
                let quoted = *quoted;
                return match quoted.read(text, at, self.sink(out)) {
                    Advance::End(next) if matches!(quoted, StringForm::Python { .. }) => {
                        self.state = LiteralState::Joint { spaced: false };
                        Ok(Advance::On(next))
                    }
                    Advance::End(next) => {
                        self.sink(out).push('"');
                        Ok(self.scalar(next))
                    }
                    go => Ok(go),
                };
            }
            LiteralState::Number(number) => {
                let sink = if self.undecided.is_empty() {
                    &mut *out
                } else {
                    &mut self.held
                };
                if number.take(text.as_bytes()[at], sink)? {
                    return Ok(Advance::On(at + 1));
                }
                if self.role == Role::Key {
                    sink.push('"');
                }
                return Ok(self.scalar(at));
            }
            LiteralState::Quote { raw } => {
                let raw = *raw;
                return Ok(self.quote(text, at, raw));
            }
            LiteralState::Word => return self.read_word(text, at, out),
            LiteralState::Head => return self.head(text, at, out),
            LiteralState::Bare => return self.bare(text, at, out),
            _ => {}
        }
        let from = at;
        let at = text.len() - text[at..].trim_ascii_start().len();
        if let LiteralState::Joint { spaced } = &mut self.state {
            *spaced |= at > from;
        }
        // White space is a step of its own, so that an error after it has the same offset however
        // the text was split.
        let Some(&byte) = text.as_bytes().get(at).filter(|_| at == from) else {
            return Ok(Advance::On(at));
        };
        match self.state {
            LiteralState::Value => self.value_at(text, at, out),
            LiteralState::Item if self.closes(byte) => self.close(at, out),
            LiteralState::Item => {
                self.comma(out);
                self.state = LiteralState::Value;
                self.value_at(text, at, out)
            }
            LiteralState::Key if byte == b'}' => self.close(at, out),
            LiteralState::Key => self.key(text, at, out),
            LiteralState::Argument if byte == b')' => self.close(at, out),
            LiteralState::Argument => self.argument(text, at, out),
            LiteralState::Splat if byte == b'{' => {
                // Its members are arguments of the call, so the next one needs a comma if the call
                // has arguments.
                let filled = self.open.last().is_some_and(|f| f.filled);
                self.begin(Bracket::Splat, filled)?;
                Ok(self.go(LiteralState::Key, at + 1))
            }
            LiteralState::Splat => Err("the value after ** is not a dict"),
            LiteralState::Joint { spaced } => self.joint(text, at, spaced, out),
            LiteralState::Name => self.name(byte, at, out),
            LiteralState::Colon if byte == b':' => {
                self.sink(out).push(':');
                self.role = Role::Value;
                Ok(self.go(LiteralState::Value, at + 1))
            }
            LiteralState::Colon => Err("a key has no colon after it"),
            LiteralState::Next if byte == b',' => self.next(at, out),
            LiteralState::Next if self.closes(byte) => self.close(at, out),
            LiteralState::Next => {
                Err("a value is followed by neither a comma nor the closing bracket")
            }
            _ => Err(SHORT),
        }
    }

    /// Reads the beginning of a value at `at`; the comma before it is written.
    fn value_at(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        match text.as_bytes()[at] {
            b'{' => {
                self.sink(out).push('{');
                self.begin(Bracket::Object, false)?;
                Ok(self.go(LiteralState::Key, at + 1))
            }
            b'[' => {
                self.sink(out).push('[');
                self.begin(Bracket::Array, false)?;
                Ok(self.go(LiteralState::Item, at + 1))
            }
            _ => match self.notation {
                Notation::Gemma { quote } => self.gemma(text, at, quote, out),
                Notation::Python => self.python(text, at, out),
            },
        }
    }

    /// Reads the beginning of a key at `at`.
    fn key(&mut self, text: &str, at: usize, out: &mut String) -> Outcome {
        if let Notation::Gemma { quote } = self.notation {
            return self.gemma_key(text, at, quote, out);
        }
        let byte = text.as_bytes()[at];
        if matches!(byte, b'{' | b'[' | b'(') {
            return Err("a key is not a string");
        }
        self.comma(out);
        self.role = Role::Key;
        self.python(text, at, out)
    }
}
