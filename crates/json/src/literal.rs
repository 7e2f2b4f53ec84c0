//! Converts the values of call expressions (Python literals, Gemma's braces) to JSON text while
//! they stream in.
//!
//! JSON is written as soon as it is certain, and the result does not depend on how the text was
//! split into pieces. Each byte is read once, except for the few bytes of an escape or a delimiter
//! that was split. Control characters, DEL and C1 are escaped. Duplicate keys are written twice,
//! and the reader of the JSON rejects them.

use event::MAX_DEPTH;

use number::Number;
use string::{Advance, MarkStart, StepOutcome, StringForm, escape};

mod number;
mod string;

impl Literal {
    /// Creates a reader of one value.
    pub fn value(notation: Notation) -> Literal {
        Literal::new(notation, LiteralState::Value, Vec::new())
    }

    /// Creates a reader of a call's arguments, which writes them as one object. It reads from after
    /// the opening bracket up to and including the closing bracket. Positional arguments get the
    /// names in `positional`, in order.
    pub fn arguments(notation: Notation, positional: Vec<String>) -> Literal {
        Literal::new(notation, LiteralState::Begin, positional)
    }

    /// Creates a reader of arguments in Gemma's notation, but in round brackets, and with `=`
    /// accepted after a name. Models sometimes write calls this way
    /// (<https://github.com/NousResearch/hermes-agent/issues/7457>).
    pub fn in_round_brackets(quote: &'static str) -> Literal {
        let mut literal = Literal::new(Notation::Gemma { quote }, LiteralState::Begin, Vec::new());
        literal.is_round = true;
        literal
    }

    /// Reads the next piece, and appends the JSON that is certain to `out`. Leaves at most 12 bytes
    /// unread, which the caller passes again. A number or a word that is the whole value ends
    /// before the first byte that does not belong to it. After [`LiteralProgress::Invalid`] the
    /// appended text is unusable.
    pub fn push(&mut self, text: &str, out: &mut String) -> LiteralProgress {
        let mut at = 0;
        // The object opens before the first byte.
        if matches!(self.state, LiteralState::Begin) {
            out.push('{');
            let python = self.notation == Notation::Python;
            self.open.push(OpenBracket {
                bracket: match python {
                    true => Bracket::Call,
                    false if self.is_round => Bracket::Round,
                    false => Bracket::Object,
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
                LiteralState::End => return LiteralProgress::End(at),
                LiteralState::Failed(why) => return LiteralProgress::Invalid(at, why),
                _ if at == text.len() => return LiteralProgress::More(at),
                _ => {}
            }
            let mut went = self.step(text, at, out);
            if self.held.len() > MAX_HELD {
                went = Err("a value in round brackets is too long");
            }
            match went {
                Ok(Advance::On(next)) => at = next,
                Ok(Advance::Hold(next)) => return LiteralProgress::More(next),
                Ok(Advance::End(next)) => {
                    self.state = LiteralState::End;
                    at = next;
                }
                Err(why) => self.state = LiteralState::Failed(why),
            }
        }
    }

    fn step(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
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
        // White space is a separate step, so that an error after white space has the same offset
        // however the text was split.
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
            LiteralState::Key if self.closes(byte) => self.close(at, out),
            LiteralState::Key => self.key(text, at, out),
            LiteralState::Argument if byte == b')' => self.close(at, out),
            LiteralState::Argument => self.argument(text, at, out),
            LiteralState::Splat if byte == b'{' => {
                // The members of the dict are arguments of the call, so the next member needs a
                // comma if the call already has arguments.
                let filled = self.open.last().is_some_and(|f| f.filled);
                self.begin(Bracket::Splat, filled)?;
                Ok(self.go(LiteralState::Key, at + 1))
            }
            LiteralState::Splat => Err("the value after ** is not a dict"),
            LiteralState::Joint { spaced } => self.joint(text, at, spaced, out),
            LiteralState::Name => self.name(byte, at, out),
            LiteralState::Colon if byte == b':' || (byte == b'=' && self.in_round()) => {
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

    /// Reads the beginning of a value at `at`. The comma before the value is already written.
    fn value_at(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
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
    fn key(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
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

/// A notation of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Python literals and JSON's words: `{'a': [1, True], "b": None}`. Arguments are written
    /// `(a=1, b='x')`.
    Python,
    /// `{key:value,…}` with unquoted keys and words, and strings enclosed in two `quote`s.
    /// Arguments are written `{a:1,b:x}`.
    Gemma {
        /// `<|"|>` (Gemma 4) or `<escape>` (FunctionGemma). A string cannot contain it.
        quote: &'static str,
    },
}

/// The result of reading a piece, with the number of bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralProgress {
    /// The reader needs more text. The caller passes the unread bytes again, followed by more text.
    More(usize),
    /// The value or the arguments ended after these bytes.
    End(usize),
    /// The text is invalid after these bytes; the string completes a sentence that gives the
    /// reason.
    Invalid(usize, &'static str),
}

/// A reader of one value, or of the arguments of one call.
#[derive(Debug)]
pub struct Literal {
    notation: Notation,
    state: LiteralState,
    /// The role of the scalar that is being read.
    role: Role,
    open: Vec<OpenBracket>,
    /// The names for positional arguments.
    positional: std::vec::IntoIter<String>,
    /// Whether the arguments are in round brackets, unlike the notation's own form.
    is_round: bool,
    /// Whether a named argument was read, after which positional arguments are not allowed.
    named: bool,
    /// A word whose kind is still undecided, or the white space after a word.
    word: String,
    /// The output since the first undecided round bracket, which may begin a tuple or merely group,
    /// and the offsets of the undecided brackets in this output.
    held: String,
    undecided: Vec<usize>,
}

/// The maximum length of an undecided word, and of white space inside a word, in bytes.
const MAX_WORD: usize = 4096;
/// The maximum length, in bytes, of JSON that is held back for round brackets that may begin a
/// tuple.
const MAX_HELD: usize = 64 * 1024;

const TOO_LONG: &str = "a word is too long";
const SHORT: &str = "the value is incomplete";

#[derive(Clone, Debug)]
enum LiteralState {
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
    /// After `**`: before a dict whose members are arguments.
    Splat,
    /// At a quotation mark, which may be the first of three.
    Quote {
        raw: bool,
    },
    Text(StringForm),
    /// After a Python string, which another string may extend; `spaced` means after white space.
    Joint {
        spaced: bool,
    },
    Number(Number),
    /// Inside a word, and after a word that may be the name of an argument.
    Word,
    Name,
    /// Gemma: inside a word that may still be a number or a constant, and inside a string or a key.
    Head,
    Bare,
    Colon,
    /// After a value: before a comma or the closing bracket.
    Next,
    End,
    Failed(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Value,
    Key,
    /// A word that may be the name of an argument.
    Argument,
}

#[derive(Clone, Copy, Debug)]
struct OpenBracket {
    bracket: Bracket,
    /// Whether the bracket already has an item or a member, so that the next one needs a comma.
    filled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Object,
    Array,
    Tuple,
    /// Round brackets in which no comma has appeared yet.
    Group,
    /// The arguments of a Python call.
    Call,
    /// A dict whose members are arguments.
    Splat,
    /// The arguments of a Gemma call in round brackets.
    Round,
}

impl Literal {
    fn new(notation: Notation, state: LiteralState, positional: Vec<String>) -> Literal {
        Literal {
            notation,
            state,
            role: Role::Value,
            open: Vec::new(),
            positional: positional.into_iter(),
            is_round: false,
            named: false,
            word: String::new(),
            held: String::new(),
            undecided: Vec::new(),
        }
    }

    /// Ends a scalar before `at`.
    fn scalar(&mut self, at: usize) -> Advance {
        if std::mem::replace(&mut self.role, Role::Value) == Role::Key {
            self.go(LiteralState::Colon, at)
        } else {
            self.ended(at)
        }
    }

    /// Ends a value before `at`.
    fn ended(&mut self, at: usize) -> Advance {
        if self.open.is_empty() {
            Advance::End(at)
        } else {
            self.go(LiteralState::Next, at)
        }
    }

    /// Whether the innermost open bracket is the round bracket of a Gemma call.
    fn in_round(&self) -> bool {
        self.open
            .last()
            .is_some_and(|f| f.bracket == Bracket::Round)
    }

    /// Whether a byte ends a word at this place.
    fn ends(&self, byte: u8) -> bool {
        ends(byte) || (self.in_round() && matches!(byte, b'(' | b')'))
    }

    /// Reads a comma after a value.
    fn next(&mut self, at: usize, out: &mut String) -> StepOutcome {
        let Some(frame) = self.open.last_mut() else {
            return Err(SHORT);
        };
        let state = match frame.bracket {
            Bracket::Object | Bracket::Splat | Bracket::Round => LiteralState::Key,
            Bracket::Call => LiteralState::Argument,
            Bracket::Array | Bracket::Tuple => LiteralState::Item,
            Bracket::Group => {
                frame.bracket = Bracket::Tuple;
                // Brackets inside this bracket are closed, so this bracket is the last undecided
                // one.
                self.held
                    .insert(self.undecided.pop().unwrap_or_default(), '[');
                self.release(out);
                LiteralState::Item
            }
        };
        Ok(self.go(state, at + 1))
    }

    fn closes(&self, byte: u8) -> bool {
        self.open.last().is_some_and(|f| {
            byte == match f.bracket {
                Bracket::Object | Bracket::Splat => b'}',
                Bracket::Array => b']',
                Bracket::Tuple | Bracket::Group | Bracket::Call | Bracket::Round => b')',
            }
        })
    }

    /// Reads the closing bracket at `at`.
    fn close(&mut self, at: usize, out: &mut String) -> StepOutcome {
        let Some(frame) = self.open.pop() else {
            return Err(SHORT);
        };
        match frame.bracket {
            Bracket::Object | Bracket::Call | Bracket::Round => self.sink(out).push('}'),
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

    fn begin(&mut self, bracket: Bracket, filled: bool) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH as usize {
            return Err("the brackets nest too deeply");
        }
        self.open.push(OpenBracket { bracket, filled });
        Ok(())
    }

    /// Writes the comma before an item or a member, unless it is the first.
    fn comma(&mut self, out: &mut String) {
        if self
            .open
            .last_mut()
            .is_some_and(|f| std::mem::replace(&mut f.filled, true))
        {
            self.sink(out).push(',');
        }
    }

    fn go(&mut self, state: LiteralState, at: usize) -> Advance {
        self.state = state;
        Advance::On(at)
    }

    /// Releases the output that was held back, once no bracket is undecided.
    fn release(&mut self, out: &mut String) {
        if self.undecided.is_empty() {
            out.push_str(&self.held);
            self.held.clear();
        }
    }

    /// Returns the buffer to write output to: `held` while a bracket is undecided, otherwise `out`.
    fn sink<'o>(&'o mut self, out: &'o mut String) -> &'o mut String {
        if self.undecided.is_empty() {
            out
        } else {
            &mut self.held
        }
    }
}

const NO_VALUE: &str = "unexpected text where a value should begin";
/// The constants of Python and JSON, with their JSON.
const CONSTANTS: &[(&str, &str)] = &[
    ("True", "true"),
    ("true", "true"),
    ("False", "false"),
    ("false", "false"),
    ("None", "null"),
    ("null", "null"),
];

impl Literal {
    /// Reads the beginning of a Python scalar, or of round brackets.
    fn python(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
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
    fn argument(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
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

    /// Begins an argument without a name, which gets the next positional name.
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

    /// Reads a Python word: a constant, the prefix of a string, or the name of an argument.
    fn read_word(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
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

    /// Decides the kind of a word that begins an argument, at the next byte that is not white
    /// space.
    fn name(&mut self, byte: u8, at: usize, out: &mut String) -> StepOutcome {
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

    /// Writes the word, which ends at `at`, as a constant.
    fn constant(&mut self, at: usize, out: &mut String) -> StepOutcome {
        let json = known(&self.word).ok_or(NO_VALUE)?;
        let quote = if self.role == Role::Key { "\"" } else { "" };
        let sink = self.sink(out);
        for part in [quote, json, quote] {
            sink.push_str(part);
        }
        Ok(self.scalar(at))
    }

    /// Reads the quotation marks that open a Python string: one, three, or the two of an empty
    /// string.
    fn quote(&mut self, text: &str, at: usize, raw: bool) -> Advance {
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

    /// Continues after a Python string. A directly following string, with a prefix only after white
    /// space, is appended; anything else ends the string. Letters directly after a quotation mark
    /// are text, because a model that writes `"A "b" c"` forgot to escape the quotation marks.
    fn joint(&mut self, text: &str, at: usize, spaced: bool, out: &mut String) -> StepOutcome {
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

/// Returns the JSON of a Python or JSON constant, or `None` if the word is not a constant.
fn known(word: &str) -> Option<&'static str> {
    CONSTANTS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, json)| *json)
}

/// Whether the word is the beginning of a constant or of a string's prefix.
fn begins_word(word: &str) -> bool {
    CONSTANTS.iter().any(|(known, _)| known.starts_with(word)) || string::prefix(word).is_some()
}

impl Literal {
    /// Reads the beginning of a scalar at `at`.
    fn gemma(
        &mut self,
        text: &str,
        at: usize,
        quote: &'static str,
        out: &mut String,
    ) -> StepOutcome {
        let rest = &text[at..];
        if MarkStart::with(rest, quote) == MarkStart::Perhaps {
            return Ok(Advance::Hold(at));
        }
        if let Some((quoted, width)) = opening(rest, quote) {
            out.push('"');
            return Ok(self.go(LiteralState::Text(quoted), at + width));
        }
        if self.in_round() && rest.starts_with('\'') {
            out.push('"');
            return Ok(self.go(LiteralState::Quote { raw: false }, at));
        }
        if self.ends(rest.as_bytes()[0]) {
            return Err("a value is missing");
        }
        self.word.clear();
        Ok(self.go(LiteralState::Head, at))
    }

    /// Reads the beginning of a key at `at`.
    fn gemma_key(
        &mut self,
        text: &str,
        at: usize,
        quote: &'static str,
        out: &mut String,
    ) -> StepOutcome {
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
    fn head(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
        for (n, byte) in text[at..].bytes().enumerate() {
            if self.ends(byte) {
                let word = trimmed(&self.word);
                if matches!(word, "true" | "false" | "null") || is_number(word) {
                    out.push_str(word);
                } else if let Some(json) = known(word).filter(|_| self.in_round()) {
                    out.push_str(json);
                } else {
                    out.push('"');
                    escape(word, out);
                    out.push('"');
                }
                return Ok(self.scalar(at + n));
            }
            let is_python = self.in_round() && may_follow_python(&self.word, byte);
            if !is_python && !may_follow(&self.word, byte) {
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
    fn bare(&mut self, text: &str, at: usize, out: &mut String) -> StepOutcome {
        let limit = match self.notation {
            Notation::Gemma { quote } => at + before_quote(&text[at..], quote),
            Notation::Python => text.len(),
        };
        if limit == at && at < text.len() {
            let is_whole =
                matches!(self.notation, Notation::Gemma { quote } if text[at..].starts_with(quote));
            return match is_whole {
                true => Err("a string lacks one of its quotes"),
                false => Ok(Advance::Hold(at)),
            };
        }
        let text = &text[..limit];
        let at = self.run(
            text,
            at,
            match (self.role, self.in_round()) {
                (Role::Key, false) => no_key,
                (Role::Key, true) => |byte| no_key(byte) || matches!(byte, b'=' | b'(' | b')'),
                (_, false) => ends,
                (_, true) => |byte| ends(byte) || matches!(byte, b'(' | b')'),
            },
            out,
        )?;
        if at < text.len() {
            out.push('"');
            return Ok(self.scalar(at));
        }
        Ok(Advance::On(at))
    }

    /// Writes a word up to its end, without trailing white space. White space that may be trailing
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

/// Returns the kind of string at the beginning of `rest`, and the length of its opening mark.
fn opening(rest: &str, quote: &'static str) -> Option<(StringForm, usize)> {
    match rest.strip_prefix(quote) {
        Some(_) => Some((StringForm::Between(quote), quote.len())),
        None => rest.starts_with('"').then_some((StringForm::Json, 1)),
    }
}

/// Returns the length of the text before the first quote, or before a possible beginning of a
/// quote.
fn before_quote(text: &str, quote: &str) -> usize {
    let first = quote.chars().next().unwrap_or('<');
    let is_quote = |at: &usize| text[*at..].starts_with(quote) || quote.starts_with(&text[*at..]);
    let mut starts = text.match_indices(first).map(|(at, _)| at);
    starts.find(is_quote).unwrap_or(text.len())
}

const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

fn trimmed(word: &str) -> &str {
    word.trim_end_matches(WHITE)
}

/// Whether a byte ends a word.
fn ends(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']')
}

/// Whether a byte ends a key, or is not allowed in a key.
fn no_key(byte: u8) -> bool {
    matches!(byte, b':' | b',' | b'{' | b'}' | b'[' | b']' | b'"' | b'<')
}

/// Whether the word may still be a Python constant if this byte follows.
fn may_follow_python(word: &str, byte: u8) -> bool {
    let may_be = |known: &str| {
        known.starts_with(word) && known.as_bytes().get(word.len()).is_some_and(|c| *c == byte)
    };
    CONSTANTS.iter().any(|(known, _)| may_be(known))
}

/// Whether the word may still be a number or a constant if this byte follows.
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
