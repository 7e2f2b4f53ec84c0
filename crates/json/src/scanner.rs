//! Detects whether JSON that arrives in fragments is complete, reading each byte once.

use event::MAX_DEPTH;
use memchr::memchr2;

/// The next token that the grammar of RFC 8259 allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScanState {
    #[default]
    Value,
    /// After `[`: a value or `]`.
    FirstItem,
    /// After `{`: a key or `}`.
    FirstKey,
    Key,
    Colon,
    /// After a value inside a container: a comma or the closing bracket.
    Comma,
    Text,
    Escape,
    /// Inside `\u`, before this many hex digits.
    Hex(u8),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
    /// Inside `true`, `false` or `null`, before the byte of [`WORDS`] at this offset.
    Word(u8),
    /// The value has ended.
    End,
}

/// The words of JSON without their first bytes, each with a zero byte as its end. A state that held
/// the rest of a word as a slice would be three times as large.
const WORDS: &[u8] = b"rue\0alse\0ull\0";
const TRUE: ScanState = ScanState::Word(0);
const FALSE: ScanState = ScanState::Word(4);
const NULL: ScanState = ScanState::Word(9);

impl ScanState {
    /// Whether a number may end here.
    pub(crate) fn is_number(self) -> bool {
        use ScanState::{Digits, Fraction, Power, Zero};
        matches!(self, Zero | Digits | Fraction | Power)
    }
}

/// A completeness scanner. It reads a text in any pieces and reports whether the text so far begins
/// a JSON value, whether that value has ended, and, if the text is invalid, whether its brackets
/// are closed.
///
/// Cloning copies a few words, so a caller can test a fragment on a clone.
#[derive(Clone, Debug, Default)]
pub struct JsonScanner {
    pub(crate) state: ScanState,
    pub(crate) depth: u32,
    /// For each open bracket, whether it opens an object; the innermost bracket is bit 0.
    pub(crate) objects: u128,
    /// Whether the text inside [`ScanState::Text`] is a key.
    pub(crate) key: bool,
    /// The first byte of the value.
    first: u8,
    /// Whether the value has members or items.
    filled: bool,
    /// Counts brackets and quotes after the text became invalid; `None` while it is valid.
    broken: Option<Balance>,
}

impl JsonScanner {
    /// Reads the next piece. Returns how many of its bytes belong to the value and the white space
    /// after it. If the value ends inside the piece, the rest of the piece is not read.
    pub fn push(&mut self, text: &str) -> usize {
        use ScanState::*;
        /// The pattern of JSON white space.
        macro_rules! SPACE {
            () => {
                b' ' | b'\t' | b'\r' | b'\n'
            };
        }
        let b = text.as_bytes();
        if self.broken.is_some() {
            return self.count(b, 0);
        }
        let mut i = 0;
        while let Some(&c) = b.get(i) {
            // A jump by the state and then one by the byte: most bytes outside strings cost little
            // else.
            let next = match self.state {
                Text => {
                    i = event::plain(b, i);
                    match b.get(i) {
                        Some(b'"') if self.key => Some(Colon),
                        Some(b'"') => Some(self.after_value()),
                        Some(b'\\') => Some(Escape),
                        Some(_) => None,
                        None => return i,
                    }
                }
                Escape => match c {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(Text),
                    b'u' => Some(Hex(4)),
                    _ => None,
                },
                Hex(1) if c.is_ascii_hexdigit() => Some(Text),
                Hex(n) => c.is_ascii_hexdigit().then(|| Hex(n - 1)),
                FirstKey | Key => match c {
                    b'"' => {
                        (self.key, self.filled) = (true, true);
                        Some(Text)
                    }
                    b'}' if self.state == FirstKey => Some(self.close()),
                    SPACE!() => Some(self.state),
                    _ => None,
                },
                Colon => match c {
                    b':' => Some(Value),
                    SPACE!() => Some(Colon),
                    _ => None,
                },
                Comma => match c {
                    b',' if self.is_in_object() => Some(Key),
                    b',' => Some(Value),
                    b'}' if self.is_in_object() => Some(self.close()),
                    b']' if !self.is_in_object() => Some(self.close()),
                    SPACE!() => Some(Comma),
                    _ => None,
                },
                Value | FirstItem => match c {
                    b'"' => self.begin(c, Text),
                    b'1'..=b'9' => self.begin(c, Digits),
                    b'0' => self.begin(c, Zero),
                    b'-' => self.begin(c, Minus),
                    b't' => self.begin(c, TRUE),
                    b'f' => self.begin(c, FALSE),
                    b'n' => self.begin(c, NULL),
                    b'{' | b'[' => self.open(c),
                    b']' if self.state == FirstItem => Some(self.close()),
                    SPACE!() => Some(self.state),
                    _ => None,
                },
                Minus => match c {
                    b'0' => Some(Zero),
                    b'1'..=b'9' => Some(Digits),
                    _ => None,
                },
                // After strings, runs of digits are the longest runs.
                Digits | Fraction | Power if c.is_ascii_digit() => {
                    i += 1;
                    while let Some(b'0'..=b'9') = b.get(i) {
                        i += 1;
                    }
                    continue;
                }
                Zero | Digits if c == b'.' => Some(Point),
                Zero | Digits | Fraction if matches!(c, b'e' | b'E') => Some(Exponent),
                // A number ends only at the byte after it.
                Zero | Digits | Fraction | Power => match c {
                    SPACE!() => Some(self.after_value()),
                    b',' | b']' | b'}' if self.depth > 0 => {
                        self.state = Comma;
                        continue;
                    }
                    _ => None,
                },
                Point => c.is_ascii_digit().then_some(Fraction),
                Exponent if matches!(c, b'+' | b'-') => Some(Sign),
                Exponent | Sign => c.is_ascii_digit().then_some(Power),
                Word(rest) => {
                    let (first, rest) = (WORDS[usize::from(rest)], rest + 1);
                    let is_last = WORDS[usize::from(rest)] == 0;
                    (c == first).then(|| {
                        if is_last {
                            self.after_value()
                        } else {
                            Word(rest)
                        }
                    })
                }
                End => match c {
                    SPACE!() => Some(End),
                    _ => return i,
                },
            };
            let Some(next) = next else {
                return self.broken_at(b, i);
            };
            self.state = next;
            i += 1;
        }
        i
    }

    /// Whether the text contains only white space so far.
    pub fn is_blank(&self) -> bool {
        self.first == 0
    }

    /// Whether the text so far is a JSON value or the beginning of one.
    pub fn is_valid(&self) -> bool {
        self.broken.is_none()
    }

    /// Whether the text is valid so far and the next byte is inside an array or object.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.is_valid() && self.depth > 0
    }

    /// Whether the text is a valid object whose top-level `}` has arrived.
    pub fn is_balanced(&self) -> bool {
        self.is_valid() && self.state == ScanState::End && self.first == b'{'
    }

    /// Whether the text is a valid object without members.
    pub fn is_empty_object(&self) -> bool {
        self.is_balanced() && !self.filled
    }

    /// Whether the text is a complete value if no more text follows. A number ends only then.
    pub fn is_whole(&self) -> bool {
        let ended = self.state == ScanState::End || self.state.is_number();
        self.is_valid() && self.depth == 0 && ended
    }

    /// Whether the text is valid so far and the next byte is inside a string.
    pub fn is_in_text(&self) -> bool {
        self.is_valid()
            && matches!(
                self.state,
                ScanState::Text | ScanState::Escape | ScanState::Hex(_)
            )
    }

    /// Whether every bracket and quote is closed, judged by the grammar, or by counting after the
    /// text became invalid. A text that ends with an open bracket or quote was truncated.
    pub fn is_closed(&self) -> bool {
        match self.broken {
            None => self.is_whole() || self.is_blank(),
            Some(balance) => !balance.is_open(),
        }
    }

    #[inline]
    fn begin(&mut self, c: u8, state: ScanState) -> Option<ScanState> {
        self.key = false;
        if self.depth == 0 {
            self.first = c;
        }
        self.filled = true;
        Some(state)
    }

    /// Returns `None` if the text is nested too deeply.
    #[inline]
    fn open(&mut self, c: u8) -> Option<ScanState> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        if self.depth == 0 {
            self.first = c;
        } else {
            self.filled = true;
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(c == b'{');
        Some(if c == b'{' {
            ScanState::FirstKey
        } else {
            ScanState::FirstItem
        })
    }

    #[inline]
    fn close(&mut self) -> ScanState {
        self.depth -= 1;
        self.objects >>= 1;
        self.after_value()
    }

    #[inline]
    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    #[inline]
    fn after_value(&self) -> ScanState {
        if self.depth == 0 {
            ScanState::End
        } else {
            ScanState::Comma
        }
    }

    /// Reads the rest of a piece after the text became invalid, and returns its end.
    #[cold]
    #[inline(never)] // inside `push` it would cost each valid fragment some fifteen instructions
    fn count(&mut self, b: &[u8], from: usize) -> usize {
        if let Some(balance) = &mut self.broken {
            balance.count(&b[from..]);
        }
        b.len()
    }

    /// Records that the byte at `i` is invalid, and reads the rest of the piece.
    #[cold]
    #[inline(never)]
    fn broken_at(&mut self, b: &[u8], i: usize) -> usize {
        let is_text = self.is_in_text();
        let is_escape = self.state == ScanState::Escape;
        self.broken = Some(Balance::within(self.depth, is_text, is_escape));
        if self.first == 0 {
            self.first = b'?';
        }
        self.count(b, i)
    }
}

/// Finds the end of an object, an array or a string by counting brackets and quotes. The bytes may
/// arrive in any pieces.
///
/// Models write JSON with small mistakes, such as a raw newline in a string or a superfluous comma,
/// so the grammar is ignored here. A bracket or a marker inside a string closes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balance {
    depth: u32,
    text: bool,
    escape: bool,
}

impl Balance {
    /// Whether this byte begins an object, an array or a string. Other values have no closing
    /// character.
    pub fn begins(byte: u8) -> bool {
        matches!(byte, b'{' | b'[' | b'"')
    }

    /// Returns the state inside `depth` brackets. `text` means inside a string, and `escape` after
    /// a backslash in the string.
    fn within(depth: u32, text: bool, escape: bool) -> Balance {
        Balance {
            depth,
            text,
            escape,
        }
    }

    /// Whether a bracket or a quote is open.
    fn is_open(&self) -> bool {
        self.depth > 0 || self.text
    }

    /// Reads the next bytes, including bytes after the end of the value.
    fn count(&mut self, mut bytes: &[u8]) {
        while let Some(end) = self.push(bytes) {
            bytes = &bytes[end..];
        }
    }

    /// Reads the next bytes, beginning with the first byte of the value. Returns the index after
    /// the value's last byte in `bytes`, or `None` if the value has not ended yet.
    pub fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut i = 0;
        while i < bytes.len() {
            if self.escape {
                self.escape = false;
                i += 1;
                continue;
            }
            if self.text {
                let at = end_of_run(&bytes[i..])?;
                i += at + 1;
                if bytes[i - 1] == b'\\' {
                    self.escape = true;
                } else {
                    self.text = false;
                    if self.depth == 0 {
                        return Some(i);
                    }
                }
                continue;
            }
            match bytes[i] {
                b'"' => self.text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(i + 1);
                    }
                }
                _ => {}
            }
            i += 1;
        }
        None
    }
}

/// Finds the next quote or backslash. `memchr2` is faster only for 32 bytes or more, and deltas are
/// often shorter.
#[inline]
fn end_of_run(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < 32 {
        return bytes.iter().position(|c| matches!(c, b'"' | b'\\'));
    }
    memchr2(b'"', b'\\', bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> JsonScanner {
        let mut s = JsonScanner::default();
        s.push(text);
        s
    }

    #[test]
    fn complete_at_the_closing_brace_and_not_before() {
        let text = r#"{"a": [1, -0.5e+3, {"b": "}\"\u00e9"}], "c": null, "d": 12}"#;
        for at in 1..text.len() {
            let s = scan(&text[..at]);
            assert!(
                s.is_valid() && !s.is_balanced() && !s.is_closed(),
                "{}",
                &text[..at]
            );
        }
        assert!(scan(text).is_balanced());
        let mut s = JsonScanner::default();
        assert_eq!(s.push("{} {\"b\"}"), 3);
        assert!(s.is_empty_object());
        assert!(!scan("{\"a\":{}}").is_empty_object());
    }

    #[test]
    fn byte_by_byte_is_the_same_as_at_once() {
        for text in [
            r#"{"a":[tru,1]}"#,
            r#"[1,2]"#,
            "12 ",
            "12x",
            "{'a':1}",
            "{\"a\":\"\\x\"}",
            "\"a\nb\"",
            "{\"a\" 1}",
            "-",
            "nul",
            "{\"a\":1]",
        ] {
            let mut one = JsonScanner::default();
            for c in text.chars() {
                one.push(&c.to_string());
            }
            let all = scan(text);
            assert_eq!(
                (
                    one.is_valid(),
                    one.is_balanced(),
                    one.is_closed(),
                    one.is_whole()
                ),
                (
                    all.is_valid(),
                    all.is_balanced(),
                    all.is_closed(),
                    all.is_whole()
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn agrees_with_the_strict_reader() {
        for text in [
            "{}",
            "[]",
            "1",
            "-0",
            "01",
            "1.",
            "1.5",
            "1e",
            "1e5",
            "true",
            "nulL",
            "\"\\u12g4\"",
            "{\"a\":01}",
            "[1,]",
            "{,}",
            "[}",
            "{\"a\":1,}",
            " 7 ",
        ] {
            assert_eq!(
                scan(text).is_whole(),
                event::Raw::parse(text).is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_broken_may_still_be_closed() {
        assert!(scan("{'a': 1,}").is_closed());
        assert!(!scan("{'a': [1,}").is_closed());
        assert!(!scan("{\"a\": tru, \"b").is_closed());
        assert!(scan("").is_closed() && scan("").is_blank());
        let deep = scan(&"[".repeat(100_000));
        assert!(!deep.is_valid() && !deep.is_closed());
    }

    #[test]
    fn ends_where_the_value_does_for_every_cut() {
        for (text, end) in [
            (r#"{"a":"}\"</x>"} rest"#, Some(15)),
            ("[1,{\"b\":[]}],", Some(12)),
            (r#""a\\"x"#, Some(5)),
            ("{\"a\":\"l1\nl2\"}", Some(13)),
            ("{\"a\":", None),
        ] {
            for cut in 0..=text.len() {
                let mut b = Balance::default();
                let first = b.push(&text.as_bytes()[..cut]);
                let got = first.or_else(|| b.push(&text.as_bytes()[cut..]).map(|n| cut + n));
                assert_eq!(got, end, "{text} cut at {cut}");
            }
        }
    }
}
