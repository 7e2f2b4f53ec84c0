//! Server-Sent Events after the WHATWG specification ([HTML, section
//! 9.2](https://html.spec.whatwg.org/multipage/server-sent-events.html)). In this file an event is
//! one of the specification: a frame, in the words of the glossary.
//!
//! What it is: [`SseParser`] takes the bytes of a body in any pieces and gives [`SseFrame`]s. What it is
//! not: it opens nothing and reconnects nothing, so it drops the fields `id` and `retry`, and does
//! not read the data.
//!
//! [`SseParser::of_json`] reads beyond the specification what servers and recordings make of streams
//! whose data is JSON.

use memchr::memchr2;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// The `event` field; `None` where the event has none (a browser calls it `message` then).
    pub name: Option<&'a str>,
    /// The `data` lines, joined by line feeds.
    pub data: &'a str,
    /// The lines had no `data:`. Only [`SseParser::of_json`] gives such events.
    pub is_bare: bool,
}

/// The parser of an event stream. Feed it bytes as they come: any split gives the same events.
///
/// Bytes that are not UTF-8 become U+FFFD, as the specification's decoder has it. Comments and
/// unknown fields are dropped.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The first line has ended, so that a byte order mark is text from here on.
    begun: bool,
    /// The line that has begun and not ended.
    line: Vec<u8>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// The last `event` field, which counts while `has_name`: most events have the name of the one
    /// before.
    name: String,
    has_name: bool,
    data: String,
    has_data: bool,
    /// How many bytes the lines of the event so far had, comments and line ends among them.
    size: usize,
    limit: Option<usize>,
    is_full: bool,
    /// Whether the data is JSON, see [`SseParser::of_json`].
    is_json: bool,
    /// Whether the data is of lines without `data:`.
    is_bare: bool,
    /// Whether an event was given, so that text between events stands in the place of one.
    has_events: bool,
}

const MARK: &[u8] = b"\xef\xbb\xbf";

impl SseParser {
    /// A decoder that takes events of at most `limit` bytes, comments and line ends among them; see
    /// [`SseParser::is_full`].
    pub fn limited(limit: usize) -> SseParser {
        SseParser {
            limit: Some(limit),
            ..SseParser::default()
        }
    }

    /// This decoder for a stream whose data is JSON. It reads four things that the specification
    /// would drop or join:
    ///
    /// - **Lost blank lines.** An event ends before a second name, and before a line of data that
    ///   cannot go on with the JSON so far.
    /// - **JSON without `data:`**, as Google's servers write an error into a stream that has begun.
    ///   It is an event of its own.
    /// - **The field `error`**, as llama.cpp wrote it before September 2025. It is an event of that
    ///   name.
    /// - **Text that is no field**, behind the first event: the rest of an event whose beginning was
    ///   lost, or what a server in the middle says. It is an event without `data:`.
    #[must_use]
    pub fn of_json(self) -> SseParser {
        SseParser {
            is_json: true,
            ..self
        }
    }

    /// Whether an event was longer than the limit. The decoder reads nothing after it.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// How many bytes are kept of the event so far.
    pub fn kept(&self) -> usize {
        self.line.len() + self.data.len() + self.name.len()
    }

    /// Takes the next bytes of the body; calls `on` for each event that they complete.
    pub fn push(&mut self, mut bytes: &[u8], on: &mut dyn FnMut(SseFrame<'_>)) {
        if self.is_full {
            return;
        }
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        // Nearly every event is one line of data in the bytes at hand: that line is given as it
        // lies there, without a copy.
        let mut only = None;
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.size += self.line.len() + line.len() + 1;
            if self.overflows(0) {
                return;
            }
            if self.line.is_empty() {
                self.line(line, &mut only, on);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.whole_line(&whole, &mut only, on);
                whole.clear();
                self.line = whole;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                _ => &rest[1..],
            };
        }
        self.keep(only);
        if !self.overflows(self.line.len() + bytes.len()) {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Notes whether the event is too long with `more` bytes of a line that has not ended. The
    /// split of the bytes does not show: a line that is too long before its end is so at its end.
    fn overflows(&mut self, more: usize) -> bool {
        self.is_full |= self.limit.is_some_and(|limit| self.size + more > limit);
        self.is_full
    }

    /// The body ended. The specification drops an event whose blank line is missing; several
    /// providers leave out the last one, so it is given here, with its last line as far as it came,
    /// and the caller judges from the data whether it is complete.
    pub fn finish(&mut self, on: &mut dyn FnMut(SseFrame<'_>)) {
        if self.is_full {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let mut only = None;
        if !line.is_empty() {
            self.whole_line(&line, &mut only, on);
        }
        self.dispatch(only, on);
    }

    /// A line that does not lie in the bytes at hand.
    fn whole_line(
        &mut self,
        line: &[u8],
        only: &mut Option<&[u8]>,
        on: &mut dyn FnMut(SseFrame<'_>),
    ) {
        self.keep(only.take());
        let mut only = None;
        self.line(line, &mut only, on);
        self.keep(only);
    }

    /// Takes one line. `only` is the data of the event while it is a single line that `self.data`
    /// does not have.
    #[inline]
    fn line<'b>(
        &mut self,
        mut line: &'b [u8],
        only: &mut Option<&'b [u8]>,
        on: &mut dyn FnMut(SseFrame<'_>),
    ) {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(MARK).unwrap_or(line);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = unpadded(value);
            if self.is_json && self.has_data && (self.is_bare || !self.goes_on(*only, value)) {
                self.end_before(line, only, on);
            }
            self.data(value, only);
        } else if let Some(value) = line.strip_prefix(b"event:") {
            if self.is_json && self.has_data && (self.is_bare || self.has_name) {
                self.end_before(line, only, on);
            }
            self.name(unpadded(value));
        } else {
            match line {
                b"" => self.dispatch(only.take(), on),
                b"data" => self.data(&[], only),
                b"event" => self.name(&[]),
                _ if self.is_json => self.other(line, only, on),
                _ => {}
            }
        }
    }

    /// A line of no field of the specification that matters, in a stream of JSON.
    fn other<'b>(
        &mut self,
        line: &'b [u8],
        only: &mut Option<&'b [u8]>,
        on: &mut dyn FnMut(SseFrame<'_>),
    ) {
        if let Some(value) = line.strip_prefix(b"error:") {
            self.end_before(line, only, on);
            self.name(b"error");
            self.data(unpadded(value), only);
        } else if line.starts_with(b"{") && !(self.is_bare && self.goes_on(*only, line)) {
            self.end_before(line, only, on);
            self.data(line, only);
            self.is_bare = true;
        } else if line.starts_with(b":") {
        } else if self.is_bare {
            self.data(line, only);
        } else if self.has_events && !is_field(line) {
            self.end_before(line, only, on);
            self.data(line, only);
            self.is_bare = true;
        }
    }

    /// Ends the event at hand, and begins one with `line`.
    fn end_before(
        &mut self,
        line: &[u8],
        only: &mut Option<&[u8]>,
        on: &mut dyn FnMut(SseFrame<'_>),
    ) {
        self.dispatch(only.take(), on);
        self.size = line.len() + 1;
    }

    /// Whether a line of data can go on with the JSON so far. An object is a member or an item, so
    /// that it comes at the beginning or behind one of `[`, `,` and `:`. `[DONE]` is never a part.
    fn goes_on(&self, only: Option<&[u8]>, value: &[u8]) -> bool {
        // Looked at only where the answer needs it: there may be many lines of white space.
        let last = || only.unwrap_or(self.data.as_bytes()).trim_ascii_end().last();
        match value.trim_ascii() {
            b"[DONE]" => last().is_none(),
            [b'{', ..] => last().is_none_or(|last| matches!(last, b'[' | b',' | b':')),
            _ => true,
        }
    }

    #[inline]
    fn name(&mut self, value: &[u8]) {
        self.has_name = !value.is_empty();
        if self.name.as_bytes() != value {
            self.name.clear();
            push_lossy(&mut self.name, value);
        }
    }

    #[inline]
    fn data<'b>(&mut self, value: &'b [u8], only: &mut Option<&'b [u8]>) {
        if std::mem::replace(&mut self.has_data, true) {
            self.keep(only.take());
            self.data.push('\n');
            push_lossy(&mut self.data, value);
        } else {
            *only = Some(value);
        }
    }

    fn keep(&mut self, only: Option<&[u8]>) {
        if let Some(value) = only {
            push_lossy(&mut self.data, value);
        }
    }

    #[inline]
    fn dispatch(&mut self, only: Option<&[u8]>, on: &mut dyn FnMut(SseFrame<'_>)) {
        if self.has_data {
            self.has_events = true;
            let name = self.has_name.then_some(self.name.as_str());
            let is_bare = self.is_bare;
            match only.map(std::str::from_utf8) {
                Some(Ok(data)) => on(SseFrame {
                    name,
                    data,
                    is_bare,
                }),
                _ => {
                    only.into_iter()
                        .for_each(|value| push_lossy(&mut self.data, value));
                    on(SseFrame {
                        name,
                        data: &self.data,
                        is_bare,
                    });
                }
            }
        }
        self.size = 0;
        (self.has_data, self.has_name, self.is_bare) = (false, false, false);
        self.data.clear();
    }
}

/// Whether the line may be a field that the specification does not know, which it skips: a name, and
/// perhaps a colon and a value. The rest of an event whose beginning was lost, and the message of a
/// server in the middle, are none.
fn is_field(line: &[u8]) -> bool {
    let end = line.iter().position(|b| *b == b':').unwrap_or(line.len());
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    line[..end].iter().all(is_of_name)
}

/// A value without the one space that may follow the colon.
fn unpadded(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

fn push_lossy(out: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut out = Vec::new();
        let mut decoder = SseParser::default();
        let mut on = |e: SseFrame<'_>| out.push(format!("{}|{}", e.name.unwrap_or("-"), e.data));
        for piece in pieces {
            decoder.push(piece, &mut on);
        }
        decoder.finish(&mut on);
        out
    }

    const BODIES: [(&str, &[&str]); 11] = [
        // The examples of the specification.
        ("data: YHOO\ndata: +2\ndata: 10\n\n", &["-|YHOO\n+2\n10"]),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            &["-|first event", "-|second event", "-| third event"],
        ),
        ("data\n\ndata\ndata\n\ndata:", &["-|", "-|\n", "-|"]),
        ("data:test\n\ndata: test\n\n", &["-|test", "-|test"]),
        // A mark at the start only, names that hold for one event, an event without data.
        (
            "\u{feff}event: add\ndata: é\u{feff}\n\ndata: x\n\nevent: only\n\ndata: y\n\n",
            &["add|é\u{feff}", "-|x", "-|y"],
        ),
        // A second mark belongs to the name of the first field, which is unknown then.
        (
            "\u{feff}\u{feff}data: a\ndata: b\n\ndata: c\n\n",
            &["-|b", "-|c"],
        ),
        ("data\ndata: a\n\n", &["-|\na"]),
        // Unknown fields, no space after a colon, a colon in the value, fields of reconnection.
        (
            "error: x\nretry: 10\nid: ab\ndata:{\"a\":\"b: c\"}\n\n",
            &["-|{\"a\":\"b: c\"}"],
        ),
        // The last blank line, and the last line's end, are often missing.
        ("data: a\n\ndata: b\n", &["-|a", "-|b"]),
        ("data: a\n\ndata: [DONE]", &["-|a", "-|[DONE]"]),
        ("\n\n\n", &[]),
    ];

    #[test]
    fn any_split_and_any_line_end_gives_the_same_events() {
        for (body, want) in BODIES {
            for line_end in ["\n", "\r\n", "\r"] {
                let body = body.replace('\n', line_end).into_bytes();
                let want: Vec<String> = want.iter().map(|w| (*w).to_owned()).collect();
                assert_eq!(events(&[&body]), want, "{body:?}");
                assert_eq!(
                    events(&body.chunks(1).collect::<Vec<_>>()),
                    want,
                    "{body:?}"
                );
                for at in 0..body.len() {
                    let (a, b) = body.split_at(at);
                    assert_eq!(events(&[a, b]), want, "{body:?} at {at}");
                }
            }
        }
    }

    #[test]
    fn an_event_is_given_as_soon_as_its_blank_line_has_begun() {
        let mut seen = 0;
        let mut decoder = SseParser::default();
        decoder.push(b"data: a\r\n\r", &mut |_| seen += 1);
        assert_eq!(seen, 1);
    }

    #[test]
    fn an_event_over_the_limit_ends_it_however_the_bytes_come() {
        let body = b"data: 12\n\n: c\ndata: 1\n\nevent: x\ndata: 1234567890\n\ndata: 3\n\n";
        let read = |limit: usize, step: usize| {
            let mut out = Vec::new();
            let mut decoder = SseParser::limited(limit);
            for piece in body.chunks(step) {
                decoder.push(piece, &mut |e| out.push(e.data.to_owned()));
            }
            decoder.finish(&mut |e| out.push(e.data.to_owned()));
            (out, decoder.is_full())
        };
        for limit in 0..40 {
            let whole = read(limit, 1000);
            assert!((1..20).all(|step| read(limit, step) == whole), "{limit}");
            // "event: x", "data: 1234567890" and the blank line, each with its end.
            assert_eq!(whole.1, limit < 27, "{limit}");
            assert_eq!(
                whole.0.len(),
                [0, 1, 2, 4]
                    [usize::from(limit > 9) + usize::from(limit > 12) + usize::from(limit > 26)]
            );
        }
    }

    #[test]
    fn in_a_stream_of_json_events_end_without_blank_lines_too() {
        for (body, want) in [
            // Blank lines that were lost.
            (
                "data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n",
                &["-|{\"a\":1}", "-|{\"a\":2}", "-|[DONE]"][..],
            ),
            (
                "event: x\ndata: {}\nevent: y\ndata: {}\n",
                &["x|{}", "y|{}"],
            ),
            ("data: {}\ndata: junk\ndata: {}\n", &["-|{}\njunk", "-|{}"]),
            // One JSON text over several lines.
            (
                "data: [\ndata: {\"a\":\ndata: {}\ndata: },\ndata:  {}\ndata: ]\n\n",
                &["-|[\n{\"a\":\n{}\n},\n {}\n]"],
            ),
            ("data:\ndata: {}\nevent: x\n\n", &["x|\n{}"]),
            // JSON without `data:`, with and without the blank lines around it.
            (
                "data: {}\n\n{\"error\":{}}",
                &["-|{}", "bare|{\"error\":{}}"],
            ),
            (
                "data: {}\n{\n  \"error\": {\n  }\n}\n: c\ndata: 1\n\n",
                &["-|{}", "bare|{\n  \"error\": {\n  }\n}", "-|1"],
            ),
            (
                "{\"a\":1}\n{\"a\":[\n{}\n]}\nevent: x\ndata: 1",
                &["bare|{\"a\":1}", "bare|{\"a\":[\n{}\n]}", "x|1"],
            ),
            // Text that is no field, and fields that are unknown.
            (
                "data: 1\n\nInternal Server Error\n\ndata: 2\n\n",
                &["-|1", "bare|Internal Server Error", "-|2"],
            ),
            (
                "data: 1\n\n\":\"x\"}}]}\n\ndata: 2\n\n",
                &["-|1", "bare|\":\"x\"}}]}", "-|2"],
            ),
            (
                "HTTP/1.1 200 OK\nx-id: 7\n\ndata: 1\n\nversion: 2\nretry\n: a b\n\ndata: 2\n\n",
                &["-|1", "-|2"],
            ),
            // The field `error`.
            (
                "data: {}\n\nerror: {\"code\":500}\n\n",
                &["-|{}", "error|{\"code\":500}"],
            ),
        ] {
            for line_end in ["\n", "\r\n", "\r"] {
                let body = body.replace('\n', line_end).into_bytes();
                for at in 0..body.len() {
                    let mut out = Vec::new();
                    let mut decoder = SseParser::default().of_json();
                    let mut on = |e: SseFrame<'_>| {
                        let name = e.name.unwrap_or(if e.is_bare { "bare" } else { "-" });
                        out.push(format!("{name}|{}", e.data));
                    };
                    decoder.push(&body[..at], &mut on);
                    decoder.push(&body[at..], &mut on);
                    decoder.finish(&mut on);
                    assert_eq!(out, want, "{:?} at {at}", String::from_utf8_lossy(&body));
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_become_the_replacement_character() {
        assert_eq!(
            events(&[b"data: a\xff\xc3", b"\xa9\xe2\x82\n\n"]),
            ["-|a\u{fffd}é\u{fffd}"]
        );
    }
}
