//! Parses lines that look like a recent line. The lines of one stream have the same keys in the
//! same order, and differ only in one string and a number or two. A template is a line with holes
//! in place of its values. If the next line has the same bytes between the holes, only its values
//! are parsed.

use crate::slot::LineSlot;
use crate::{Event, Kind, scan};

/// The maximum number of values, apart from `stream` and `t`, in a line that becomes a template.
const MAX_HOLES: usize = 8;

/// A line whose values were replaced by holes.
#[derive(Debug)]
struct Template {
    kind: Kind,
    choice: u32,
    /// The bytes of the line outside the holes.
    literals: Vec<u8>,
    /// The holes in the order of the line: `stream` and `t`, if the line has them, then the other
    /// members.
    holes: Vec<Hole>,
    /// The positions of the values in the current line, one for each hole.
    slots: Vec<LineSlot>,
    has_stream: bool,
    has_t: bool,
}

/// A hole: the place of one value.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The number of bytes between the previous hole and this one, including the opening quote if
    /// the value is a string.
    literal: usize,
    is_string: bool,
    /// The distances, in bytes, from the start and from the end of the key to the start of the
    /// value.
    key: (u32, u32),
}

/// Templates of recent lines. Several are kept because a stream alternates between text, reasoning
/// and calls.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    all: Vec<Template>,
    /// The position of the template that matched last.
    now: usize,
    /// The position of the template that the next new one replaces.
    next: usize,
}

/// The maximum number of templates that are kept.
const MAX_TEMPLATES: usize = 4;

impl Templates {
    /// Matches the line at the start of `rest` with the templates. Returns the end of the line,
    /// which is a line feed or the end of `rest`. Returns `None` if no template matches, even
    /// though the line may be valid.
    #[inline(always)]
    pub(crate) fn fit(&mut self, rest: &[u8]) -> Option<usize> {
        match self.all.get_mut(self.now)?.fit(rest) {
            None => self.turn_to(rest),
            end => end,
        }
    }

    /// Returns the event for `line`, which [`Templates::fit`] has just matched.
    #[inline(always)]
    pub(crate) fn event<'a>(&'a self, line: &'a str) -> Event<'a> {
        let template = &self.all[self.now];
        let mut slots = &template.slots[..];
        let mut common = |is_there: bool| {
            let (first, others) = slots.split_first().filter(|_| is_there)?;
            slots = others;
            Some(*first)
        };
        let stream = common(template.has_stream).map(|slot| slot.value(line));
        let t = common(template.has_t);
        Event::of_line(template.kind, stream, template.choice, t, line, slots)
    }

    /// Tries the other templates, and makes the one that matches the current one.
    #[inline(never)]
    fn turn_to(&mut self, rest: &[u8]) -> Option<usize> {
        let others = (0..self.all.len()).filter(|place| *place != self.now);
        for place in others {
            if let Some(end) = self.all[place].fit(rest) {
                self.now = place;
                return Some(end);
            }
        }
        None
    }

    /// Creates a template from a parsed line if lines of its kind are frequent.
    pub(crate) fn learn(
        &mut self,
        line: &str,
        (kind, choice): (Kind, u32),
        slots: &[LineSlot],
        [stream, t]: [Option<LineSlot>; 2],
    ) {
        if !matches!(
            kind,
            Kind::ContentDelta | Kind::Thinking | Kind::ToolCallDelta
        ) {
            return;
        }
        let Some(template) = Template::of(line, (kind, choice), slots, [stream, t]) else {
            return;
        };
        self.now = self.next;
        self.next = (self.next + 1) % MAX_TEMPLATES;
        if self.now < self.all.len() {
            self.all[self.now] = template;
        } else {
            self.all.push(template);
        }
    }
}

impl Template {
    /// Returns `None` if `stream` and `t` are not the first members (our commands write them
    /// first), if a value is neither a string nor a plain number, or if the white space has a line
    /// feed, which would be mistaken for the end of the line.
    fn of(
        line: &str,
        (kind, choice): (Kind, u32),
        slots: &[LineSlot],
        [stream, t]: [Option<LineSlot>; 2],
    ) -> Option<Template> {
        let b = line.as_bytes();
        if slots.len() > MAX_HOLES || b.contains(&b'\n') {
            return None;
        }
        let (has_stream, has_t) = (stream.is_some(), t.is_some());
        let common = stream.into_iter().chain(t);
        let slots: Vec<_> = common.chain(slots.iter().copied()).collect();
        let (mut literals, mut holes, mut at) = (Vec::new(), Vec::new(), 0);
        for slot in &slots {
            let (start, end) = (slot.value.0 as usize, slot.value.1 as usize);
            let is_string = b[start] == b'"';
            if start < at || !is_string && number(b, start) != Some(end) {
                return None;
            }
            let literal = &b[at..start + usize::from(is_string)];
            literals.extend_from_slice(literal);
            holes.push(Hole {
                literal: literal.len(),
                is_string,
                key: (slot.value.0 - slot.key.0, slot.value.0 - slot.key.1),
            });
            at = end;
        }
        literals.extend_from_slice(&b[at..]);
        Some(Template {
            kind,
            choice,
            literals,
            holes,
            slots,
            has_stream,
            has_t,
        })
    }

    /// Parses the values of the line at the start of `rest`. Returns the end of the line, or `None`
    /// if the line differs outside the holes.
    // Not inlined: this loop needs all registers, and its callers would leave too few.
    #[inline(never)]
    fn fit(&mut self, rest: &[u8]) -> Option<usize> {
        let mut literals = &self.literals[..];
        let mut i = 0;
        for (hole, slot) in self.holes.iter().zip(&mut self.slots) {
            let (literal, others) = literals.split_at_checked(hole.literal)?;
            literals = others;
            i = after(rest, i, literal)?;
            let start;
            if hole.is_string {
                start = i - 1;
                (i, slot.value_escaped) = scan::string(rest, start).ok()?;
            } else {
                start = i;
                i = number(rest, start)?;
            }
            slot.value = (start as u32, i as u32);
            slot.key = (slot.value.0 - hole.key.0, slot.value.0 - hole.key.1);
        }
        i = after(rest, i, literals)?;
        matches!(rest.get(i), None | Some(b'\n')).then_some(i)
    }
}

/// Returns the index after `literal` if `b` has it at `at`.
#[inline(always)]
fn after(b: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    let end = at + literal.len();
    is_same(b.get(at..end)?, literal).then_some(end)
}

/// Compares two texts of the same length. `==` would compile to a function call, which costs more
/// than comparing a key.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if let (Some(end_a), Some(end_b)) = (a.last_chunk::<16>(), b.last_chunk::<16>()) {
        let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
        return end_a == end_b && a.iter().zip(b).all(|(a, b)| a == b);
    }
    if let (Some(end_a), Some(end_b)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        return end_a == end_b && a.first_chunk::<8>() == b.first_chunk::<8>();
    }
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Returns the end of a number without a sign and an exponent, such as an index or a time. The
/// caller must check that the next byte does not continue the number.
#[inline(always)]
fn number(b: &[u8], at: usize) -> Option<usize> {
    let mut i = digits(b, at);
    if i == at || (i > at + 1 && b[at] == b'0') {
        return None;
    }
    if b.get(i) == Some(&b'.') {
        let fraction = i + 1;
        i = digits(b, fraction);
        if i == fraction {
            return None;
        }
    }
    Some(i)
}

/// Returns the index after the digits that start at `at`. Compares eight bytes at a time.
#[inline(always)]
fn digits(b: &[u8], mut at: usize) -> usize {
    while let Some(eight) = b.get(at..).and_then(|rest| rest.first_chunk()) {
        // In `w` a digit becomes a byte below 10; adding 0x76 keeps such a byte below 0x80. Any
        // other byte can carry into the next one, but only the lowest match counts.
        let w = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        let other = (w.wrapping_add(0x7676_7676_7676_7676) | w) & 0x8080_8080_8080_8080;
        if other != 0 {
            return at + other.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(b'0'..=b'9') = b.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use crate::Scanner;

    /// Returns what a new scanner parses from a line.
    fn whole(line: &str) -> String {
        format!("{:?}", Scanner::default().read(line))
    }

    /// Lines of kinds that get templates, and of other kinds.
    const LINES: [&str; 16] = [
        r#"{"type":"content_delta","text":"a"}"#,
        r#"{"type":"content_delta","t":0.125,"text":"a \"é\" \u00e9"}"#,
        r#"{"type":"content_delta","stream":"s\"1","choice":2,"t":12,"text":""}"#,
        r#"{"type":"content_delta","stream":"s","t":1234567890.5,"text":"long enough for words"}"#,
        r#" { "type" : "content_delta" , "t" : 7 , "text" : "a" , "n" : 1.5 } "#,
        r#"{"text":"first","type":"content_delta","t":1}"#,
        r#"{"type":"content_delta","text":7}"#,
        r#"{"type":"content_delta","t":null,"text":"a"}"#,
        r#"{"type":"content_delta","text":"a","text":"b","te\u0078t":"c"}"#,
        r#"{"type":"thinking","t":3,"text":"hm","provider":{"a":"b"}}"#,
        r#"{"type":"thinking","t":3,"text":"hm"}"#,
        r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#,
        r#"{"type":"tool_call_delta","index":12,"arguments":"{\"a\": \"\\\""}"#,
        r#"{"type":"tool_call_delta","t":3.5,"index":0,"arguments":"1","done":true}"#,
        r#"{"type":"stream_end","finish_reason":"stop"}"#,
        "{\"type\":\"content_delta\",\n\"text\":\"a\"}",
    ];

    #[test]
    fn a_line_means_the_same_whatever_was_read_before() {
        for line in LINES {
            for before in LINES {
                let mut scanner = Scanner::default();
                for line in [before, line, line] {
                    assert_eq!(format!("{:?}", scanner.read(line)), whole(line), "{before}");
                }
            }
        }
    }

    #[test]
    fn a_changed_line_means_the_same_after_the_line_that_it_was() {
        for line in LINES {
            let mut scanner = Scanner::default();
            let mut check = |changed: &str| {
                let _ = scanner.read(line);
                let read = format!("{:?}", scanner.read(changed));
                assert_eq!(read, whole(changed), "{changed} after {line}");
            };
            let ends: Vec<_> = line
                .char_indices()
                .map(|(at, c)| (at, at + c.len_utf8()))
                .collect();
            for (at, end) in ends {
                for other in [
                    "",
                    "\"",
                    "\\",
                    "\\u",
                    "\\\"",
                    "{",
                    "}",
                    "[",
                    ",",
                    ":",
                    "0",
                    "00",
                    "1",
                    ".",
                    "-",
                    "e",
                    "x",
                    " ",
                    "\n",
                    "\r",
                    "\u{1}",
                    "é",
                    "null",
                    "12345678",
                    "\",\"text\":\"",
                ] {
                    check(&format!("{}{other}{}", &line[..at], &line[end..]));
                    check(&format!("{}{other}{}", &line[..at], &line[at..]));
                }
                check(&line[..at]);
            }
        }
    }

    #[test]
    fn a_line_ends_at_its_line_feed() {
        let mut found = 0;
        for first in LINES {
            for second in LINES {
                for end in ["", "\n", "\n\n", "\r\n"] {
                    let text = format!("{second}\n{first}\n{second}{end}");
                    let mut scanner = Scanner::default();
                    for line in [first, second] {
                        let _ = scanner.read(line);
                    }
                    let at = second.len() + 1;
                    for at in [0, at, at + first.len() + 1] {
                        let Some((event, end)) = scanner.read_alike(&text, at) else {
                            continue;
                        };
                        found += 1;
                        let length = text[at..].find('\n').unwrap_or(text.len() - at);
                        assert_eq!(end, at + length, "{text}");
                        let alone = whole(&text[at..end]);
                        assert_eq!(format!("Ok({event:?})"), alone, "{text}");
                    }
                }
            }
        }
        assert!(found > LINES.len() * LINES.len(), "{found}");
    }

    #[test]
    fn recorded_events_are_read_as_one_by_one() {
        let (mut scanner, mut alike, mut all) = (Scanner::default(), 0, 0);
        for body in testkit::bodies() {
            let Ok(text) = std::fs::read_to_string(body.events()) else {
                continue;
            };
            let mut at = 0;
            while at < text.len() {
                let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
                let line = &text[at..end];
                let read = match scanner.read_alike(&text, at) {
                    Some((event, found)) => {
                        assert_eq!(found, end, "{}: {line}", body.name);
                        alike += 1;
                        format!("Ok({event:?})")
                    }
                    None => format!("{:?}", scanner.read(line)),
                };
                assert_eq!(read, whole(line), "{}", body.name);
                (at, all) = (end + 1, all + 1);
            }
        }
        assert!(alike * 4 > all, "{alike} of {all} lines look alike");
    }
}
