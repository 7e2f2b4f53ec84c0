//! Calls that are written as JSON objects with a name and arguments: one, several, or an array of them.
//!
//! The members are read as they come, in any order. The arguments go on byte for byte; only where they come before the name are
//! they kept until it is known, and where they are a string of JSON until that string ends.

use crate::calls::{Calls, Context, End, Step};
use crate::dialect::{Keys, Shape};
use crate::mark::floor;
use event::Raw;
use json::Balance;
use json::{Literal, Notation, Progress};

/// The longest name, key or id that is waited for, in bytes.
const LONGEST: usize = 512;
/// How much of arguments is kept that come before a name, where nothing marks them as a call's.
const KEPT: usize = 4096;
const TOO_LONG: &str = "a key, name or id in the JSON is too long";

/// Where in the JSON the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the first bracket.
    Start,
    /// In an array: before an object.
    Item,
    /// In an array: after an object.
    Comma,
    /// In an object: before a key. The flag says that a comma came before, so that it cannot end here.
    Key(bool),
    /// Inside a key.
    KeyText,
    /// After a key.
    Colon,
    /// Before a value.
    Value,
    /// Inside a string or a container.
    Inside,
    /// Inside a number, `true`, `false` or `null`.
    Word,
    /// After a value.
    Next,
    /// After an object that stands alone: another may follow.
    After,
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Name,
    Arguments,
    Id,
    /// OpenAI's `"function": {"name": …}`: the object inside is the call.
    Function,
    Other,
}

/// The engine; see the module.
#[derive(Debug)]
pub(crate) struct Envelope {
    keys: &'static Keys,
    at: At,
    array: bool,
    /// Objects of the `function` member that are open.
    nested: u8,
    role: Role,
    balance: Balance,
    /// The value at hand is a string.
    string: bool,
    /// A key, a name or an id so far, with its quotes; or arguments that wait, for a name or for the end of their string.
    word: String,
    kept: String,
    call: Call,
    /// Whether a value of some length was read, so that what stands inside it must not be read as something else.
    deep: bool,
    /// Python's notation is turned into JSON first.
    python: Option<Box<(Literal, String)>>,
}

/// The call at hand.
#[derive(Debug, Default)]
struct Call {
    name: Option<String>,
    id: Option<String>,
    begun: bool,
    arguments: bool,
}

impl Envelope {
    /// Begins before the first bracket.
    pub fn new(keys: &'static Keys) -> Self {
        Envelope {
            keys,
            at: At::Start,
            array: false,
            nested: 0,
            role: Role::Other,
            balance: Balance::default(),
            string: false,
            word: String::new(),
            kept: String::new(),
            call: Call::default(),
            deep: false,
            python: (keys.shape == Shape::Python).then(|| Box::new((Literal::value(Notation::Python), String::new()))),
        }
    }

    /// Whether arguments have been read, begun or kept: text inside them is theirs.
    pub fn is_deep(&self) -> bool {
        self.deep
    }

    /// Whether the text may end here.
    pub fn finish(&self) -> bool {
        self.at == At::After
    }

    /// Takes a piece that is all inside the arguments of a call that has begun, if it is.
    #[inline]
    pub fn arguments(&mut self, text: &str, calls: &mut Calls) -> bool {
        let streams = self.at == At::Inside
            && self.role == Role::Arguments
            && self.call.begun
            && !self.string
            && self.python.is_none();
        if !streams {
            return false;
        }
        let mut balance = self.balance;
        if balance.push(text.as_bytes()).is_some() {
            return false;
        }
        self.balance = balance;
        calls.arguments_until(text, End::Later);
        true
    }

    /// Takes the next piece.
    pub fn push(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Step {
        let Some(mut python) = self.python.take() else { return self.json(text, context, calls) };
        let step = self.notation(&mut python, text, context, calls);
        self.python = Some(python);
        step
    }

    /// Python's notation, a character at a time, so that it is known where in it the JSON breaks.
    fn notation(
        &mut self,
        (literal, json): &mut (Literal, String),
        text: &str,
        context: &Context<'_>,
        calls: &mut Calls,
    ) -> Step {
        let mut taken = 0;
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        for end in ends {
            let step = literal.push(&text[taken..end], json);
            // A call of the list is whole when the list is: what follows one may not have been read by the notation yet.
            let mut at = 0;
            loop {
                match self.json(&json[at..], context, calls) {
                    Step::Whole(n) => at += n,
                    Step::Fail(_, why) => return Step::Fail(taken, why),
                    _ => break,
                }
            }
            json.clear();
            match step {
                Progress::More(n) => taken += n,
                Progress::End(n) => return Step::Done(taken + n),
                Progress::Invalid(n, why) => return Step::Fail(taken + n, why),
            }
        }
        Step::More(taken)
    }

    fn json(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Step {
        let b = text.as_bytes();
        let mut i = 0;
        // After the last object only what belongs to the calls is taken: white space before something else is the answer's.
        let mut taken = 0;
        while i < b.len() {
            let c = b[i];
            let space = matches!(c, b' ' | b'\t' | b'\r' | b'\n');
            match self.at {
                At::KeyText => match self.word_end(text, i) {
                    Ok(Some(end)) => {
                        i = end;
                        if let Err(why) = self.key(context, calls) {
                            return Step::Fail(i, why);
                        }
                    }
                    Ok(None) => return Step::More(b.len()),
                    Err((n, why)) => return Step::Fail(n, why),
                },
                At::Inside => match self.inside(text, i, context, calls) {
                    Ok(Some(end)) if self.keys.shape == Shape::Single && self.nested == 0 => return Step::Whole(end),
                    Ok(Some(end)) => i = end,
                    Ok(None) => return Step::More(b.len()),
                    Err((n, why)) => return Step::Fail(n, why),
                },
                At::Word => {
                    let end =
                        b[i..].iter().position(|c| matches!(c, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
                    let end = end.map_or(b.len(), |n| i + n);
                    let room = LONGEST.saturating_sub(self.word.len());
                    if end - i > room {
                        return Step::Fail(i + room, TOO_LONG);
                    }
                    self.word.push_str(&text[i..end]);
                    if end < b.len()
                        && let Err(why) = self.value(context, calls)
                    {
                        return Step::Fail(end, why);
                    }
                    i = end;
                }
                _ if space => i += 1,
                At::Start | At::Item | At::After if c == b'{' => {
                    (self.call, self.deep) = (Call::default(), false);
                    self.at = At::Key(false);
                    i += 1;
                }
                At::Start if c == b'[' => {
                    (self.array, self.at) = (true, At::Item);
                    i += 1;
                }
                At::After if matches!(c, b',' | b';') => i += 1,
                At::After => return Step::Done(taken),
                At::Comma if c == b',' => {
                    self.at = At::Item;
                    i += 1;
                }
                At::Comma if c == b']' => return Step::Done(i + 1),
                At::Key(_) if c == b'"' => {
                    self.word.clear();
                    self.word.push('"');
                    self.balance = Balance::default();
                    self.balance.push(b"\"");
                    self.at = At::KeyText;
                    i += 1;
                }
                At::Colon if c == b':' => {
                    self.at = At::Value;
                    i += 1;
                }
                At::Value => match self.open(c, context, calls) {
                    Ok(taken) => i += taken,
                    Err(why) => return Step::Fail(i, why),
                },
                At::Next if c == b',' => {
                    self.at = At::Key(true);
                    i += 1;
                }
                At::Key(false) | At::Next if c == b'}' => {
                    i += 1;
                    let nested = self.nested > 0;
                    if let Err(why) = self.close(context, calls) {
                        return Step::Fail(i, why);
                    }
                    if !nested && self.keys.shape != Shape::Single {
                        return Step::Whole(i);
                    }
                    taken = i;
                }
                _ => return Step::Fail(i, "the JSON is invalid"),
            }
            if self.at != At::After {
                taken = i;
            }
        }
        Step::More(taken)
    }

    /// Appends to [`Envelope::word`] up to the end of its string; gives the index after it.
    fn word_end(&mut self, text: &str, from: usize) -> Result<Option<usize>, (usize, &'static str)> {
        let end = self.balance.push(&text.as_bytes()[from..]).map(|n| from + n);
        let piece = &text[from..end.unwrap_or(text.len())];
        let room = LONGEST.saturating_sub(self.word.len());
        if piece.len() > room {
            return Err((from + floor(piece, room), TOO_LONG));
        }
        self.word.push_str(piece);
        Ok(end)
    }

    /// A key has ended.
    fn key(&mut self, context: &Context<'_>, calls: &mut Calls) -> Result<(), &'static str> {
        let key = Raw::parse(&self.word).ok().and_then(|raw| raw.str()).ok_or("a key is not a JSON string")?;
        let key = key.as_ref();
        self.at = At::Colon;
        self.role = if self.keys.shape == Shape::Single && self.nested == 0 {
            let name = key.to_owned();
            self.call = Call::default();
            self.call.name = Some(name);
            self.role = Role::Arguments;
            self.begin(context, calls)?;
            Role::Arguments
        } else if self.keys.name.contains(&key) {
            Role::Name
        } else if self.keys.arguments.contains(&key) {
            if self.call.arguments { Role::Other } else { Role::Arguments }
        } else if self.keys.id.contains(&key) {
            Role::Id
        } else if key == "function" {
            Role::Function
        } else if context.strict && !matches!(key, "type" | "index") {
            // Data of another kind is told by its first key, so that it is not held back.
            return Err("the JSON has members that a call does not have");
        } else {
            Role::Other
        };
        Ok(())
    }

    /// The first byte of a value; gives how many bytes were taken.
    fn open(&mut self, c: u8, context: &Context<'_>, calls: &mut Calls) -> Result<usize, &'static str> {
        self.word.clear();
        self.string = c == b'"';
        if self.role == Role::Function {
            match c {
                b'{' if self.nested == 0 => {
                    (self.nested, self.at) = (1, At::Key(false));
                    return Ok(1);
                }
                // Some write the name there.
                b'"' => self.role = Role::Name,
                _ => return Err("the member \"function\" is neither an object nor a name"),
            }
        }
        match self.role {
            Role::Name | Role::Id if !self.string && Balance::begins(c) => return Err("the name is not a string"),
            Role::Arguments if context.strict && !matches!(c, b'{' | b'"') => {
                return Err("the arguments are not an object");
            }
            Role::Arguments if !self.string => self.begin(context, calls)?,
            _ => {}
        }
        if Balance::begins(c) {
            (self.balance, self.at) = (Balance::default(), At::Inside);
            self.deep |= self.role == Role::Arguments || !self.string;
        } else {
            self.at = At::Word;
        }
        Ok(0)
    }

    /// More of a string or a container; gives the index after it once it has ended.
    fn inside(
        &mut self,
        text: &str,
        from: usize,
        context: &Context<'_>,
        calls: &mut Calls,
    ) -> Result<Option<usize>, (usize, &'static str)> {
        match self.role {
            Role::Name | Role::Id => {
                let end = self.word_end(text, from)?;
                if let Some(end) = end {
                    self.value(context, calls).map_err(|why| (end, why))?;
                }
                Ok(end)
            }
            _ => {
                let end = self.balance.push(&text.as_bytes()[from..]).map(|n| from + n);
                if self.role == Role::Arguments {
                    let piece = &text[from..end.unwrap_or(text.len())];
                    if self.string || !self.call.begun {
                        let room = KEPT.saturating_sub(self.kept.len());
                        if context.strict && !self.call.begun && piece.len() > room {
                            return Err((from + floor(piece, room), "the name does not follow the arguments"));
                        }
                        self.kept.push_str(piece);
                    } else {
                        calls.arguments_until(piece, if end.is_some() { End::Here } else { End::Later });
                    }
                }
                if let Some(end) = end {
                    self.value(context, calls).map_err(|why| (end, why))?;
                }
                Ok(end)
            }
        }
    }

    /// A value has ended.
    fn value(&mut self, context: &Context<'_>, calls: &mut Calls) -> Result<(), &'static str> {
        self.at = At::Next;
        match self.role {
            Role::Name => {
                let name = Raw::parse(&self.word).ok().and_then(|raw| raw.str()).ok_or("the name is not a string")?;
                if self.call.name.is_some() {
                    return Err("the call has two names");
                }
                self.call.name = Some(name.into_owned());
                self.begin(context, calls)?;
            }
            Role::Id => {
                let id = Raw::parse(&self.word).ok();
                self.call.id = id.map(|raw| raw.str().map_or_else(|| raw.text().to_owned(), |s| s.into_owned()));
                self.call.id.take_if(|id| id.is_empty() || id == "null");
                // After the arguments it would be taken for the id of another call.
                if let Some(id) = self.call.id.as_deref().filter(|_| self.call.begun && !self.call.arguments) {
                    calls.id(id);
                }
            }
            Role::Arguments => {
                self.call.arguments = true;
                if !self.word.is_empty() {
                    // `null` is no arguments; any other word is for the judge of calls.
                    let word = std::mem::take(&mut self.word);
                    if self.keys.shape == Shape::Single && self.nested == 0 && word != "null" {
                        // The value ends the call here, so that nothing after it could take it back.
                        return Err("the arguments are not an object");
                    }
                    self.kept.push_str(if word == "null" { "{}" } else { &word });
                } else if self.string {
                    let text = Raw::parse(&self.kept).ok().and_then(|raw| raw.str()).map(|s| s.into_owned());
                    let Some(text) = text else { return Err("the arguments are a string that is not JSON") };
                    if context.strict && !text.trim_start().starts_with('{') {
                        return Err("the arguments are not an object");
                    }
                    self.kept = if text.trim().is_empty() { "{}".to_owned() } else { text };
                    self.begin(context, calls)?;
                }
                if self.call.begun && !self.kept.is_empty() {
                    calls.arguments_until(&self.kept, End::Here);
                    self.kept.clear();
                }
                if self.keys.shape == Shape::Single && self.nested == 0 {
                    calls.done();
                    self.call = Call { arguments: true, begun: false, ..Call::default() };
                }
            }
            Role::Function | Role::Other => {}
        }
        Ok(())
    }

    /// The name is known.
    fn begin(&mut self, context: &Context<'_>, calls: &mut Calls) -> Result<(), &'static str> {
        let Some(name) = self.call.name.as_deref() else { return Ok(()) };
        let name = context.known(name).ok_or_else(|| context.refusal(name))?;
        // With a strict reading the arguments are waited for: an object with a name is found in any data.
        if self.call.begun || (context.strict && self.role != Role::Arguments && !self.call.arguments) {
            return Ok(());
        }
        calls.begin(name, self.call.id.as_deref());
        self.call.begun = true;
        if self.call.arguments {
            calls.arguments_until(&self.kept, End::Here);
            self.kept.clear();
        }
        Ok(())
    }

    /// An object has ended.
    fn close(&mut self, context: &Context<'_>, calls: &mut Calls) -> Result<(), &'static str> {
        if self.nested > 0 {
            (self.nested, self.at) = (0, At::Next);
            return Ok(());
        }
        self.at = if self.array { At::Comma } else { At::After };
        if self.keys.shape == Shape::Single {
            return if self.call.arguments { Ok(()) } else { Err("an object contains no call") };
        }
        if !self.call.begun {
            return Err("the call has no name");
        }
        if !self.call.arguments {
            if context.strict {
                return Err("the call has no arguments");
            }
            calls.arguments_until("{}", End::Here);
        }
        calls.done();
        Ok(())
    }
}
