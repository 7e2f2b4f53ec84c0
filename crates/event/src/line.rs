//! Reads one line of the protocol into an event that borrows from the line.

use crate::scan::{self, Scan, ScanError};
use crate::slot::{LineField, LineSlot};
use crate::{Event, Kind, Raw};

/// Reads lines. It keeps its table of members from line to line, so that reading does not allocate.
#[derive(Debug, Default)]
pub struct Scanner {
    slots: Vec<LineSlot>,
}

impl Scanner {
    /// Reads one line without its line feed (a carriage return at the end is white space).
    ///
    /// # Errors
    /// When the line is not a JSON object, or has no `type` that is a string. The caller writes a
    /// `warning` in its place.
    pub fn read<'a>(&'a mut self, line: &'a str) -> Result<Event<'a>, ScanError> {
        let b = line.as_bytes();
        self.slots.clear();
        let (mut kind, mut stream, mut choice, mut t) = (None, None, 0, None);
        let mut i;
        let mut value_before = false;
        // Our commands write the type first, so the line's beginning gives it without a key being
        // read.
        if let Some((known, end)) = prefix(b) {
            if let Some(slot) = lone_text(b, end) {
                self.slots.push(slot);
                return Ok(Event::of_line(known, None, 0, None, line, &self.slots));
            }
            (kind, i, value_before) = (Some(known), end, true);
        } else {
            i = scan::space(b, 0);
            if b.get(i) != Some(&b'{') {
                return scan::fail(
                    i,
                    if i == b.len() {
                        "an empty line"
                    } else {
                        "not a JSON object"
                    },
                );
            }
            i = scan::space(b, i + 1);
        }
        if !value_before && b.get(i) == Some(&b'}') {
            i += 1;
        } else {
            loop {
                if !std::mem::take(&mut value_before) {
                    let (common, slot) = member(b, i)?;
                    match common {
                        CommonMember::Type => {
                            kind = slot.value(line).str().map(|name| Kind::of(&name))
                        }
                        CommonMember::Stream => stream = Some(slot),
                        CommonMember::Choice => {
                            choice = slot
                                .value(line)
                                .i64()
                                .and_then(|c| u32::try_from(c).ok())
                                .unwrap_or(0)
                        }
                        CommonMember::Time => t = Some(slot),
                        CommonMember::Not(_) => self.slots.push(slot),
                    }
                    i = slot.value.1 as usize;
                }
                if let Some(b' ' | b'\t' | b'\r' | b'\n') = b.get(i) {
                    i = scan::space(b, i);
                }
                match b.get(i) {
                    Some(b',') => {
                        i = scan::space(b, i + 1);
                        if b.get(i) != Some(&b'"') {
                            return scan::fail(i, "no key in quotes");
                        }
                    }
                    Some(b'}') => {
                        i += 1;
                        break;
                    }
                    Some(_) => return scan::fail(i, "no comma or closing bracket"),
                    None => return scan::fail(i, "the line ends inside the object"),
                }
            }
        }
        i = scan::space(b, i);
        if i < b.len() {
            return scan::fail(i, "text after the JSON object");
        }
        let given = |slot: Option<LineSlot>| slot.map(|s| s.value(line)).filter(|v| !v.is_null());
        match kind {
            Some(kind) => Ok(Event::of_line(
                kind,
                given(stream),
                choice,
                given(t),
                line,
                &self.slots,
            )),
            None => scan::fail(0, "no \"type\" that is a string"),
        }
    }
}

/// The kind of a line that begins as our commands write one of the two most frequent kinds, and the
/// index after its type.
#[inline]
fn prefix(b: &[u8]) -> Option<(Kind, usize)> {
    let rest = b.strip_prefix(b"{\"type\":\"")?;
    // These two kinds make up most of nearly every stream.
    if rest.starts_with(b"content_delta\"") {
        return Some((Kind::ContentDelta, 23));
    }
    if rest.starts_with(b"tool_call_delta\"") {
        return Some((Kind::ToolCallDelta, 25));
    }
    None
}

/// The text of a line that has nothing else after its type: `,"text":"…"}` at `at`, up to the end.
#[inline]
fn lone_text(b: &[u8], at: usize) -> Option<LineSlot> {
    let key = at + 1;
    if !b[at..].starts_with(b",\"text\":\"") {
        return None;
    }
    let start = at + 8;
    let (end, value_escaped) = scan::string(b, start).ok()?;
    (b[end..] == *b"}").then(|| LineSlot {
        key: (key as u32, (start - 1) as u32),
        value: (start as u32, end as u32),
        key_escaped: false,
        value_escaped,
        field: LineField::Text,
    })
}

/// The members that every event may have.
#[derive(Clone, Copy)]
enum CommonMember {
    Type,
    Stream,
    Choice,
    Time,
    Not(LineField),
}

impl CommonMember {
    #[inline]
    fn of(key: &[u8]) -> CommonMember {
        match key {
            b"t" => CommonMember::Time,
            b"type" => CommonMember::Type,
            b"stream" => CommonMember::Stream,
            b"choice" => CommonMember::Choice,
            _ => CommonMember::Not(LineField::of(key)),
        }
    }
}

/// One member, its key at `at`.
#[inline]
fn member(b: &[u8], at: usize) -> Scan<(CommonMember, LineSlot)> {
    let (common, key_end, key_escaped, start) = match known(&b[at..]) {
        Some((common, length)) => (common, at + length - 1, false, scan::space(b, at + length)),
        None => any_key(b, at)?,
    };
    let (end, value_escaped) = match b.get(start) {
        Some(b'"') => scan::string(b, start)?,
        Some(b'0'..=b'9') => (
            small(b, start).map_or_else(|| scan::number(b, start), Ok)?,
            false,
        ),
        _ => scan::value(b, start)?,
    };
    let slot = LineSlot {
        key: (at as u32, key_end as u32),
        value: (start as u32, end as u32),
        key_escaped,
        value_escaped,
        field: if let CommonMember::Not(field) = common {
            field
        } else {
            LineField::Other
        },
    };
    Ok((common, slot))
}

/// A frequent key, as our commands write it: what it is, and its length with quotes and colon.
// Each key is compared as a constant: a list of keys costs a call for each comparison.
#[inline]
fn known(b: &[u8]) -> Option<(CommonMember, usize)> {
    match b.get(1)? {
        b't' if b.starts_with(b"\"t\":") => Some((CommonMember::Time, 4)),
        b't' if b.starts_with(b"\"text\":") => Some((CommonMember::Not(LineField::Text), 7)),
        b'i' if b.starts_with(b"\"index\":") => Some((CommonMember::Not(LineField::Index), 8)),
        b'a' if b.starts_with(b"\"arguments\":") => {
            Some((CommonMember::Not(LineField::Arguments), 12))
        }
        b's' if b.starts_with(b"\"stream\":") => Some((CommonMember::Stream, 9)),
        _ => None,
    }
}

/// Any key and its colon: what it is, where it ends, whether it has an escape, and where the value
/// begins.
fn any_key(b: &[u8], at: usize) -> Scan<(CommonMember, usize, bool, usize)> {
    if b.get(at) != Some(&b'"') {
        return scan::fail(at, "no key in quotes");
    }
    let (end, escaped) = scan::string(b, at)?;
    let colon = scan::space(b, end);
    if b.get(colon) != Some(&b':') {
        return scan::fail(colon, "no colon after a key");
    }
    let common = if escaped {
        let raw = std::str::from_utf8(&b[at..end]).unwrap_or_default();
        CommonMember::of(Raw::checked(raw, true).str().unwrap_or_default().as_bytes())
    } else {
        CommonMember::of(&b[at + 1..end - 1])
    };
    Ok((common, end, escaped, scan::space(b, colon + 1)))
}

/// The end of a number with neither a sign nor an exponent, as an index and a time are, where a
/// comma or a closing bracket follows.
#[inline]
fn small(b: &[u8], at: usize) -> Option<usize> {
    let mut i = digits(b, at + 1);
    if b[at] == b'0' && i > at + 1 {
        return None;
    }
    if b.get(i) == Some(&b'.') {
        let fraction = i + 1;
        i = digits(b, fraction);
        if i == fraction {
            return None;
        }
    }
    matches!(b.get(i), Some(b',' | b'}')).then_some(i)
}

/// The index after the digits from `at`.
#[inline(always)]
fn digits(b: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9') = b.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::ContentDelta;

    #[test]
    fn any_order_of_keys_escaped_keys_and_spaces() {
        let mut s = Scanner::default();
        let e = s
            .read(
                " { \"text\" : \"a\\nb\" , \"ty\\u0070e\":\"content_delta\",\"stream\":\"x\",\"choice\":2,\"t\":1.5}\r",
            )
            .unwrap();
        assert_eq!(
            (e.kind(), e.choice(), e.t().unwrap().text()),
            (Kind::ContentDelta, 2, "1.5")
        );
        assert_eq!(
            (
                e.get_str("text").unwrap().as_ref(),
                e.stream().unwrap().text()
            ),
            ("a\nb", "\"x\"")
        );
    }

    #[test]
    fn what_is_no_event_says_why() {
        let mut s = Scanner::default();
        for (line, why) in [
            ("", "an empty line"),
            ("[1]", "not a JSON object"),
            ("{}", "no \"type\" that is a string"),
            (r#"{"type":7}"#, "no \"type\" that is a string"),
            (r#"{"type":"error"} x"#, "text after the JSON object"),
            (r#"{"type":"error""#, "the line ends inside the object"),
            (r#"{"type":"err"#, "the line ends inside a string"),
            (
                r#"{"type":"content_delta""text":1}"#,
                "no comma or closing bracket",
            ),
            (r#"{"type":"content_delta","#, "no key in quotes"),
        ] {
            assert_eq!(s.read(line).unwrap_err().what, why, "{line}");
        }
    }

    #[test]
    fn a_number_is_one_here_where_it_is_one_anywhere() {
        let mut s = Scanner::default();
        for number in [
            "0", "7", "10", "0.5", "12.125", "0.0", "00", "01", "01.5", "1.", ".5", "1.x", "1.5.5",
            "1.5e3", "2E+2", "1e", "-1", "-0.5", "-", "1 ", "1.5 ", "1x",
        ] {
            for line in [
                format!("{{\"type\":\"content_delta\",\"t\":{number},\"text\":\"a\"}}"),
                format!("{{\"type\":\"tool_call_delta\",\"index\":{number}}}"),
            ] {
                assert_eq!(s.read(&line).is_ok(), Raw::parse(number).is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn a_text_counts_only_as_a_string() {
        let mut s = Scanner::default();
        for (value, text) in [
            (r#""""#, ""),
            (r#""a""#, "a"),
            (r#""\u00e9""#, "é"),
            ("7", ""),
            ("null", ""),
            ("{\"a\":1}", ""),
            ("[\"\"]", ""),
        ] {
            let line = format!("{{\"type\":\"content_delta\",\"text\":{value}}}");
            assert_eq!(
                ContentDelta::read(&s.read(&line).unwrap()).text,
                text,
                "{line}"
            );
        }
    }
}
