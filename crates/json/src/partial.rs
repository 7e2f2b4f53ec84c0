//! Partial arguments: as JSON that user interfaces can show, and as a prefix that is certain, for
//! clients that cannot retract a byte.

use crate::scanner::{JsonScanner, ScanState};
use std::collections::HashSet;

/// Returns the best reading of partial arguments: `text` up to the last byte that is certain, with
/// its open brackets and quotes closed.
///
/// A string value is shown up to its last complete character. A number, a word or a key that may
/// continue is omitted, and so is a key without a value. The reading ends where `text` stops being
/// JSON, and is `{}` if the text does not begin with a bracket. The text is read once.
pub fn best_reading(text: &str) -> String {
    let text = text.trim_ascii_start();
    if !text.starts_with(['{', '[']) {
        return "{}".to_owned();
    }
    let b = text.as_bytes();
    let mut scanner = JsonScanner::default();
    // The last certain position: its offset, and the scanner's state there.
    let mut sure = (0, scanner.clone());
    let mut at = 0;
    while at < b.len() && scanner.state != ScanState::End {
        let was = scanner.state;
        let end = match was {
            ScanState::Text => event::plain(b, at).max(at + 1),
            _ => at + 1,
        };
        if was.is_number() && matches!(b[at], b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}') {
            sure = (at, scanner.clone());
        }
        let Some(read) = text.get(at..end) else { break };
        scanner.push(read);
        if !scanner.is_valid() {
            break;
        }
        let is_sure = match scanner.state {
            ScanState::FirstKey | ScanState::FirstItem | ScanState::Comma | ScanState::End => {
                !b[at].is_ascii_whitespace()
            }
            ScanState::Text => !scanner.key && !is_half(was, &text[..end]),
            _ => false,
        };
        at = end;
        if is_sure {
            sure = (at, scanner.clone());
        }
    }
    let (end, scanner) = sure;
    let mut out = text[..end].to_owned();
    if scanner.state == ScanState::Text {
        out.push('"');
    }
    out.extend((0..scanner.depth).map(|n| {
        if scanner.objects >> n & 1 == 1 {
            '}'
        } else {
            ']'
        }
    }));
    out
}

/// Whether the escape at the end of the text is the first half of a surrogate pair. `was` is the
/// state before the last byte.
fn is_half(was: ScanState, text: &str) -> bool {
    was == ScanState::Hex(1) && matches!(unit(text), 0xd800..=0xdbff)
}

/// Returns the value of the four hex digits at the end of a text.
fn unit(text: &str) -> u32 {
    let digits = text.get(text.len() - 4..).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or_default()
}

/// Reads the arguments of one call once, as they grow, and returns the bytes that are certain.
///
/// A byte is certain once every later reading of the call begins with it. These are held back: the
/// quote that ends a string and the comma after it (a quote or a comma may be superfluous), closing
/// brackets, numbers and words that may continue, keys without their colon, an incomplete escape,
/// half a surrogate pair, the final bracket, and a string that may be decoded because its schema
/// requires an object or array.
#[derive(Debug, Default)]
pub struct LiveArguments {
    /// The offset of the next byte to read.
    at: usize,
    scanner: JsonScanner,
    doubt: Doubt,
    /// For each open bracket, whether strings in it may be decoded; the innermost bracket is bit 0.
    unpacked_items: u128,
    /// Whether the next value may be decoded if it is a string.
    may_unpack: bool,
    /// The offset in `held` where the current key begins.
    key: usize,
    /// An incomplete escape, or half a surrogate pair.
    escape: String,
    /// Bytes that are certain but not returned yet.
    ready: String,
    /// Bytes after `ready` that are not certain yet.
    held: String,
    /// How many bytes of `ready` were returned before the text was restarted.
    returned_before: usize,
    /// How many bytes were returned.
    returned: usize,
}

/// Why [`LiveArguments`] cannot read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doubt {
    #[default]
    None,
    /// The text is inside a string that may be decoded, before the first byte that decides it.
    Packed,
    /// No more bytes become certain before the call ends.
    Stuck,
}

impl LiveArguments {
    /// Whether any byte was returned.
    pub fn has_begun(&self) -> bool {
        self.returned > 0
    }

    /// Restarts the text, because the previous `{}` was a placeholder.
    pub fn restart(&mut self) {
        *self = LiveArguments {
            returned_before: self.returned,
            returned: self.returned,
            ..LiveArguments::default()
        };
    }

    /// Reads `text`, which is valid JSON so far and has only grown, to its end. Returns the bytes
    /// that have become certain, without white space between tokens. `unpacked` contains the keys
    /// whose strings may be decoded.
    pub fn read(&mut self, text: &str, unpacked: &HashSet<String>) -> String {
        while self.at < text.len() && self.doubt != Doubt::Stuck {
            self.step(text, unpacked);
        }
        let mut ready = std::mem::take(&mut self.ready);
        let again = self.returned_before.min(ready.len());
        self.returned_before -= again;
        ready.drain(..again);
        self.returned += ready.len();
        ready
    }

    /// Reads the next byte, or a run of plain text.
    fn step(&mut self, text: &str, unpacked: &HashSet<String>) {
        let byte = text.as_bytes()[self.at];
        let was = self.scanner.state;
        let is_key = self.scanner.key;
        if self.doubt == Doubt::Packed {
            match byte {
                b' ' | b'\t' => {}
                // A bracket, or an escape that may stand for a bracket.
                b'{' | b'[' | b'\\' => {
                    self.doubt = Doubt::Stuck;
                    return;
                }
                _ => {
                    self.confirm();
                    self.doubt = Doubt::None;
                }
            }
        }
        let mut end = self.at + 1;
        let is_run = was == ScanState::Text && self.doubt == Doubt::None;
        if is_run && !matches!(byte, b'"' | b'\\') {
            end = event::plain(text.as_bytes(), self.at);
        }
        let read = &text[self.at..end];
        self.scanner.push(read);
        self.at = end;
        match was {
            // After the first half of a surrogate pair only the second half may follow.
            ScanState::Text if !self.escape.is_empty() && byte != b'\\' => {
                self.doubt = Doubt::Stuck
            }
            ScanState::Text if byte == b'"' => {
                if is_key {
                    let key = &self.held[self.key..];
                    self.may_unpack =
                        !unpacked.is_empty() && (key.contains('\\') || unpacked.contains(key));
                }
                self.held.push('"');
            }
            ScanState::Text if byte != b'\\' => self.text(read),
            ScanState::Text | ScanState::Escape | ScanState::Hex(_) => self.escape(was, read),
            _ => self.outside(was, byte),
        }
    }

    /// Reads a byte outside strings.
    fn outside(&mut self, was: ScanState, byte: u8) {
        let is_value = matches!(was, ScanState::Value | ScanState::FirstItem);
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                let is_list = byte == b'[';
                if self.scanner.depth == 1 && is_list {
                    self.doubt = Doubt::Stuck;
                    return;
                }
                self.confirm();
                self.ready.push(char::from(byte));
                self.unpacked_items =
                    self.unpacked_items << 1 | u128::from(self.may_unpack && is_list);
            }
            b'}' | b']' => {
                self.unpacked_items >>= 1;
                self.held.push(char::from(byte));
                if self.scanner.depth == 0 {
                    self.doubt = Doubt::Stuck;
                }
            }
            b',' => {
                self.held.push(',');
                self.may_unpack = self.unpacked_items & 1 == 1;
            }
            b':' => {
                self.held.push(':');
                self.confirm();
            }
            _ if self.scanner.depth == 0 => self.doubt = Doubt::Stuck,
            b'"' if self.scanner.key => {
                self.held.push('"');
                self.key = self.held.len();
            }
            b'"' if self.may_unpack => {
                self.held.push('"');
                self.doubt = Doubt::Packed;
            }
            b'"' => {
                self.confirm();
                self.ready.push('"');
            }
            _ => {
                if is_value {
                    self.confirm();
                }
                self.held.push(char::from(byte));
            }
        }
    }

    /// Marks the held bytes as certain.
    fn confirm(&mut self) {
        self.ready.push_str(&self.held);
        self.held.clear();
    }

    /// Appends text of the current string. DEL and C1 controls are escaped, as in the final
    /// arguments.
    fn text(&mut self, text: &str) {
        let out = if self.scanner.key || self.doubt == Doubt::Packed {
            &mut self.held
        } else {
            &mut self.ready
        };
        if text.bytes().all(|b| b != 0x7f && b != 0xc2) {
            out.push_str(text);
            return;
        }
        for c in text.chars() {
            match c {
                '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                _ => out.push(c),
            }
        }
    }

    /// Reads a byte of an escape; `was` is the state before this byte.
    fn escape(&mut self, was: ScanState, byte: &str) {
        let has_half = self.escape.len() >= 6;
        self.escape.push_str(byte);
        if was == ScanState::Escape && has_half && byte != "u" {
            self.doubt = Doubt::Stuck;
        }
        if self.scanner.state != ScanState::Text {
            return;
        }
        let unit = if was == ScanState::Hex(1) {
            unit(&self.escape)
        } else {
            0
        };
        match (unit, has_half) {
            (0xd800..=0xdbff, false) => {}
            // A lone surrogate: parsers disagree about it.
            (0xdc00..=0xdfff, false) | (0..=0xdbff | 0xe000.., true) => self.doubt = Doubt::Stuck,
            _ => {
                let escape = std::mem::take(&mut self.escape);
                self.text(&escape);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn readings() {
        for (text, want) in [
            ("", "{}"),
            (" ", "{}"),
            ("\"x", "{}"),
            ("nul", "{}"),
            ("{", "{}"),
            ("{\"ci", "{}"),
            ("{\"city\"", "{}"),
            ("{\"city\":", "{}"),
            ("{\"city\":\"Par", "{\"city\":\"Par\"}"),
            ("{\"city\":\"Par\\", "{\"city\":\"Par\"}"),
            ("{\"city\":\"Par\\u00e", "{\"city\":\"Par\"}"),
            ("{\"city\":\"P\\ud83d\\ude0", "{\"city\":\"P\"}"),
            (
                "{\"city\":\"P\\ud83d\\ude00",
                "{\"city\":\"P\\ud83d\\ude00\"}",
            ),
            ("{\"city\":\"Paris\",\"n\":12", "{\"city\":\"Paris\"}"),
            ("{\"n\":12 ", "{\"n\":12}"),
            ("{\"n\":[1,2,", "{\"n\":[1,2]}"),
            ("{\"n\":[1,2", "{\"n\":[1]}"),
            ("{\"n\":[{\"a\":tru", "{\"n\":[{}]}"),
            ("{\"n\":[{\"a\":true", "{\"n\":[{\"a\":true}]}"),
            ("{\"n\":{}} junk", "{\"n\":{}}"),
            ("{\"n\":NaN, \"a\":1}", "{}"),
            ("{\"a\":1,}", "{\"a\":1}"),
            ("[1, \"x", "[1, \"x\"]"),
        ] {
            assert_eq!(best_reading(text), want, "{text}");
        }
        assert!(event::Raw::parse(&best_reading(&"[".repeat(100_000))).is_ok());
    }

    /// Whether `part` can be a reading of a beginning of `whole`.
    fn begins(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::String(p), Value::String(w)) => w.starts_with(p.as_str()),
            (Value::Array(p), Value::Array(w)) => {
                p.len() <= w.len() && p.iter().zip(w).all(|(p, w)| begins(p, w))
            }
            (Value::Object(p), Value::Object(w)) => {
                p.len() <= w.len()
                    && p.iter()
                        .zip(w)
                        .all(|((pk, p), (wk, w))| pk == wk && begins(p, w))
            }
            _ => part == whole,
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\\\\\"\n\u{1f600}é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z\\\\\"é]{0,4}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_reading_of_a_prefix_is_a_prefix(inner in value(), pretty in any::<bool>()) {
            let whole = serde_json::json!({ "v": inner });
            let text = if pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) }.unwrap();
            for (at, _) in text.char_indices() {
                let part: Value = serde_json::from_str(&best_reading(&text[..at])).unwrap();
                prop_assert!(begins(&part, &whole), "{} of {}", part, &text[..at]);
            }
            prop_assert_eq!(best_reading(&text), text);
        }

        #[test]
        fn any_text_has_a_reading(text in "[{}\\[\\],:\"\\\\u1d8tre. \\né-]{0,40}") {
            prop_assert!(event::Raw::parse(&best_reading(&text)).is_ok(), "{}", best_reading(&text));
        }
    }

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
            let mut live = LiveArguments::default();
            let mut got = String::new();
            for (at, c) in text.char_indices() {
                got += &live.read(&text[..at + c.len_utf8()], &unpacked);
            }
            assert_eq!(got, certain, "{text} in single characters");
        }
    }
}
