//! Parses one line of the protocol into an event that borrows from the line.

use crate::scan::{self, Scan, ScanError};
use crate::slot::{LineField, LineSlot, LineValue};
use crate::template::Templates;
use crate::{Event, Kind, Raw};

/// Parses lines. The scanner reuses its table of members for each line, so that parsing does not
/// allocate, and keeps templates of recent lines, so that only the values of a similar line are
/// parsed.
#[derive(Debug, Default)]
pub struct Scanner {
    slots: Vec<LineSlot>,
    /// The `t` of the line that was parsed last without a template.
    t: Option<LineValue>,
    templates: Templates,
}

impl Scanner {
    /// Parses one line without its line feed (a carriage return at the end is white space).
    ///
    /// # Errors
    /// If the line is not a JSON object, or has no string `type`. The caller writes a `warning`
    /// instead.
    #[inline]
    pub fn read<'a>(&'a mut self, line: &'a str) -> Result<Event<'a>, ScanError> {
        if self.templates.fit(line.as_bytes()) == Some(line.len()) {
            return Ok(self.templates.event(line));
        }
        self.read_any(line)
    }

    /// Parses the line that starts at offset `at` of `text`, if it looks like one of the last
    /// lines. Returns its event and its end: the offset of a line feed, or the length of the text.
    /// Returns `None` if the line fits no template; [`Scanner::read`] can then parse it.
    #[inline(always)]
    pub fn read_alike<'a>(&'a mut self, text: &'a str, at: usize) -> Option<(Event<'a>, usize)> {
        let rest = text.get(at..)?;
        let length = self.templates.fit(rest.as_bytes())?;
        Some((self.templates.event(rest.get(..length)?), at + length))
    }

    /// Parses a line without a template.
    #[inline(never)]
    fn read_any<'a>(&'a mut self, line: &'a str) -> Result<Event<'a>, ScanError> {
        let b = line.as_bytes();
        self.slots.clear();
        let (mut kind, mut stream, mut choice, mut t) = (None, None, 0, None);
        let mut i = scan::space(b, 0);
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
        if b.get(i) == Some(&b'}') {
            i += 1;
        } else {
            loop {
                let (common, slot) = member(b, i)?;
                match common {
                    CommonMember::Type => {
                        kind = slot.value.get(line).str().map(|name| Kind::of(&name))
                    }
                    CommonMember::Stream => stream = Some(slot),
                    CommonMember::Choice => {
                        choice = slot
                            .value
                            .get(line)
                            .i64()
                            .and_then(|c| u32::try_from(c).ok())
                            .unwrap_or(0)
                    }
                    CommonMember::Time => t = Some(slot),
                    CommonMember::Not(_) => self.slots.push(slot),
                }
                i = slot.value.end as usize;
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
        let Some(kind) = kind else {
            return scan::fail(0, "no \"type\" that is a string");
        };
        self.templates
            .learn(line, (kind, choice), &self.slots, [stream, t]);
        let given = |value: &LineValue| !value.get(line).is_null();
        self.t = t.map(|slot| slot.value).filter(given);
        Ok(Event::of_line(
            kind,
            stream
                .map(|slot| slot.value)
                .filter(given)
                .map(|value| value.get(line)),
            choice,
            self.t.as_ref(),
            line,
            &self.slots,
        ))
    }
}

/// The members that any event can have.
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

/// Parses the member whose key starts at `at`.
#[inline]
fn member(b: &[u8], at: usize) -> Scan<(CommonMember, LineSlot)> {
    let (common, key_end, key_escaped, start) = key(b, at)?;
    let (end, is_escaped) = scan::value(b, start)?;
    let slot = LineSlot {
        value: LineValue {
            start: start as u32,
            end: end as u32,
            is_escaped,
        },
        key: ((start - at) as u32, (start - key_end) as u32),
        key_escaped,
        field: if let CommonMember::Not(field) = common {
            field
        } else {
            LineField::Other
        },
    };
    Ok((common, slot))
}

/// Parses a key and its colon. Returns which member it is, where the key ends, whether the key has
/// an escape, and where the value starts.
fn key(b: &[u8], at: usize) -> Scan<(CommonMember, usize, bool, usize)> {
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
            for before in ["", r#""text":"before","#] {
                let line = format!(r#"{{"type":"content_delta",{before}"text":{value}}}"#);
                let event = s.read(&line).unwrap();
                assert_eq!(ContentDelta::read(&event).text, text, "{line}");
                assert_eq!(event.text(), text, "{line}");
                assert_eq!(event.text_len(), text.len(), "{line}");
            }
        }
    }
}
