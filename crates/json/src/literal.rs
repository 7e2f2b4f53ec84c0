//! Values as call expressions hold them (Python's literals, Gemma's braces), turned into JSON text while they stream in.
//!
//! What is certain is written at once, and how the text was cut never shows in the outcome. No byte is looked at twice but the
//! few of an escape or a delimiter that a cut went through; nothing is parsed again. Control characters, DEL and C1 leave
//! escaped. A key that stands twice is passed on twice: what reads the JSON refuses it.

mod bare;
mod number;
mod python;
mod string;
#[cfg(test)]
mod tests;

use event::MAX_DEPTH;
use number::Number;
use string::Quoted;

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
    notation: Notation,
    state: State,
    /// What the scalar in hand is.
    role: Role,
    open: Vec<Frame>,
    /// The names that positional arguments take.
    positional: std::vec::IntoIter<String>,
    /// An argument with a name was read: no positional one may follow.
    named: bool,
    /// A word that is not decided yet, or the white space after one.
    word: String,
    /// The output since the first of the brackets that may be a tuple's or may only group, and where in it each of them stands.
    held: String,
    undecided: Vec<usize>,
}

/// How far a word may go before it is decided, and white space inside one, in bytes.
const MAX_WORD: usize = 4096;
/// How much may stand in round brackets before it is known whether they are a tuple's, in bytes of JSON.
const MAX_HELD: usize = 64 * 1024;

const TOO_LONG: &str = "a word is too long";
const SHORT: &str = "the value is incomplete";

#[derive(Clone, Debug)]
enum State {
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
    Text(Quoted),
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
enum Role {
    Value,
    Key,
    /// It may be the name of an argument.
    Argument,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    /// Something stands in it, so that a comma comes before the next.
    filled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

/// Where reading goes on, in bytes of the text.
enum Go {
    On(usize),
    /// The rest has to be seen together with what follows it.
    Hold(usize),
    End(usize),
}

type Went = Result<Go, &'static str>;

impl Literal {
    /// Reads one value.
    pub fn value(notation: Notation) -> Literal {
        Literal::new(notation, State::Value, Vec::new())
    }

    /// Reads the arguments of a call as one object, from just after its opening bracket up to and with the closing one.
    /// Positional arguments take the names in `positional`, in their order.
    pub fn arguments(notation: Notation, positional: Vec<String>) -> Literal {
        Literal::new(notation, State::Begin, positional)
    }

    fn new(notation: Notation, state: State, positional: Vec<String>) -> Literal {
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

    /// Reads on, and appends the JSON that is certain to `out`. At most 12 bytes are not taken. A number or a word that is the whole
    /// value ends before the first byte that is not its own. After a failure what was appended is to be thrown away.
    pub fn push(&mut self, text: &str, out: &mut String) -> Progress {
        let mut at = 0;
        // The state before the first byte has something to say by itself.
        if matches!(self.state, State::Begin) {
            out.push('{');
            let python = self.notation == Notation::Python;
            self.open.push(Frame { kind: if python { Kind::Call } else { Kind::Object }, filled: false });
            self.state = if python { State::Argument } else { State::Key };
        }
        loop {
            match &self.state {
                State::End => return Progress::End(at),
                State::Failed(why) => return Progress::Invalid(at, why),
                _ if at == text.len() => return Progress::More(at),
                _ => {}
            }
            let mut went = self.step(text, at, out);
            if self.held.len() > MAX_HELD {
                went = Err("a value in round brackets is too long");
            }
            match went {
                Ok(Go::On(next)) => at = next,
                Ok(Go::Hold(next)) => return Progress::More(next),
                Ok(Go::End(next)) => {
                    self.state = State::End;
                    at = next;
                }
                Err(why) => self.state = State::Failed(why),
            }
        }
    }

    fn step(&mut self, text: &str, at: usize, out: &mut String) -> Went {
        match &mut self.state {
            State::Text(quoted) => {
                let quoted = *quoted;
                return match quoted.read(text, at, self.sink(out)) {
                    Go::End(next) if matches!(quoted, Quoted::Python { .. }) => {
                        self.state = State::Joint;
                        Ok(Go::On(next))
                    }
                    Go::End(next) => {
                        self.sink(out).push('"');
                        Ok(self.scalar(next))
                    }
                    go => Ok(go),
                };
            }
            State::Number(number) => {
                let sink = if self.undecided.is_empty() { &mut *out } else { &mut self.held };
                if number.take(text.as_bytes()[at], sink)? {
                    return Ok(Go::On(at + 1));
                }
                if self.role == Role::Key {
                    sink.push('"');
                }
                return Ok(self.scalar(at));
            }
            State::Quote { raw } => {
                let raw = *raw;
                return Ok(self.quote(text, at, raw));
            }
            State::Word => return self.read_word(text, at, out),
            State::Head => return self.head(text, at, out),
            State::Bare => return self.bare(text, at, out),
            State::BareKey => return self.bare_key(text, at, out),
            _ => {}
        }
        let at = at + space(&text[at..]);
        let Some(&byte) = text.as_bytes().get(at) else { return Ok(Go::On(at)) };
        match self.state {
            State::Value => self.value_at(text, at, out),
            State::Item if self.closes(byte) => self.close(at, out),
            State::Item => {
                self.comma(out);
                self.state = State::Value;
                self.value_at(text, at, out)
            }
            State::Key if byte == b'}' => self.close(at, out),
            State::Key => self.key(text, at, out),
            State::Argument if byte == b')' => self.close(at, out),
            State::Argument => self.argument(text, at, out),
            State::Splat if byte == b'{' => {
                // Its members are the call's own: what stands in the call stands in it.
                let filled = self.open.last().is_some_and(|f| f.filled);
                self.begin(Kind::Splat, filled)?;
                Ok(self.go(State::Key, at + 1))
            }
            State::Splat => Err("the value after ** is not a dict"),
            State::Joint => self.joint(text, at, out),
            State::Name => self.name(byte, at, out),
            State::Colon if byte == b':' => {
                self.sink(out).push(':');
                self.role = Role::Value;
                Ok(self.go(State::Value, at + 1))
            }
            State::Colon => Err("a key has no colon after it"),
            State::Next if byte == b',' => self.next(at, out),
            State::Next if self.closes(byte) => self.close(at, out),
            State::Next => Err("a value is followed by neither a comma nor the closing bracket"),
            _ => Err(SHORT),
        }
    }

    /// A value begins at `at`; the comma before it is written.
    fn value_at(&mut self, text: &str, at: usize, out: &mut String) -> Went {
        match text.as_bytes()[at] {
            b'{' => {
                self.sink(out).push('{');
                self.begin(Kind::Object, false)?;
                Ok(self.go(State::Key, at + 1))
            }
            b'[' => {
                self.sink(out).push('[');
                self.begin(Kind::Array, false)?;
                Ok(self.go(State::Item, at + 1))
            }
            _ => match self.notation {
                Notation::Gemma { quote } => self.gemma(text, at, quote, out),
                Notation::Python => self.python(text, at, out),
            },
        }
    }

    /// A key of an object begins at `at`.
    fn key(&mut self, text: &str, at: usize, out: &mut String) -> Went {
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

    /// A scalar ended before `at`.
    fn scalar(&mut self, at: usize) -> Go {
        if std::mem::replace(&mut self.role, Role::Value) == Role::Key {
            self.go(State::Colon, at)
        } else {
            self.ended(at)
        }
    }

    /// A value ended before `at`.
    fn ended(&mut self, at: usize) -> Go {
        if self.open.is_empty() { Go::End(at) } else { self.go(State::Next, at) }
    }

    /// A comma after a value.
    fn next(&mut self, at: usize, out: &mut String) -> Went {
        let Some(frame) = self.open.last_mut() else { return Err(SHORT) };
        let state = match frame.kind {
            Kind::Object | Kind::Splat => State::Key,
            Kind::Call => State::Argument,
            Kind::Array | Kind::Tuple => State::Item,
            Kind::Group => {
                frame.kind = Kind::Tuple;
                // Brackets inside this one are closed, so that it is the last that was not decided.
                self.held.insert(self.undecided.pop().unwrap_or_default(), '[');
                self.release(out);
                State::Item
            }
        };
        Ok(self.go(state, at + 1))
    }

    fn closes(&self, byte: u8) -> bool {
        self.open.last().is_some_and(|f| {
            byte == match f.kind {
                Kind::Object | Kind::Splat => b'}',
                Kind::Array => b']',
                Kind::Tuple | Kind::Group | Kind::Call => b')',
            }
        })
    }

    /// The closing bracket at `at`.
    fn close(&mut self, at: usize, out: &mut String) -> Went {
        let Some(frame) = self.open.pop() else { return Err(SHORT) };
        match frame.kind {
            Kind::Object | Kind::Call => self.sink(out).push('}'),
            Kind::Array | Kind::Tuple => self.sink(out).push(']'),
            Kind::Splat => {
                self.named = true;
                if let Some(call) = self.open.last_mut() {
                    call.filled = frame.filled;
                }
            }
            Kind::Group => {
                if !frame.filled {
                    self.held.push_str("[]");
                }
                self.undecided.pop();
            }
        }
        self.release(out);
        Ok(self.ended(at + 1))
    }

    fn begin(&mut self, kind: Kind, filled: bool) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH as usize {
            return Err("the brackets nest too deeply");
        }
        self.open.push(Frame { kind, filled });
        Ok(())
    }

    /// The comma before an item or a member, unless it is the first.
    fn comma(&mut self, out: &mut String) {
        if self.open.last_mut().is_some_and(|f| std::mem::replace(&mut f.filled, true)) {
            self.sink(out).push(',');
        }
    }

    fn go(&mut self, state: State, at: usize) -> Go {
        self.state = state;
        Go::On(at)
    }

    /// Writes what was held, once nothing is undecided.
    fn release(&mut self, out: &mut String) {
        if self.undecided.is_empty() {
            out.push_str(&self.held);
            self.held.clear();
        }
    }

    /// Where output goes.
    fn sink<'o>(&'o mut self, out: &'o mut String) -> &'o mut String {
        if self.undecided.is_empty() { out } else { &mut self.held }
    }
}

/// How many bytes of white space `text` begins with.
fn space(text: &str) -> usize {
    text.bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')).count()
}
