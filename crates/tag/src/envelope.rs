//! Parses calls written as JSON objects with a name and arguments: one object, several, or an
//! array.
//!
//! Members are read as they arrive, in any order. Arguments are emitted byte for byte. They are
//! held back only if they precede the name, or are a string of JSON, which is held back until it
//! ends.

mod members;

use crate::calls::{ArgumentsEnd, Context, FoundCalls, ReadStep, Why};
use crate::dialect::{CallKeys, CallShape};
use crate::envelope::members::{CallMembers, ValueKind};
use json::{Balance, Literal, LiteralProgress, Notation};

/// The position of the next byte in the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the first bracket.
    Start,
    /// In an array, before an object.
    Item,
    /// In an array, after an object.
    AfterItem,
    /// In an object, before its first key or its end.
    FirstKey,
    /// In an object, after a comma and before a key.
    NextKey,
    InKey,
    AfterKey,
    Value,
    /// Inside a string or a container.
    InValue,
    /// Inside a number, `true`, `false` or `null`.
    InWord,
    AfterValue,
    /// After an object outside an array; another object may follow.
    End,
}

/// The engine; see the module.
#[derive(Debug)]
pub(crate) struct Envelope {
    at: At,
    is_array: bool,
    /// Tracks the end of the current key or value.
    balance: Balance,
    members: CallMembers,
    /// Converts Python's notation to JSON first: the literal reader, and the JSON of one piece.
    python: Option<Box<(Literal, String)>>,
}

impl Envelope {
    /// Begins before the first bracket.
    pub(crate) fn new(keys: &'static CallKeys) -> Self {
        let python = (keys.shape == CallShape::PythonArray)
            .then(|| Box::new((Literal::value(Notation::Python), String::new())));
        Envelope {
            at: At::Start,
            is_array: false,
            balance: Balance::default(),
            members: CallMembers::new(keys),
            python,
        }
    }

    /// Whether arguments were read, so that their text must not be parsed in another way.
    pub(crate) fn is_deep(&self) -> bool {
        self.members.is_deep
    }

    /// Whether the name of an accepted tool was read.
    pub(crate) fn has_name(&self) -> bool {
        self.members.has_name()
    }

    /// Whether the text may end here.
    pub(crate) fn may_end(&self) -> bool {
        self.at == At::End
    }

    /// If the whole piece is inside a call's arguments, reads it and returns true; otherwise reads
    /// nothing.
    #[inline]
    pub(crate) fn arguments(&mut self, text: &str, calls: &mut FoundCalls) -> bool {
        if self.at != At::InValue || !self.members.is_streaming() || self.python.is_some() {
            return false;
        }
        let mut balance = self.balance;
        if balance.push(text.as_bytes()).is_some() {
            return false;
        }
        self.balance = balance;
        calls.arguments_until(text, ArgumentsEnd::Later);
        true
    }

    /// Reads the next piece.
    pub(crate) fn push(
        &mut self,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let Some(mut python) = self.python.take() else {
            return self.json(text, context, calls);
        };
        let (literal, json) = &mut *python;
        let step = self.notation(literal, json, text, context, calls);
        self.python = Some(python);
        step
    }

    /// Reads Python's notation, one character at a time, so that the position of an error in it is
    /// known.
    fn notation(
        &mut self,
        literal: &mut Literal,
        json: &mut String,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let mut taken = 0;
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        for end in ends {
            // A word may be a Python value but never a call, so it must not be held back until it
            // ends.
            let is_bracket = |c: u8| matches!(c, b'[' | b'{') || c.is_ascii_whitespace();
            if self.at == At::Start && !text.as_bytes().get(taken).copied().is_none_or(is_bracket) {
                return ReadStep::Fail(taken, Why::InvalidJson);
            }
            let progress = literal.push(&text[taken..end], json);
            // The calls of a list are complete only when the list is, because the literal may still
            // turn out to be invalid after a call.
            let mut at = 0;
            loop {
                match self.json(&json[at..], context, calls) {
                    ReadStep::Whole(n) => at += n,
                    ReadStep::Fail(_, why) => return ReadStep::Fail(taken, why),
                    _ => break,
                }
            }
            json.clear();
            match progress {
                LiteralProgress::More(n) => taken += n,
                LiteralProgress::End(n) => return ReadStep::Done(taken + n),
                LiteralProgress::Invalid(n, why) => {
                    return ReadStep::Fail(taken + n, Why::Literal(why));
                }
            }
        }
        ReadStep::More(taken)
    }

    fn json(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        let mut i = 0;
        // After the last object only text that belongs to the calls is consumed; white space before
        // other text belongs to the answer.
        let mut taken = 0;
        while let Some(c) = text.as_bytes().get(i) {
            if let At::InKey | At::InValue | At::InWord = self.at {
                let was_value = self.at == At::InValue;
                match self.inside(&text[i..], context, calls) {
                    Ok(Some(n)) if was_value && self.members.is_single() => {
                        return ReadStep::Whole(i + n);
                    }
                    Ok(Some(n)) => i += n,
                    Ok(None) => return ReadStep::More(text.len()),
                    Err((n, why)) => return ReadStep::Fail(i + n, why),
                }
                taken = i;
                continue;
            }
            let was_end = self.at == At::End;
            match self.between(*c, context, calls) {
                ReadStep::On(n) => i += n,
                ReadStep::Done(0) => return ReadStep::Done(taken),
                step => return step.after(i),
            }
            if !was_end || self.at != At::End {
                taken = i;
            }
        }
        ReadStep::More(taken)
    }

    /// Reads a byte outside keys and values.
    fn between(&mut self, c: u8, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        self.at = match self.at {
            at if matches!(c, b' ' | b'\t' | b'\r' | b'\n') => at,
            At::Start | At::Item | At::End if c == b'{' => {
                self.members.restart();
                At::FirstKey
            }
            At::Start if c == b'[' => {
                self.is_array = true;
                At::Item
            }
            At::End if matches!(c, b',' | b';') => At::End,
            At::End => return ReadStep::Done(0),
            At::AfterItem if c == b',' => At::Item,
            At::AfterItem if c == b']' => return ReadStep::Done(1),
            At::FirstKey | At::NextKey if c == b'"' => {
                self.members.begin_word();
                (self.at, self.balance) = (At::InKey, Balance::default());
                return ReadStep::On(0);
            }
            At::AfterKey if c == b':' => At::Value,
            At::Value => match self.members.begin_value(c, context, calls) {
                Ok(ValueKind::Members) => At::FirstKey,
                Ok(kind) => {
                    let is_word = matches!(kind, ValueKind::Word);
                    self.at = if is_word { At::InWord } else { At::InValue };
                    self.balance = Balance::default();
                    return ReadStep::On(0);
                }
                Err(why) => return ReadStep::Fail(0, why),
            },
            At::AfterValue if c == b',' => At::NextKey,
            At::FirstKey | At::AfterValue if c == b'}' && self.members.is_nested => {
                self.members.is_nested = false;
                At::AfterValue
            }
            At::FirstKey | At::AfterValue if c == b'}' => {
                if let Err(why) = self.members.end(context, calls) {
                    return ReadStep::Fail(1, why);
                }
                self.at = match self.is_array {
                    true => At::AfterItem,
                    false => At::End,
                };
                return match self.members.is_single() {
                    true => ReadStep::On(1),
                    false => ReadStep::Whole(1),
                };
            }
            _ => return ReadStep::Fail(0, Why::InvalidJson),
        };
        ReadStep::On(1)
    }

    /// Reads inside a key or a value. Returns how many bytes belong to it once it has ended.
    fn inside(
        &mut self,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<Option<usize>, members::EnvelopeFailure> {
        let ends_word = |c: u8| matches!(c, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
        let end = match self.at {
            At::InWord => text.bytes().position(ends_word),
            _ => self.balance.push(text.as_bytes()),
        };
        let piece = &text[..end.unwrap_or(text.len())];
        match self.at {
            At::InValue => self.members.add(piece, end.is_some(), context, calls)?,
            _ => self.members.add_to_word(piece)?,
        }
        let Some(end) = end else { return Ok(None) };
        let (at, ended) = match self.at {
            At::InKey => (At::AfterKey, self.members.end_key(context, calls)),
            _ => (At::AfterValue, self.members.end_value(context, calls)),
        };
        self.at = at;
        ended.map(|()| Some(end)).map_err(|why| (end, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::dialect::CallPart;

    #[test]
    fn a_value_that_is_too_long_fails_between_two_characters() {
        let hermes = Dialect::named("hermes").unwrap();
        let keys = hermes.forms[0].call.iter().find_map(|part| {
            if let CallPart::Calls(keys) = part {
                Some(keys)
            } else {
                None
            }
        });
        for before in ["", "x", "xy", "xyz"] {
            for member in ["arguments", "name", "x"] {
                let text = format!(
                    "{{\"name\": \"f\", \"{member}\": {before}{}",
                    "é€".repeat(300)
                );
                let mut envelope = Envelope::new(keys.unwrap());
                let context = Context {
                    tools: None,
                    strict: false,
                };
                let step = envelope.push(&text, &context, &mut FoundCalls::default());
                assert!(
                    matches!(step, ReadStep::Fail(at, _) if text.is_char_boundary(at)),
                    "{step:?} of {text}"
                );
            }
        }
    }
}
