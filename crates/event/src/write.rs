//! Writes JSON directly into a buffer, in the order of the calls.

use crate::scan::{Record, space};

/// How each byte is written: 0 unchanged; 1 as a long escape; 2 the first byte of U+0080–U+00BF,
/// which may be a C1 control and then is escaped with the second byte; any other value is the letter
/// of a short escape.
const ESCAPE: [u8; 256] = {
    let mut t = [0; 256];
    let mut i = 0;
    while i < 0x20 {
        t[i] = 1;
        i += 1;
    }
    t[b'"' as usize] = b'"';
    t[b'\\' as usize] = b'\\';
    t[b'\n' as usize] = b'n';
    t[b'\r' as usize] = b'r';
    t[b'\t' as usize] = b't';
    t[0x7f] = 1;
    t[0xc2] = 2;
    t
};

/// Appends `text` as a JSON string. C0, DEL and C1 are always escaped, so that they never reach a
/// terminal.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    if text.len() <= SHORT && push_short(out, text) {
        return;
    }
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// The length of a short text, in bytes. The texts of most deltas are short.
const SHORT: usize = 15;

/// Appends a short text, which is put together before it is appended. Returns `false`, and appends
/// nothing, if a byte may need a long escape.
#[inline]
fn push_short(out: &mut Vec<u8>, text: &str) -> bool {
    let mut short = [b'"'; 2 * SHORT + 2];
    let mut end = 1;
    for c in text.bytes() {
        match ESCAPE[c as usize] {
            0 => short[end] = c,
            1 | 2 => return false,
            letter => {
                short[end] = b'\\';
                end += 1;
                short[end] = letter;
            }
        }
        end += 1;
    }
    short[end] = b'"';
    out.extend_from_slice(&short[..=end]);
    true
}

/// Returns `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the first `limit` bytes of a text, or slightly fewer so that no character is split.
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Appends a JSON string, given the validated and escaped text between its quotes. DEL and C1
/// controls are escaped too.
pub(crate) fn push_escaped(out: &mut Vec<u8>, inner: &str) {
    out.push(b'"');
    let mut from = 0;
    let _ = minify_string(out, inner, &mut from, 0);
    out.extend_from_slice(&inner.as_bytes()[from..]);
    out.push(b'"');
}

/// Skips the bytes that are written unchanged, starting at `at`, eight at a time. Returns the index
/// of the first byte that [`ESCAPE`] lists, or the length of `b`.
#[inline]
fn unchanged(b: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    while let Some(eight) = b.get(at..at + 8) {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        let word = u64::from_le_bytes(word);
        // In each of these words, the lowest high bit that is set belongs to the first byte that
        // equals `byte` or is a control character.
        let equal = |byte: u8| {
            let zero = word ^ (ONES * u64::from(byte));
            zero.wrapping_sub(ONES) & !zero
        };
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (equal(b'"') | equal(b'\\') | equal(0x7f) | equal(0xc2) | control) & HIGH;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < b.len() && ESCAPE[b[at] as usize] == 0 {
        at += 1;
    }
    at
}

/// Appends the bytes from `from` to `to` of `b`. A short run is appended with the bytes after it,
/// which are then removed: a copy of a fixed length is a store, any other a function call.
#[inline]
fn push_run(out: &mut Vec<u8>, b: &[u8], from: usize, to: usize) {
    const SHORT: usize = 16;
    if from == to {
        return;
    }
    match b.get(from..from + SHORT) {
        Some(run) if to - from <= SHORT => {
            let length = out.len() + (to - from);
            out.extend_from_slice(run);
            out.truncate(length);
        }
        _ => out.extend_from_slice(&b[from..to]),
    }
}

fn escape(out: &mut Vec<u8>, text: &str) {
    let b = text.as_bytes();
    let mut from = 0;
    let mut i = 0;
    while i < b.len() {
        i = unchanged(b, i);
        let Some(&first) = b.get(i) else { break };
        let class = ESCAPE[first as usize];
        if class == 2 && b[i + 1] > 0x9f {
            i += 1;
            continue;
        }
        push_run(out, b, from, i);
        let width = if class == 2 { 2 } else { 1 };
        match class {
            1 | 2 => {
                let code = b[i + width - 1];
                let hex = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hex[code as usize >> 4], hex[code as usize & 15]]);
            }
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
        i += width;
        from = i;
    }
    out.extend_from_slice(&b[from..]);
}

/// Appends validated JSON without the white space between its tokens, so that it fits on one line
/// of the protocol. DEL and C1 controls in strings are escaped; everything else, including the
/// digits of numbers, stays unchanged.
pub fn minify(out: &mut Vec<u8>, json: &str) {
    minify_recorded(out, json, &mut ());
}

/// Like [`minify`], and reports the contents of the JSON to `record`, with their offsets in `json`.
#[inline]
pub fn minify_recorded(out: &mut Vec<u8>, json: &str, record: &mut impl Record) {
    let b = json.as_bytes();
    // Bytes that stay are appended in runs; `from` is the start of the current run.
    let (mut from, mut i) = (0, 0);
    while i < b.len() {
        let start = i;
        match b[i] {
            b'"' => {
                let escaped;
                (i, escaped) = minify_string(out, json, &mut from, i + 1);
                if b.get(space(b, i)) == Some(&b':') {
                    record.key(start, i, escaped);
                } else {
                    record.leaf(start, i, escaped);
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {
                push_run(out, b, from, i);
                i += 1;
                from = i;
            }
            b'{' | b'[' => {
                record.open(i);
                i += 1;
            }
            b'}' | b']' => {
                i += 1;
                record.close(i);
            }
            b',' | b':' => i += 1,
            // A number or a word.
            _ => {
                i += 1;
                while let Some(b'0'..=b'9' | b'.' | b'+' | b'-' | b'A'..=b'Z' | b'a'..=b'z') =
                    b.get(i)
                {
                    i += 1;
                }
                record.leaf(start, i, false);
            }
        }
    }
    out.extend_from_slice(&b[from..]);
}

/// Appends the rest of a string, starting at `i`, except for the bytes from `from` on, which the
/// caller appends. Returns the index after its closing quote, and whether it has an escape.
#[inline]
fn minify_string(out: &mut Vec<u8>, json: &str, from: &mut usize, mut i: usize) -> (usize, bool) {
    let b = json.as_bytes();
    let mut escaped = false;
    loop {
        i = unchanged(b, i);
        let Some(first) = b.get(i) else {
            return (b.len(), escaped);
        };
        i += match *first {
            b'"' => return (i + 1, escaped),
            b'\\' => {
                escaped = true;
                2
            }
            c if c == 0x7f || (c == 0xc2 && b[i + 1] <= 0x9f) => {
                let width = if c == 0x7f { 1 } else { 2 };
                out.extend_from_slice(&b[*from..i]);
                escape(out, &json[i..i + width]);
                *from = i + width;
                width
            }
            _ => 1,
        };
    }
}

/// Appends validated JSON that is on one line. DEL and C1 controls, which only occur in strings,
/// are escaped, because other programs write them unescaped.
pub(crate) fn push_json(out: &mut Vec<u8>, json: &str) {
    let b = json.as_bytes();
    let may_escape = |c: &u8| *c == 0x7f || *c == 0xc2;
    // Within a chunk of a fixed length, without an early exit, the compiler vectorizes this loop.
    let (chunks, rest) = b.as_chunks::<32>();
    let any = |chunk: &[u8]| {
        chunk
            .iter()
            .fold(0, |found, c| found | u8::from(may_escape(c)))
            != 0
    };
    if !chunks.iter().any(|chunk| any(chunk)) && !any(rest) {
        return out.extend_from_slice(b);
    }
    let mut from = 0;
    while let Some(length) = b[from..].iter().position(may_escape) {
        let at = from + length;
        out.extend_from_slice(&b[from..at]);
        from = at + if b[at] == 0x7f { 1 } else { 2 };
        escape(out, &json[at..from]);
    }
    out.extend_from_slice(&b[from..]);
}

/// Appends an integer. Most integers are indexes and counts with few digits.
pub(crate) fn push_int(out: &mut Vec<u8>, value: i128) {
    let Ok(mut rest) = u32::try_from(value) else {
        return out.extend_from_slice(value.to_string().as_bytes());
    };
    let digit = |n: u32| b'0' + (n % 10) as u8;
    match rest {
        0..=9 => return out.push(digit(rest)),
        10..=99 => return out.extend_from_slice(&[digit(rest / 10), digit(rest)]),
        100..=999 => {
            return out.extend_from_slice(&[digit(rest / 100), digit(rest / 10), digit(rest)]);
        }
        _ => {}
    }
    let mut digits = [0; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = digit(rest);
        rest /= 10;
        if rest == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// Writes an object: members in the order of the calls, then [`Object::close`].
#[derive(Debug)]
pub struct Object<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

/// Returns an object with the members that `fill` writes.
pub fn object(fill: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    fill(&mut object);
    object.close();
    String::from_utf8(out).unwrap_or_default()
}

impl<'b> Object<'b> {
    /// Opens an object at the end of `out`.
    pub fn open(out: &'b mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, first: true }
    }

    /// Continues an object that has members at the end of `out`.
    pub(crate) fn resume(out: &'b mut Vec<u8>) -> Self {
        Object { out, first: false }
    }

    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        push_string(self.out, key);
        self.out.push(b':');
    }

    /// Starts a member. `key` is the key with its quotes and its colon (`"text":`), and needs no
    /// escapes. The caller appends the value to the returned buffer.
    #[inline]
    pub(crate) fn member(&mut self, key: &'static str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    /// Writes a string member.
    pub fn str(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        push_string(self.out, value);
        self
    }

    /// Writes a string member, unless `value` is `None`.
    pub fn maybe_str(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.str(key, value);
        }
        self
    }

    /// Writes a member whose value is validated JSON on one line.
    pub fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key);
        push_json(self.out, json);
        self
    }

    /// Writes a member whose value is validated JSON that may span several lines; see [`minify`].
    pub fn minified(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key);
        minify(self.out, json);
        self
    }

    /// Writes an integer member.
    pub fn int(&mut self, key: &str, value: impl Into<i128>) -> &mut Self {
        self.key(key);
        push_int(self.out, value.into());
        self
    }

    /// Writes a boolean member.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// Writes a member that is an object; `fill` writes its members.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.key(key);
        let mut o = Object::open(self.out);
        fill(&mut o);
        o.close();
        self
    }

    /// Writes a member that is an array; `fill` writes its items.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut Array<'_>)) -> &mut Self {
        self.key(key);
        let mut a = Array::open(self.out);
        fill(&mut a);
        a.close();
        self
    }

    /// Closes the object.
    pub fn close(self) {
        self.out.push(b'}');
    }
}

/// Writes an array: items in the order of the calls, then [`Array::close`].
#[derive(Debug)]
pub struct Array<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

impl<'b> Array<'b> {
    /// Opens an array at the end of `out`.
    pub fn open(out: &'b mut Vec<u8>) -> Self {
        out.push(b'[');
        Array { out, first: true }
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    /// Writes a string item.
    pub fn str(&mut self, value: &str) -> &mut Self {
        self.comma();
        push_string(self.out, value);
        self
    }

    /// Writes an item that is validated JSON on one line.
    pub fn raw(&mut self, json: &str) -> &mut Self {
        self.comma();
        push_json(self.out, json);
        self
    }

    /// Writes an item that is an object; `fill` writes its members.
    pub fn object(&mut self, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.comma();
        let mut o = Object::open(self.out);
        fill(&mut o);
        o.close();
        self
    }

    /// Closes the array.
    pub fn close(self) {
        self.out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_leave_raw() {
        assert_eq!(
            quoted("a\"\\\n\u{1b}[2J\u{7f}\u{9b}\u{a0}é"),
            "\"a\\\"\\\\\\n\\u001b[2J\\u007f\\u009b\u{a0}é\""
        );
    }

    #[test]
    fn every_byte_at_every_place_is_escaped_or_not() {
        for place in 0..20 {
            for code in 0..0x100_u32 {
                let c = char::from_u32(code).unwrap();
                let text = format!("{}{c}{}", "x".repeat(place), "y".repeat(9));
                let read: String = crate::Raw::parse(&quoted(&text))
                    .unwrap()
                    .str()
                    .unwrap()
                    .into_owned();
                assert_eq!(read, text);
                let raw = quoted(&text).chars().any(|c| c.is_control());
                assert!(
                    !raw && quoted(&text).len() - text.len() - 2
                        == usize::from("\"\\\n\r\t".contains(c))
                            + if c.is_control() && !"\n\r\t".contains(c) {
                                6 - c.len_utf8()
                            } else {
                                0
                            }
                );
            }
        }
    }

    #[test]
    fn minified_json_fits_one_line_and_keeps_digits() {
        let mut out = vec![];
        minify(
            &mut out,
            "{ \"a b\" : [ 1.0 ,\n 23456789012345678901234 ], \"c\\\" \" : \"\u{7f} \u{85}é\" }",
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"a b\":[1.0,23456789012345678901234],\"c\\\" \":\"\\u007f \\u0085é\"}"
        );
    }

    #[test]
    fn values_that_others_wrote_have_no_raw_control_characters() {
        let made = "{\"k\u{7f}\":[\"a\u{85}\u{a0}é\u{9f}\",1]}";
        let clean = "{\"k\\u007f\":[\"a\\u0085\u{a0}é\\u009f\",1]}";
        let mut out = vec![];
        crate::Json::of(made).write(&mut out);
        assert_eq!(String::from_utf8(std::mem::take(&mut out)).unwrap(), clean);
        let mut o = Object::open(&mut out);
        o.raw("v", made).array("l", |l| {
            l.raw(made);
        });
        o.close();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{{\"v\":{clean},\"l\":[{clean}]}}")
        );
    }

    #[test]
    fn members_in_order() {
        let mut out = vec![];
        let mut o = Object::open(&mut out);
        o.str("a", "x").int("n", 5).bool("b", true).array("l", |a| {
            a.str("p").raw("1").object(|o| {
                o.raw("q", "null");
            });
        });
        o.close();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"a":"x","n":5,"b":true,"l":["p",1,{"q":null}]}"#
        );
    }

    #[test]
    fn integers_of_any_length() {
        for n in [
            0,
            7,
            9,
            10,
            42,
            99,
            100,
            205,
            999,
            1000,
            1001,
            65_536,
            i128::from(u32::MAX),
            4_294_967_296,
            -1,
            i128::from(i64::MIN),
        ] {
            let mut out = Vec::new();
            push_int(&mut out, n);
            assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
