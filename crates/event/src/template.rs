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
    /// The holes in the order of the line: `stream` and `t`, if the line has them, then the other
    /// members.
    holes: Vec<Hole>,
    /// The bytes of the line after the last hole.
    end: Box<[u8]>,
    /// The positions of the values in the current line, one for each hole.
    slots: Vec<LineSlot>,
    has_stream: bool,
    has_t: bool,
}

/// A hole: the place of one value.
#[derive(Debug)]
struct Hole {
    /// The bytes between the previous hole and this one, including the opening quote if the value
    /// is a string.
    before: Box<[u8]>,
    is_string: bool,
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

/// The maximum number of templates that are kept: enough for short streams, one after the other,
/// with text and a call.
const MAX_TEMPLATES: usize = 6;

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
            Some(&first.value)
        };
        let stream = common(template.has_stream).map(|value| value.get(line));
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
            Kind::ContentDelta
                | Kind::Thinking
                | Kind::ToolCallDelta
                | Kind::StreamStart
                | Kind::StreamEnd
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
        let (mut holes, mut at) = (Vec::new(), 0);
        for LineSlot { value, .. } in &slots {
            let (start, end) = (value.start as usize, value.end as usize);
            let is_string = b[start] == b'"';
            if start < at || !is_string && number(&b[start..]) != Some(end - start) {
                return None;
            }
            holes.push(Hole {
                before: b[at..start + usize::from(is_string)].into(),
                is_string,
            });
            at = end;
        }
        Some(Template {
            kind,
            choice,
            holes,
            end: b[at..].into(),
            slots,
            has_stream,
            has_t,
        })
    }

    /// Parses the values of the line at the start of `line`. Returns the end of the line, or `None`
    /// if the line differs outside the holes.
    // Not inlined: this loop needs all registers, and its callers would leave too few.
    #[inline(never)]
    fn fit(&mut self, line: &[u8]) -> Option<usize> {
        let (mut rest, mut at) = (line, 0);
        for (hole, slot) in self.holes.iter().zip(&mut self.slots) {
            rest = after(rest, &hole.before)?;
            at += hole.before.len();
            let (length, is_escaped) = if hole.is_string {
                scan::inside(rest).ok()?
            } else {
                (number(rest)?, false)
            };
            rest = rest.get(length..)?;
            slot.value.start = (at - usize::from(hole.is_string)) as u32;
            at += length;
            slot.value.end = at as u32;
            slot.value.is_escaped = is_escaped;
        }
        rest = after(rest, &self.end)?;
        matches!(rest.first(), None | Some(b'\n')).then(|| at + self.end.len())
    }
}

/// Returns the bytes after `literal` if `b` starts with it.
#[inline(always)]
fn after<'b>(b: &'b [u8], literal: &[u8]) -> Option<&'b [u8]> {
    let (start, rest) = b.split_at_checked(literal.len())?;
    is_same(start, literal).then_some(rest)
}

/// Compares two texts of the same length. `==` would compile to a function call, which costs more
/// than comparing a key.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if let (Some(end_a), Some(end_b)) = (a.last_chunk::<16>(), b.last_chunk::<16>()) {
        // Nearly all literals are the first 16 and the last 16 bytes.
        return a.first_chunk::<16>() == b.first_chunk::<16>()
            && end_a == end_b
            && (a.len() <= 32 || {
                let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
                a.iter().zip(b).skip(1).all(|(a, b)| a == b)
            });
    }
    if let (Some(end_a), Some(end_b)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        return end_a == end_b && a.first_chunk::<8>() == b.first_chunk::<8>();
    }
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Returns the length of the number at the start of `b`, such as an index or a time: without a sign
/// and an exponent. The caller must check that the next byte does not continue the number.
#[inline(always)]
fn number(b: &[u8]) -> Option<usize> {
    let Some(eight) = b.first_chunk() else {
        return long_number(b);
    };
    let others = others(*eight);
    if others == 0 {
        return long_number(b);
    }
    let whole = others.trailing_zeros() as usize / 8;
    if whole == 0 || whole > 1 && eight[0] == b'0' {
        return None;
    }
    if eight[whole] != b'.' {
        return Some(whole);
    }
    // The lowest of the others is the point.
    let others = others & (others - 1);
    if others == 0 {
        let end = 8 + digits(&b[8..]);
        return (end > whole + 1).then_some(end);
    }
    let end = others.trailing_zeros() as usize / 8;
    (end > whole + 1).then_some(end)
}

/// Like [`number`], for a number that has more than eight bytes or ends at the end of `b`.
#[inline(never)]
fn long_number(b: &[u8]) -> Option<usize> {
    let whole = digits(b);
    if whole == 0 || whole > 1 && b[0] == b'0' {
        return None;
    }
    if b.get(whole) != Some(&b'.') {
        return Some(whole);
    }
    let fraction = digits(&b[whole + 1..]);
    (fraction > 0).then_some(whole + 1 + fraction)
}

/// Returns a word with the high bit of each byte that is not a digit; the first byte is the lowest.
#[inline(always)]
fn others(eight: [u8; 8]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // A digit becomes a byte below 10, and adding 0x76 keeps such a byte below 0x80.
    let w = u64::from_le_bytes(eight) ^ 0x3030_3030_3030_3030;
    (((w & LOW) + 0x7676_7676_7676_7676) | w) & !LOW
}

/// Returns the number of digits at the start of `b`.
#[inline(never)]
fn digits(b: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = b[at..].first_chunk() {
        match others(*eight) {
            0 => at += 8,
            others => return at + others.trailing_zeros() as usize / 8,
        }
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
    const LINES: [&str; 18] = [
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
        r#"{"type":"stream_start","stream":"a","v":1,"api":"b","model":"m"}"#,
        r#"{"type":"stream_end","finish_reason":"stop"}"#,
        r#"{"type":"stream_end","t":12345678.125,"finish_reason":"stop"}"#,
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
