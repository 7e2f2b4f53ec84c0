//! Lines of one stream look alike: they have the same keys in the same order, and differ in a
//! number or two and in one string. A template is such a line with holes in the places of its
//! values, so that the next line costs a comparison of what is between the holes, and the reading of
//! what is in them.

use crate::slot::LineSlot;
use crate::{Event, Kind, scan};

/// The most values that a line with a template has.
const MAX_HOLES: usize = 8;

/// A line whose values were taken out.
#[derive(Debug)]
struct Template {
    kind: Kind,
    choice: u32,
    /// The bytes of the line that are not in a hole.
    literals: Vec<u8>,
    /// The values in the order of the line: of `stream` and of `t`, if it has them, and of its other
    /// members.
    holes: Vec<Hole>,
    /// Where the line at hand has them.
    slots: Vec<LineSlot>,
    has_stream: bool,
    has_t: bool,
}

/// The place of a value.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// How many bytes there are before it, from the hole before. Of a string, its quote is one of
    /// them.
    literal: usize,
    is_string: bool,
    /// The bytes from the key, and from its end, to the value.
    key: (u32, u32),
}

/// The templates of the last lines that were not alike: text, calls and thoughts take turns.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    all: Vec<Template>,
    /// The one that fitted last.
    now: usize,
    /// The one that gives way to the next.
    next: usize,
}

/// The most templates that are kept.
const MAX_TEMPLATES: usize = 4;

impl Templates {
    /// Where the line ends that `rest` begins with: before a line feed, or with the text. `None`
    /// where no template fits; the line may be a good one then.
    #[inline(always)]
    pub(crate) fn fit(&mut self, rest: &[u8]) -> Option<usize> {
        match self.all.get_mut(self.now)?.fit(rest) {
            None => self.turn_to(rest),
            end => end,
        }
    }

    /// The event of `line`, which was found to fit.
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

    /// Goes on with another template that fits.
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

    /// Makes a template of a line that was read, if lines like it are frequent.
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
    /// `None` where `stream` and `t` do not come first, as our commands write them; where a value
    /// is neither a string nor a plain number; or where a line feed is among the white space, which
    /// would be taken for the end of the line.
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

    /// Reads the values of the line that `rest` begins with, if it differs in nothing else; gives
    /// where it ends.
    // Not a part of its callers, which leave it no registers.
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

/// The index after `literal`, where it is what `b` has at `at`.
#[inline(always)]
fn after(b: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    let end = at + literal.len();
    is_same(b.get(at..end)?, literal).then_some(end)
}

/// Whether two texts of one length are the same: without the call that `==` is, which costs more
/// than the comparison of a key.
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

/// The end of a number with neither a sign nor an exponent, as an index and a time are. What follows
/// may be more of a number: the caller looks at it.
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

/// The index after the digits from `at`; eight at a time.
#[inline(always)]
fn digits(b: &[u8], mut at: usize) -> usize {
    while let Some(eight) = b.get(at..).and_then(|rest| rest.first_chunk()) {
        // A byte of `w` is a digit's value below 10; added to 0x76 it stays below 0x80. What a byte
        // that is no digit carries into the next one does not matter, as the lowest one counts.
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

    /// What a scanner makes of a line that has read nothing before.
    fn whole(line: &str) -> String {
        format!("{:?}", Scanner::default().read(line))
    }

    /// Lines of the kinds that have templates, and of others.
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
