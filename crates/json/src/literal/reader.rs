//! The state of a reader, and the steps of both notations: brackets, commas, and output that is
//! held back.

use super::advance::{Advance, Outcome};
use super::number::Number;
use super::string::StringForm;
use event::MAX_DEPTH;

/// A notation of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Python's literals, and JSON's words: `{'a': [1, True], "b": None}`. Arguments are written
    /// `(a=1, b='x')`.
    Python,
    /// `{key:value,…}` with bare keys and words, and strings between two of `quote`. Arguments are
    /// written `{a:1,b:x}`.
    Gemma {
        /// `<|"|>` (Gemma 4) or `<escape>` (FunctionGemma). A string cannot contain it.
        quote: &'static str,
    },
}

/// The result of a piece: how many of its bytes were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reader needs more text. The caller passes the other bytes again, with more text behind
    /// them.
    More(usize),
    /// The value or the arguments ended after these bytes.
    End(usize),
    /// After these bytes the text breaks the notation: why, as the end of a sentence.
    Invalid(usize, &'static str),
}

/// A reader of one value, or of the arguments of one call.
#[derive(Debug)]
pub struct Literal {
    pub(super) notation: Notation,
    pub(super) state: LiteralState,
    /// The role of the scalar that is being read.
    pub(super) role: Role,
    pub(super) open: Vec<OpenBracket>,
    /// The names for positional arguments.
    pub(super) positional: std::vec::IntoIter<String>,
    /// Whether an argument with a name was read, after which no positional one may follow.
    pub(super) named: bool,
    /// A word that may still be one thing or another, or the white space after one.
    pub(super) word: String,
    /// The output since the first round bracket that may begin a tuple or only group, and the
    /// offsets of these brackets in it.
    pub(super) held: String,
    pub(super) undecided: Vec<usize>,
}

/// The longest word that is kept until it is decided, and the longest white space inside one, in
/// bytes.
pub(super) const MAX_WORD: usize = 4096;
/// The most JSON that is held back for round brackets that may be a tuple's, in bytes.
pub(super) const MAX_HELD: usize = 64 * 1024;

pub(super) const TOO_LONG: &str = "a word is too long";
pub(super) const SHORT: &str = "the value is incomplete";

#[derive(Clone, Debug)]
pub(super) enum LiteralState {
    /// Before the arguments.
    Begin,
    /// Before a value.
    Value,
    /// Before a value or the closing bracket.
    Item,
    /// Before a key or the closing bracket.
    Key,
    /// Before an argument or the closing bracket of the call.
    Argument,
    /// After `**`: a dict, whose members are arguments.
    Splat,
    /// At a quotation mark, which may be the first of three.
    Quote {
        raw: bool,
    },
    Text(StringForm),
    /// After a string of Python, which another may join; `spaced`: after white space.
    Joint {
        spaced: bool,
    },
    Number(Number),
    /// Inside a word, and after one that may be the name of an argument.
    Word,
    Name,
    /// Gemma: a word that may still be a number or a constant, and one that is a string or a key.
    Head,
    Bare,
    Colon,
    /// After a value: a comma or the closing bracket.
    Next,
    End,
    Failed(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Value,
    Key,
    /// Perhaps the name of an argument.
    Argument,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBracket {
    pub(super) bracket: Bracket,
    /// Whether it has an item or a member, so that the next needs a comma.
    pub(super) filled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    Object,
    Array,
    Tuple,
    /// Round brackets without a comma so far.
    Group,
    /// The arguments of a call of Python.
    Call,
    /// A dict whose members are arguments.
    Splat,
}

impl Literal {
    pub(super) fn new(notation: Notation, state: LiteralState, positional: Vec<String>) -> Literal {
        Literal {
            notation,
            state,
            role: Role::Value,
            open: Vec::new(),
            positional: positional.into_iter(),
            named: false,
            word: String::new(),
            held: String::new(),
            undecided: Vec::new(),
        }
    }

    /// Ends a scalar before `at`.
    pub(super) fn scalar(&mut self, at: usize) -> Advance {
        if std::mem::replace(&mut self.role, Role::Value) == Role::Key {
            self.go(LiteralState::Colon, at)
        } else {
            self.ended(at)
        }
    }

    /// Ends a value before `at`.
    pub(super) fn ended(&mut self, at: usize) -> Advance {
        if self.open.is_empty() {
            Advance::End(at)
        } else {
            self.go(LiteralState::Next, at)
        }
    }

    /// Reads a comma after a value.
    pub(super) fn next(&mut self, at: usize, out: &mut String) -> Outcome {
        let Some(frame) = self.open.last_mut() else {
            return Err(SHORT);
        };
        let state = match frame.bracket {
            Bracket::Object | Bracket::Splat => LiteralState::Key,
            Bracket::Call => LiteralState::Argument,
            Bracket::Array | Bracket::Tuple => LiteralState::Item,
            Bracket::Group => {
                frame.bracket = Bracket::Tuple;
                // Brackets inside this one are closed, so it is the last undecided one.
                self.held
                    .insert(self.undecided.pop().unwrap_or_default(), '[');
                self.release(out);
                LiteralState::Item
            }
        };
        Ok(self.go(state, at + 1))
    }

    pub(super) fn closes(&self, byte: u8) -> bool {
        self.open.last().is_some_and(|f| {
            byte == match f.bracket {
                Bracket::Object | Bracket::Splat => b'}',
                Bracket::Array => b']',
                Bracket::Tuple | Bracket::Group | Bracket::Call => b')',
            }
        })
    }

    /// Reads the closing bracket at `at`.
    pub(super) fn close(&mut self, at: usize, out: &mut String) -> Outcome {
        let Some(frame) = self.open.pop() else {
            return Err(SHORT);
        };
        match frame.bracket {
            Bracket::Object | Bracket::Call => self.sink(out).push('}'),
            Bracket::Array | Bracket::Tuple => self.sink(out).push(']'),
            Bracket::Splat => {
                self.named = true;
                if let Some(call) = self.open.last_mut() {
                    call.filled = frame.filled;
                }
            }
            Bracket::Group => {
                if !frame.filled {
                    self.held.push_str("[]");
                }
                self.undecided.pop();
            }
        }
        self.release(out);
        Ok(self.ended(at + 1))
    }

    pub(super) fn begin(&mut self, bracket: Bracket, filled: bool) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH as usize {
            return Err("the brackets nest too deeply");
        }
        self.open.push(OpenBracket { bracket, filled });
        Ok(())
    }

    /// Writes the comma before an item or a member, unless it is the first.
    pub(super) fn comma(&mut self, out: &mut String) {
        if self
            .open
            .last_mut()
            .is_some_and(|f| std::mem::replace(&mut f.filled, true))
        {
            self.sink(out).push(',');
        }
    }

    pub(super) fn go(&mut self, state: LiteralState, at: usize) -> Advance {
        self.state = state;
        Advance::On(at)
    }

    /// Releases the output that was held back, once no bracket is undecided.
    pub(super) fn release(&mut self, out: &mut String) {
        if self.undecided.is_empty() {
            out.push_str(&self.held);
            self.held.clear();
        }
    }

    /// Where output is written: held back while a bracket is undecided.
    pub(super) fn sink<'o>(&'o mut self, out: &'o mut String) -> &'o mut String {
        if self.undecided.is_empty() {
            out
        } else {
            &mut self.held
        }
    }
}
