//! The arguments of a call while they come: their certain beginning, for clients that take no byte
//! back.
//!
//! A byte is certain once all later readings of the call begin with it. These wait: the quote that
//! ends a string and the comma behind it (the text may turn out to have a quote too many, or a
//! comma too many), brackets that close, numbers and words that may still grow, keys without their
//! colon, half an escape, half a surrogate pair, the last bracket of all, and a string that may be
//! taken out of its quotes because its schema asks for an object or array.

use std::collections::HashSet;

/// Where the reader is in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Between two tokens.
    #[default]
    Outside,
    /// Inside a number or a word.
    Word,
    /// Inside a string.
    Text,
    /// Inside a string that may be taken out of its quotes, before the first byte that decides it.
    Packed,
    /// After the backslash in a string.
    Escape,
    /// Inside `\u`, before this many digits.
    Unit(u8),
    /// After one half of a surrogate pair.
    HighHalf,
    /// Nothing more is certain before the call has ended.
    Stuck,
}

/// An open bracket.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    is_object: bool,
    /// A string inside may be taken out of its quotes.
    may_unpack: bool,
}

/// Reads the text of one call once, from its beginning.
#[derive(Debug, Default)]
pub(crate) struct LiveArguments {
    /// The byte of the text that is read next.
    at: usize,
    place: Place,
    brackets: Vec<Bracket>,
    /// The next string is a key.
    is_key: bool,
    /// The value that comes next may be taken out of its quotes if it is a string.
    may_unpack: bool,
    /// Where the key at hand begins in `held`.
    key: usize,
    /// An escape that is not complete.
    escape: String,
    unit: u16,
    /// One half of a surrogate pair is in `escape`.
    has_half: bool,
    /// What is certain and was not returned.
    ready: String,
    /// What is not certain yet, behind `ready`.
    held: String,
    /// How many bytes of `ready` were returned before the text began again.
    returned_before: usize,
    /// How many bytes were returned.
    returned: usize,
}

impl LiveArguments {
    /// Whether a byte was returned.
    pub fn has_begun(&self) -> bool {
        self.returned > 0
    }

    /// The bytes that are kept.
    pub fn kept(&self) -> usize {
        self.ready.len() + self.held.len() + self.brackets.len() * size_of::<Bracket>()
    }

    /// The text begins again: `{}` was a placeholder.
    pub fn restart(&mut self) {
        *self = LiveArguments {
            returned_before: self.returned,
            returned: self.returned,
            ..LiveArguments::default()
        };
    }

    /// Reads on in `text`, which is valid JSON so far and has only grown, up to its end; returns
    /// the bytes that have become certain, without the white space between tokens. `unpacked`: the
    /// keys whose strings may be taken out of their quotes.
    pub fn read(&mut self, text: &str, unpacked: &HashSet<String>) -> String {
        while self.at < text.len() && self.place != Place::Stuck {
            self.step(text, unpacked);
        }
        let mut ready = std::mem::take(&mut self.ready);
        let again = self.returned_before.min(ready.len());
        self.returned_before -= again;
        ready.drain(..again);
        self.returned += ready.len();
        ready
    }

    /// Takes the next byte, or a run of plain text.
    fn step(&mut self, text: &str, unpacked: &HashSet<String>) {
        let byte = text.as_bytes()[self.at];
        match self.place {
            Place::Outside => self.outside(byte),
            Place::Word => {
                if matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}') {
                    self.place = Place::Outside;
                    return;
                }
                self.held.push(char::from(byte));
            }
            Place::Packed => match byte {
                b' ' | b'\t' => self.held.push(char::from(byte)),
                // A bracket, or an escape that may be one.
                b'{' | b'[' | b'\\' => self.place = Place::Stuck,
                _ => {
                    self.confirm();
                    self.place = Place::Text;
                    return;
                }
            },
            Place::Text => match byte {
                b'"' => self.end_of_text(unpacked),
                b'\\' => {
                    self.escape.push('\\');
                    self.place = Place::Escape;
                }
                _ => return self.run(text),
            },
            Place::Escape => self.escaped(byte),
            Place::Unit(left) => self.unit(byte, left),
            Place::HighHalf => {
                self.place = if byte == b'\\' {
                    Place::Escape
                } else {
                    Place::Stuck
                };
                self.escape.push('\\');
            }
            Place::Stuck => {}
        }
        self.at += 1;
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                if self.brackets.is_empty() && byte == b'[' {
                    self.place = Place::Stuck;
                    return;
                }
                self.confirm();
                self.ready.push(char::from(byte));
                let is_object = byte == b'{';
                self.brackets.push(Bracket {
                    is_object,
                    may_unpack: self.may_unpack && !is_object,
                });
                self.is_key = is_object;
            }
            b'}' | b']' => {
                self.brackets.pop();
                self.held.push(char::from(byte));
                if self.brackets.is_empty() {
                    self.place = Place::Stuck;
                }
            }
            b',' => {
                self.held.push(',');
                let innermost = self.brackets.last();
                self.is_key = innermost.is_some_and(|b| b.is_object);
                self.may_unpack = innermost.is_some_and(|b| b.may_unpack);
            }
            b':' => {
                self.held.push(':');
                self.confirm();
                self.is_key = false;
            }
            _ if self.brackets.is_empty() => self.place = Place::Stuck,
            b'"' if self.is_key => {
                self.held.push('"');
                self.key = self.held.len();
                self.place = Place::Text;
            }
            b'"' => {
                self.place = if self.may_unpack {
                    Place::Packed
                } else {
                    Place::Text
                };
                if self.place == Place::Text {
                    self.confirm();
                    self.ready.push('"');
                } else {
                    self.held.push('"');
                }
            }
            _ => {
                self.confirm();
                self.held.push(char::from(byte));
                self.place = Place::Word;
            }
        }
    }

    /// What was held is certain now.
    fn confirm(&mut self) {
        self.ready.push_str(&self.held);
        self.held.clear();
    }

    /// Where text of the string at hand goes.
    fn text_out(&mut self) -> &mut String {
        if self.is_key {
            &mut self.held
        } else {
            &mut self.ready
        }
    }

    /// Takes plain text up to the next quote or backslash. DEL and C1 controls are escaped, as in
    /// the final arguments.
    fn run(&mut self, text: &str) {
        let rest = &text[self.at..];
        let end = rest
            .bytes()
            .position(|b| matches!(b, b'"' | b'\\'))
            .unwrap_or(rest.len());
        let run = &rest[..end];
        self.at += end;
        let out = self.text_out();
        if run.bytes().all(|b| b != 0x7f && b != 0xc2) {
            out.push_str(run);
            return;
        }
        for c in run.chars() {
            match c {
                '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                _ => out.push(c),
            }
        }
    }

    fn end_of_text(&mut self, unpacked: &HashSet<String>) {
        if self.is_key {
            let key = &self.held[self.key..];
            self.may_unpack =
                !unpacked.is_empty() && (key.contains('\\') || unpacked.contains(key));
        }
        self.held.push('"');
        self.place = Place::Outside;
    }

    fn escaped(&mut self, byte: u8) {
        self.escape.push(char::from(byte));
        if byte == b'u' {
            (self.unit, self.place) = (0, Place::Unit(4));
        } else if self.has_half {
            self.place = Place::Stuck;
        } else {
            self.end_of_escape();
        }
    }

    fn unit(&mut self, byte: u8, left: u8) {
        self.escape.push(char::from(byte));
        self.unit = self.unit << 4
            | char::from(byte)
                .to_digit(16)
                .map_or(0, |digit| digit as u16);
        self.place = match (left, self.unit, self.has_half) {
            (2.., ..) => Place::Unit(left - 1),
            (_, 0xd800..=0xdbff, false) => {
                self.has_half = true;
                Place::HighHalf
            }
            (_, 0xdc00..=0xdfff, true) => return self.end_of_escape(),
            // Half a pair: parsers differ on it.
            (_, 0xd800..=0xdfff, _) | (.., true) => Place::Stuck,
            _ => return self.end_of_escape(),
        };
    }

    fn end_of_escape(&mut self) {
        let escape = std::mem::take(&mut self.escape);
        self.text_out().push_str(&escape);
        (self.has_half, self.place) = (false, Place::Text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain() {
        for (text, certain) in [
            ("", ""),
            (" \n", ""),
            ("[1", ""),
            ("\"{", ""),
            ("nul", ""),
            (" {", "{"),
            ("{}", "{"),
            ("{ }", "{"),
            ("{\"ci", "{"),
            ("{\"city\"", "{"),
            ("{ \"city\" :", "{\"city\":"),
            ("{\"city\":\"", "{\"city\":\""),
            ("{\"city\":\"Par", "{\"city\":\"Par"),
            ("{\"city\":\"Paris\"", "{\"city\":\"Paris"),
            ("{\"city\":\"Paris\" , \"n", "{\"city\":\"Paris"),
            ("{\"city\":\"Paris\" , \"n\":", "{\"city\":\"Paris\",\"n\":"),
            ("{\"n\":12", "{\"n\":"),
            ("{\"n\":12,\"m\":", "{\"n\":12,\"m\":"),
            ("{\"n\":[1,2", "{\"n\":[1,"),
            ("{\"n\":[1,", "{\"n\":["),
            ("{\"n\":[true,\"x\",{", "{\"n\":[true,\"x\",{"),
            ("{\"n\":{}}", "{\"n\":{"),
            ("{\"n\":[{}],\"m\":nul", "{\"n\":[{}],\"m\":"),
            ("{\"a\":\"x\\", "{\"a\":\"x"),
            ("{\"a\":\"x\\n", "{\"a\":\"x\\n"),
            ("{\"a\":\"x\\u00e", "{\"a\":\"x"),
            ("{\"a\":\"x\\u00e9", "{\"a\":\"x\\u00e9"),
            ("{\"a\":\"x\\ud83d\\ude0", "{\"a\":\"x"),
            ("{\"a\":\"x\\ud83d\\ude00", "{\"a\":\"x\\ud83d\\ude00"),
            ("{\"a\":\"x\\ud83d!\",\"b\":1", "{\"a\":\"x"),
            ("{\"a\":\"x\\ude00!\",\"b\":1", "{\"a\":\"x"),
            ("{\"a\":\"x\u{7f}\u{9b}é", "{\"a\":\"x\\u007f\\u009bé"),
            ("{\"list\":\"[1", "{\"list\":"),
            ("{\"list\":\" one", "{\"list\":\" one"),
            ("{\"list\":[\"[1", "{\"list\":["),
            ("{\"list\":[{\"o\":\"[1", "{\"list\":[{\"o\":\"[1"),
            ("{\"other\":\"[1", "{\"other\":\"[1"),
        ] {
            let unpacked = HashSet::from(["list".to_owned()]);
            assert_eq!(
                LiveArguments::default().read(text, &unpacked),
                certain,
                "{text}"
            );
            let (mut live, mut got) = (LiveArguments::default(), String::new());
            for (at, c) in text.char_indices() {
                got += &live.read(&text[..at + c.len_utf8()], &unpacked);
            }
            assert_eq!(got, certain, "{text} in single characters");
        }
    }
}
