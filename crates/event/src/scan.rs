//! The JSON grammar of RFC 8259 over a complete text: one pass, no recursion, no copy.
//!
//! [`value`] validates one value and returns its end. All JSON that this crate reads goes through
//! it, so [`crate::Raw`] can walk an accepted line again without error handling.

/// The maximum nesting depth of arrays and objects. The open brackets of a text are stored as the
/// bits of a `u128`.
pub const MAX_DEPTH: u32 = 128;

/// The reason why a text is not the expected JSON, and the position of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// The offset in bytes from the start of the text.
    pub at: usize,
    /// The reason, as the end of the sentence "not an event: …".
    pub what: &'static str,
}

impl std::fmt::Display for ScanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for ScanError {}

pub(crate) type Scan<T> = Result<T, ScanError>;

#[cold]
pub(crate) fn fail<T>(at: usize, what: &'static str) -> Scan<T> {
    Err(ScanError { at, what })
}

/// The bytes that end a run of plain bytes in a string: the quote, the backslash and the control
/// characters.
const STOP: [bool; 256] = {
    let mut t = [false; 256];
    let mut i = 0;
    while i < 0x20 {
        t[i] = true;
        i += 1;
    }
    t[b'"' as usize] = true;
    t[b'\\' as usize] = true;
    t
};

/// Skips JSON white space, starting at `at`. Returns the index of the first other byte, or the
/// length of `b`.
#[inline]
pub fn space(b: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = b.get(at) {
        at += 1;
    }
    at
}

/// Skips the plain bytes of a JSON string, starting at `at`. Returns the index of the first quote,
/// backslash or control character, or the length of `b`. Plain bytes are skipped eight at a time.
#[inline]
pub fn plain(b: &[u8], at: usize) -> usize {
    // Most strings end within the first eight bytes.
    match b.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(eight) => match stops(*eight) {
            0 => long_plain(b, at + 8),
            stops => at + stops.trailing_zeros() as usize / 8,
        },
        None => long_plain(b, at),
    }
}

/// Returns a word whose lowest high bit that is set belongs to the first byte that is not plain; 0
/// if there is none.
#[inline(always)]
fn stops(eight: [u8; 8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let w = u64::from_le_bytes(eight);
    let quote = w ^ (ONES * b'"' as u64);
    let slash = w ^ (ONES * b'\\' as u64);
    // A byte of `x` below `n` borrows in `x - n`, which sets its high bit. The borrow can also
    // change the next byte, but only the lowest match counts.
    let below = |x: u64, n: u64| x.wrapping_sub(ONES * n) & !x;
    (below(quote, 1) | below(slash, 1) | below(w, 0x20)) & HIGH
}

/// The rest of [`plain`], which few strings need.
#[inline(never)]
fn long_plain(b: &[u8], mut at: usize) -> usize {
    while let Some(eight) = b.get(at..).and_then(|rest| rest.first_chunk()) {
        match stops(*eight) {
            0 => at += 8,
            stops => return at + stops.trailing_zeros() as usize / 8,
        }
    }
    while at < b.len() && !STOP[b[at] as usize] {
        at += 1;
    }
    at
}

/// Checks that only white space follows, starting at `at`.
pub(crate) fn end(b: &[u8], at: usize) -> Scan<()> {
    let rest = space(b, at);
    if rest < b.len() {
        fail(rest, "text after the JSON value")
    } else {
        Ok(())
    }
}

/// Validates the string whose opening quote is at `at`. Returns the index after its closing quote,
/// and whether it has an escape.
#[inline(always)]
pub(crate) fn string(b: &[u8], at: usize) -> Scan<(usize, bool)> {
    string_from(b, at + 1)
}

/// Like [`string`], for a text that starts after the opening quote.
#[inline(always)]
pub(crate) fn inside(b: &[u8]) -> Scan<(usize, bool)> {
    string_from(b, 0)
}

#[inline(always)]
fn string_from(b: &[u8], at: usize) -> Scan<(usize, bool)> {
    let i = plain(b, at);
    if b.get(i) == Some(&b'"') {
        Ok((i + 1, false))
    } else {
        escaped(b, i).map(|end| (end, true))
    }
}

/// Validates the rest of a string, starting at the first byte that is not plain. Returns the index
/// after the closing quote.
fn escaped(b: &[u8], at: usize) -> Scan<usize> {
    let mut i = at;
    loop {
        match b.get(i) {
            Some(b'"') => return Ok(i + 1),
            Some(b'\\') => match b.get(i + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => i += 2,
                Some(b'u') => match b.get(i + 2..i + 6) {
                    Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => i += 6,
                    _ => return fail(i, "a \\u escape without four hex digits"),
                },
                _ => return fail(i, "an unknown escape in a string"),
            },
            Some(c) if *c < 0x20 => return fail(i, "a control character in a string"),
            Some(_) => i = plain(b, i + 1),
            None => return fail(i, "the line ends inside a string"),
        }
    }
}

fn digits(b: &[u8], at: usize) -> Scan<usize> {
    let mut i = at;
    while let Some(b'0'..=b'9') = b.get(i) {
        i += 1;
    }
    if i == at {
        fail(at, "a number without digits")
    } else {
        Ok(i)
    }
}

pub(crate) fn number(b: &[u8], at: usize) -> Scan<usize> {
    let mut i = at;
    if b.get(i) == Some(&b'-') {
        i += 1;
    }
    i = if b.get(i) == Some(&b'0') {
        i + 1
    } else {
        digits(b, i)?
    };
    if b.get(i) == Some(&b'.') {
        i = digits(b, i + 1)?;
    }
    if let Some(b'e' | b'E') = b.get(i) {
        i += 1;
        if let Some(b'+' | b'-') = b.get(i) {
            i += 1;
        }
        i = digits(b, i)?;
    }
    Ok(i)
}

fn word(b: &[u8], at: usize, w: &'static str) -> Scan<usize> {
    if b[at..].starts_with(w.as_bytes()) {
        Ok(at + w.len())
    } else {
        fail(at, "not a JSON value")
    }
}

/// Receives the offsets that [`crate::Raw::walk`] reports, in the order of the text. `()` ignores
/// them; [`crate::Index`] stores them.
pub trait Record {
    /// Reports the key of the next value, with its quotes.
    fn key(&mut self, start: usize, end: usize, escaped: bool);
    /// Reports a string, number, `true`, `false` or `null`.
    fn leaf(&mut self, start: usize, end: usize, escaped: bool);
    /// Reports the opening bracket of an array or object.
    fn open(&mut self, start: usize);
    /// Reports the index after the closing bracket of the innermost open array or object.
    fn close(&mut self, end: usize);
}

impl Record for () {
    fn key(&mut self, _start: usize, _end: usize, _escaped: bool) {}
    fn leaf(&mut self, _start: usize, _end: usize, _escaped: bool) {}
    fn open(&mut self, _start: usize) {}
    fn close(&mut self, _end: usize) {}
}

/// Validates the value that starts at `at`, without white space before it. Returns the index after
/// the value, and whether the value is a string with an escape.
#[inline]
pub(crate) fn value(b: &[u8], at: usize) -> Scan<(usize, bool)> {
    match b.get(at) {
        Some(b'"') => string(b, at),
        Some(b'{' | b'[') => container(b, WalkPlace::from(at), &mut ()).map(|end| (end, false)),
        _ => scalar(b, at).map(|end| (end, false)),
    }
}

#[inline]
fn scalar(b: &[u8], at: usize) -> Scan<usize> {
    match b.get(at) {
        Some(b'-' | b'0'..=b'9') => number(b, at),
        Some(b't') => word(b, at, "true"),
        Some(b'f') => word(b, at, "false"),
        Some(b'n') => word(b, at, "null"),
        Some(_) => fail(at, "not a JSON value"),
        None => fail(at, "the line ends before a value"),
    }
}

/// The position of a walk: at the start of the outermost value, or after a value inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkPlace {
    pub at: usize,
    depth: u32,
    /// The open brackets, one bit each (1 for an object), with the innermost in bit 0.
    objects: u128,
}

impl WalkPlace {
    pub(crate) fn from(at: usize) -> WalkPlace {
        WalkPlace {
            at,
            depth: 0,
            objects: 0,
        }
    }

    /// Records an opening bracket.
    #[inline]
    pub(crate) fn open(&mut self, bracket: u8) {
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(bracket == b'{');
    }
}

/// Validates the rest of an array or object, and reports its contents to `record`. Returns the
/// index after it.
///
/// White space is checked only where the next byte differs from what compact JSON would have there,
/// because providers send compact JSON.
pub(crate) fn container(b: &[u8], mut walk: WalkPlace, record: &mut impl Record) -> Scan<usize> {
    let mut i = walk.at;
    let mut is_after_value = walk.depth > 0;
    'value: loop {
        match b.get(i) {
            _ if std::mem::take(&mut is_after_value) => {}
            Some(b'"') => {
                let (end, escaped) = string(b, i)?;
                record.leaf(i, end, escaped);
                i = end;
            }
            Some(&open @ (b'{' | b'[')) => {
                if walk.depth == MAX_DEPTH {
                    return fail(i, "nested deeper than 128");
                }
                walk.open(open);
                record.open(i);
                i = space(b, i + 1);
                let close = if open == b'{' { b'}' } else { b']' };
                if b.get(i) != Some(&close) {
                    if open == b'{' {
                        i = key(b, i, record)?;
                    }
                    continue 'value;
                }
            }
            _ => {
                let end = scalar(b, i)?;
                record.leaf(i, end, false);
                i = end;
            }
        }
        // At this point a value has ended, or the closing bracket of an empty container follows.
        loop {
            match b.get(i) {
                Some(b',') => {
                    i = space(b, i + 1);
                    if walk.objects & 1 == 1 {
                        i = key(b, i, record)?;
                    }
                    continue 'value;
                }
                Some(&close @ (b'}' | b']')) if (close == b'}') == (walk.objects & 1 == 1) => {
                    i += 1;
                    record.close(i);
                    walk.depth -= 1;
                    walk.objects >>= 1;
                    if walk.depth == 0 {
                        return Ok(i);
                    }
                }
                Some(b' ' | b'\t' | b'\r' | b'\n') => i = space(b, i),
                Some(_) => return fail(i, "no comma or closing bracket"),
                None => return fail(i, "the line ends inside a value"),
            }
        }
    }
}

/// Validates a key and its colon. Returns the index at which the value starts.
#[inline(always)]
fn key(b: &[u8], at: usize, record: &mut impl Record) -> Scan<usize> {
    if b.get(at) != Some(&b'"') {
        return fail(at, "no key in quotes");
    }
    let (end, escaped) = string(b, at)?;
    record.key(at, end, escaped);
    let i = if b.get(end) == Some(&b':') {
        end
    } else {
        space(b, end)
    };
    if b.get(i) != Some(&b':') {
        return fail(i, "no colon after a key");
    }
    Ok(space(b, i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(s: &str) -> bool {
        matches!(value(s.as_bytes(), 0), Ok((end, _)) if end == s.len())
    }

    #[test]
    fn accepts_what_serde_json_accepts() {
        for s in [
            "{}",
            "[]",
            r#"{"a":[1,-0.5e+3,{"b":null}],"c":"\u00e9\n"}"#,
            "[[],{}]",
            "true",
            "-0",
            r#""long enough for the eight byte step""#,
        ] {
            assert!(whole(s), "{s}");
        }
        for s in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "01",
            "1.",
            "\"\\x\"",
            "\"\u{1}\"",
            "tru",
            "[1 2]",
            "{1:2}",
            "\"abcdefgh\n\"",
            "+1",
            "NaN",
            "\"\\u12\"",
            "[}",
        ] {
            assert!(!whole(s), "{s}");
        }
    }

    #[test]
    fn depth_is_bounded_without_recursion() {
        assert!(whole(&("[".repeat(128) + &"]".repeat(128))));
        assert_eq!(
            value("[".repeat(100_000).as_bytes(), 0).unwrap_err().what,
            "nested deeper than 128"
        );
    }
}
