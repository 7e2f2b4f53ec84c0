//! Whether a message is JSON so far: a marker in a string of such an answer is data and means
//! nothing.

use event::cut;
use json::Scanner;

/// Line ends are searched for in steps of this many bytes, or each of many short values would
/// search all of the text.
const STEP: usize = 256;

/// Follows a message from its first byte; see the module. It reads each byte once and keeps none.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    state: DataState,
}

#[derive(Clone, Debug)]
enum DataState {
    /// Nothing but white space so far.
    Start,
    /// The beginning of a JSON value; the flag: it is an object or an array.
    Json(Scanner, bool),
    /// Something else.
    Other,
}

impl Default for Data {
    fn default() -> Self {
        Data {
            state: DataState::Start,
        }
    }
}

impl Data {
    /// A message that is not JSON.
    pub fn other() -> Data {
        Data {
            state: DataState::Other,
        }
    }

    /// Takes the next piece of the message.
    #[inline]
    pub fn push(&mut self, text: &str) {
        if !matches!(self.state, DataState::Other) {
            self.follow(text);
        }
    }

    fn follow(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            match &mut self.state {
                DataState::Other => return,
                DataState::Start => {
                    rest = rest.trim_ascii_start();
                    self.state = match rest.bytes().next() {
                        None => return,
                        Some(first @ (b'{' | b'[' | b'"')) => {
                            DataState::Json(Scanner::default(), first != b'"')
                        }
                        Some(_) => DataState::Other,
                    };
                }
                DataState::Json(scanner, container) => {
                    // Models write raw line ends into the strings of an object. A message in
                    // quotation marks that has one is prose.
                    let room = cut(rest, STEP).len();
                    let end = rest[..room].bytes().position(|c| c < b' ').unwrap_or(room);
                    let used = scanner.push(&rest[..end]);
                    if used < end {
                        // The value has ended; another may follow.
                        (self.state, rest) = (DataState::Start, &rest[used..]);
                        continue;
                    }
                    let control = end < room;
                    if control && !(*container && scanner.is_in_text()) {
                        scanner.push(&rest[end..=end]);
                    }
                    if !scanner.is_valid() {
                        self.state = DataState::Other;
                        return;
                    }
                    rest = &rest[end + usize::from(control)..];
                }
            }
        }
    }

    /// Whether the next byte is inside a string of the JSON.
    #[inline]
    pub fn is_in_text(&self) -> bool {
        matches!(&self.state, DataState::Json(scanner, _) if scanner.is_in_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_a_string_of_json() {
        for (text, want) in [
            ("", false),
            ("\"", true),
            ("\"a", true),
            ("\"a\\", true),
            ("\"a\nb", false),
            ("\"a\" \"b", true),
            ("\"a\" b \"", false),
            (" \n{\"a", true),
            ("{\"a\"", false),
            ("{\"a\": \"", true),
            ("{\"a\": \"b\n\t\r\n<", true),
            ("{\"a\": \"b\n\"", false),
            ("{\"a\": \"b\"c \"", false),
            ("{\"a\":\n[1, true,\n\"x\"], \"b\": {\"c\": \"", true),
            ("{\"a\": 1}\n{\"a\": \"", true),
            ("{\"a\": 1} {\"a\" \"", false),
            ("{\"a\": 1} is it: \"", false),
            ("[see \"", false),
            ("[TOOL_CALLS] [{\"name\": \"", false),
            ("I say: {\"a\": \"", false),
        ] {
            let mut whole = Data::default();
            whole.push(text);
            let mut letters = Data::default();
            text.split_inclusive(|_| true)
                .for_each(|letter| letters.push(letter));
            assert_eq!(
                (whole.is_in_text(), letters.is_in_text()),
                (want, want),
                "{text:?}"
            );
        }
    }
}
