//! The free text of a custom tool, out of the arguments `{"input":"…"}` that carry it.

use event::{Raw, Surrogates};

/// The free text so far.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeText {
    place: Place,
    /// Arguments that were not read yet: the beginning of `{"input":"`, or an escape that was
    /// split.
    rest: String,
    half: Surrogates,
    text: String,
}

/// Where in the arguments the next byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the text.
    #[default]
    Before,
    Inside,
    Behind,
    /// The arguments begin in another way, and are read at their end.
    Elsewhere,
}

impl FreeText {
    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes the next arguments, and returns the text that they add.
    pub fn push(&mut self, arguments: &str) -> String {
        if matches!(self.place, Place::Behind | Place::Elsewhere) {
            return String::new();
        }
        self.rest.push_str(arguments);
        if self.place == Place::Before {
            let Some(at) = start(&self.rest) else {
                if self.rest.len() > LONGEST_START {
                    self.place = Place::Elsewhere;
                    self.rest = String::new();
                }
                return String::new();
            };
            self.rest.drain(..at);
            self.place = Place::Inside;
        }
        let (whole, is_closed) = inside(&self.rest);
        let text = self.unescape(whole);
        self.rest.drain(..whole);
        if is_closed {
            self.place = Place::Behind;
        }
        text
    }

    /// Takes the end of the arguments, which are `all`, and returns the text that was not returned
    /// before. Arguments without a string `input` are the text themselves.
    pub fn finish(&mut self, all: &str) -> String {
        if matches!(self.place, Place::Before | Place::Elsewhere) {
            let input = Raw::parse(all).ok().and_then(|raw| raw.get_str("input"));
            self.text = input.map_or_else(|| all.to_owned(), std::borrow::Cow::into_owned);
            self.place = Place::Behind;
            return self.text.clone();
        }
        String::new()
    }

    /// The first `len` bytes of the rest, which are the inside of a JSON string, as text.
    fn unescape(&mut self, len: usize) -> String {
        let mut text = String::new();
        if let Ok(string) = Raw::parse(&format!("\"{}\"", &self.rest[..len])) {
            self.half.push(string, &mut text);
        }
        self.text.push_str(&text);
        text
    }
}

/// How long `{"input":"` with its white space may be, so that it is not searched for again and
/// again.
const LONGEST_START: usize = 64;

/// The index behind `{"input":"`, with white space between the tokens.
fn start(arguments: &str) -> Option<usize> {
    let arguments = event::cut(arguments, LONGEST_START);
    let mut rest = arguments;
    for token in ["{", "\"input\"", ":", "\""] {
        rest = rest
            .trim_start_matches([' ', '\t', '\n', '\r'])
            .strip_prefix(token)?;
    }
    Some(arguments.len() - rest.len())
}

/// How many bytes of this inside of a JSON string can be read now, and whether the string ends
/// there.
fn inside(rest: &str) -> (usize, bool) {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let width = match (byte, bytes.get(at + 1)) {
            (b'"', _) => return (at, true),
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        if at + width > bytes.len() {
            break;
        }
        at += width;
    }
    (at, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_the_same_text() {
        let all = r#" { "input" : "a\n\"b\" \u00e9\ud83d\ude00é}" }"#;
        let want = "a\n\"b\" é😀é}";
        for first in (0..=all.len()).filter(|at| all.is_char_boundary(*at)) {
            for second in (first..=all.len()).filter(|at| all.is_char_boundary(*at)) {
                let mut free = FreeText::default();
                let mut text = free.push(&all[..first])
                    + &free.push(&all[first..second])
                    + &free.push(&all[second..]);
                text += &free.finish(all);
                assert_eq!(
                    (text.as_str(), free.text()),
                    (want, want),
                    "split at {first} and {second}"
                );
            }
        }
    }

    #[test]
    fn other_arguments_are_read_at_their_end() {
        for (all, want) in [
            (r#"{"patch":"x","input":"y"}"#, "y"),
            (r#"{"patch":"x"}"#, r#"{"patch":"x"}"#),
            (r#"{"input":{"a":1}}"#, r#"{"input":{"a":1}}"#),
            (r#"{"input":""}"#, ""),
            ("{}", "{}"),
            (
                &format!(
                    "{{{}\"input\":\"late\",\"input\":\"later\"}}",
                    " ".repeat(LONGEST_START)
                ),
                "later",
            ),
        ] {
            let mut free = FreeText::default();
            let text = free.push(all) + &free.finish(all);
            assert_eq!((text.as_str(), free.text()), (want, want));
            let mut free = FreeText::default();
            let text = all
                .chars()
                .map(|c| free.push(c.encode_utf8(&mut [0; 4])))
                .collect::<String>()
                + &free.finish(all);
            assert_eq!((text.as_str(), free.text()), (want, want));
        }
    }
}
