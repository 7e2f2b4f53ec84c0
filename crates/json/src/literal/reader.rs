//! The state of a reader, and what both notations do with it: brackets, commas, and output that is held back.

use super::advance::{Advance, Outcome};
use super::number::Number;
use super::string::StringForm;
use event::MAX_DEPTH;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Python's literals, and JSON's words: `{'a': [1, True], "b": None}`. Arguments stand in `(a=1, b='x')`.
    Python,
    /// `{key:value,…}` with bare keys and words, and strings between two of `quote`. Arguments stand in `{a:1,b:x}`.
    Gemma {
        /// `<|"|>` (Gemma 4) or `<escape>` (FunctionGemma). A string has no escape for it.
        quote: &'static str,
    },
}

/// How far a reader came, in bytes of the text it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It needs more text. Bytes after these are given again, with more behind them.
    More(usize),
    /// What it reads ended after these bytes.
    End(usize),
    /// After these bytes the text breaks the notation: why, as the end of a sentence.
    Invalid(usize, &'static str),
}

/// A reader of one value, or of the arguments of one call.
#[derive(Debug)]
pub struct Literal {
    pub(super) notation: Notation,
    pub(super) state: LiteralState,
    /// What the scalar in hand is.
    pub(super) role: Role,
    pub(super) open: Vec<OpenBracket>,
    /// The names that positional arguments take.
    pub(super) positional: std::vec::IntoIter<String>,
    /// An argument with a name was read: no positional one may follow.
    pub(super) named: bool,
    /// A word that is not decided yet, or the white space after one.
    pub(super) word: String,
    /// The output since the first of the brackets that may be a tuple's or may only group, and where in it each of them stands.
    pub(super) held: String,
    pub(super) undecided: Vec<usize>,
}

/// How far a word may go before it is decided, and white space inside one, in bytes.
pub(super) const MAX_WORD: usize = 4096;
/// How much may stand in round brackets before it is known whether they are a tuple's, in bytes of JSON.
pub(super) const MAX_HELD: usize = 64 * 1024;

pub(super) const TOO_LONG: &str = "a word is too long";
pub(super) const SHORT: &str = "the value is incomplete";

#[derive(Clone, Debug)]
pub(super) enum LiteralState {
    /// Before the arguments.
    Begin,
    /// A value must come.
    Value,
    /// A value or the closing bracket.
    Item,
    /// A key or the closing bracket.
    Key,
    /// An argument or the closing bracket of the call.
    Argument,
    /// After `**`: a dict, whose members are arguments.
    Splat,
    /// At a quotation mark, which may be one of three.
    Quote {
        raw: bool,
    },
    Text(StringForm),
    /// After a string of Python, which the next one may join.
    Joint,
    Number(Number),
    /// Inside a word, and after one that may be the name of an argument.
    Word,
    Name,
    /// Gemma: a word that may still be a number or a constant, one that is a string, and one that is a key.
    Head,
    Bare,
    BareKey,
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
    /// It may be the name of an argument.
    Argument,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBracket {
    pub(super) bracket: Bracket,
    /// Something stands in it, so that a comma comes before the next.
    pub(super) filled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    Object,
    Array,
    Tuple,
    /// Round brackets with no comma in them so far.
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

    /// A scalar ended before `at`.
    pub(super) fn scalar(&mut self, at: usize) -> Advance {
        if std::mem::replace(&mut self.role, Role::Value) == Role::Key {
            self.go(LiteralState::Colon, at)
        } else {
            self.ended(at)
        }
    }

    /// A value ended before `at`.
    pub(super) fn ended(&mut self, at: usize) -> Advance {
        if self.open.is_empty() { Advance::End(at) } else { self.go(LiteralState::Next, at) }
    }

    /// A comma after a value.
    pub(super) fn next(&mut self, at: usize, out: &mut String) -> Outcome {
        let Some(frame) = self.open.last_mut() else { return Err(SHORT) };
        let state = match frame.bracket {
            Bracket::Object | Bracket::Splat => LiteralState::Key,
            Bracket::Call => LiteralState::Argument,
            Bracket::Array | Bracket::Tuple => LiteralState::Item,
            Bracket::Group => {
                frame.bracket = Bracket::Tuple;
                // Brackets inside this one are closed, so that it is the last that was not decided.
                self.held.insert(self.undecided.pop().unwrap_or_default(), '[');
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

    /// The closing bracket at `at`.
    pub(super) fn close(&mut self, at: usize, out: &mut String) -> Outcome {
        let Some(frame) = self.open.pop() else { return Err(SHORT) };
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

    /// The comma before an item or a member, unless it is the first.
    pub(super) fn comma(&mut self, out: &mut String) {
        if self.open.last_mut().is_some_and(|f| std::mem::replace(&mut f.filled, true)) {
            self.sink(out).push(',');
        }
    }

    pub(super) fn go(&mut self, state: LiteralState, at: usize) -> Advance {
        self.state = state;
        Advance::On(at)
    }

    /// Writes what was held, once nothing is undecided.
    pub(super) fn release(&mut self, out: &mut String) {
        if self.undecided.is_empty() {
            out.push_str(&self.held);
            self.held.clear();
        }
    }

    /// Where output goes.
    pub(super) fn sink<'o>(&'o mut self, out: &'o mut String) -> &'o mut String {
        if self.undecided.is_empty() { out } else { &mut self.held }
    }
}
