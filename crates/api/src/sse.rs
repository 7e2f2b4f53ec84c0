//! Parses server-sent events according to the WHATWG specification ([HTML, section
//! 9.2](https://html.spec.whatwg.org/multipage/server-sent-events.html)). In this file "event" has
//! the meaning of the specification; the glossary calls it a frame.
//!
//! [`SseParser`] takes the bytes of a body in chunks of any size and emits [`SseFrame`]s. It opens
//! and reconnects no connections, so it drops the fields `id` and `retry`, and it does not parse
//! the data.
//!
//! [`SseParser::of_json`] also accepts deviations from the specification that occur in streams and
//! recordings with JSON data.

use memchr::memchr2;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// The `event` field; `None` if the event has none, in which case a browser calls it `message`.
    pub name: Option<&'a str>,
    /// The `data` lines, joined by line feeds.
    pub data: &'a str,
    /// Whether the lines had no `data:` prefix. Only occurs with [`SseParser::of_json`].
    pub is_bare: bool,
}

/// A parser for event streams. The emitted events do not depend on how the bytes are chunked.
///
/// Invalid UTF-8 becomes U+FFFD, as in the specification. Comments and unknown fields are dropped.
#[derive(Debug, Default)]
pub struct SseParser {
    /// Whether the first line has ended. A byte order mark is ordinary text from then on.
    begun: bool,
    /// The current line, if it is incomplete.
    line: Vec<u8>,
    /// Whether the last line ended with a carriage return. A line feed that follows belongs to it.
    after_return: bool,
    /// The last `event` field, valid while `has_name` is true. It is kept because most events have
    /// the same name as the previous one.
    name: String,
    has_name: bool,
    data: String,
    has_data: bool,
    /// The number of bytes in the current event's lines, including comments and line ends.
    size: usize,
    limit: Option<usize>,
    is_full: bool,
    /// Whether the data is JSON; see [`SseParser::of_json`].
    is_json: bool,
    /// Whether the data comes from lines without `data:`.
    is_bare: bool,
    /// Whether an event was emitted. From then on, text between events is treated as an event.
    has_events: bool,
}

const MARK: &[u8] = b"\xef\xbb\xbf";

impl SseParser {
    /// Creates a parser that accepts events of at most `limit` bytes, including comments and line
    /// ends; see [`SseParser::is_full`].
    pub fn limited(limit: usize) -> SseParser {
        SseParser {
            limit: Some(limit),
            ..SseParser::default()
        }
    }

    /// Configures the parser for a stream whose data is JSON. It then accepts four deviations,
    /// which the specification would drop or join:
    ///
    /// - **Missing blank lines.** An event ends before a second name, and before a data line that
    ///   cannot continue the JSON so far.
    /// - **JSON without `data:`**, which Google's servers use for an error in a running stream. It
    ///   becomes a separate event.
    /// - **The field `error`**, which llama.cpp used before September 2025. It becomes an event of
    ///   that name.
    /// - **Text that is not a field**, after the first event: the rest of an event whose start was
    ///   lost, or a message from an intermediate server. It becomes an event without `data:`.
    #[must_use]
    pub fn of_json(self) -> SseParser {
        SseParser {
            is_json: true,
            ..self
        }
    }

    /// Whether an event exceeded the limit. The parser ignores all bytes after it.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the number of buffered bytes of the current event.
    pub fn kept(&self) -> usize {
        self.line.len() + self.data.len() + self.name.len()
    }

    /// Parses the next bytes of the body and calls `on` for each completed event.
    pub fn push(&mut self, mut bytes: &[u8], on: &mut dyn FnMut(SseFrame<'_>)) {
        while !bytes.is_empty() {
            bytes = &bytes[self.push_event(bytes, on)..];
        }
    }

    /// Whether the next byte is the first one of an event, and not of the body.
    pub(crate) fn is_between(&self) -> bool {
        self.begun && self.size == 0 && self.line.is_empty() && !self.after_return && !self.is_full
    }

    /// Parses the next bytes of the body, at most to the end of the next blank line. Returns the
    /// number of bytes parsed.
    pub(crate) fn push_event(&mut self, all: &[u8], on: &mut dyn FnMut(SseFrame<'_>)) -> usize {
        if self.is_full {
            return all.len();
        }
        let mut bytes = all;
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        // Nearly every event is a single data line within the current bytes, so that line is
        // emitted without a copy.
        let mut only = None;
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.size += self.line.len() + line.len() + 1;
            if self.overflows(0) {
                return all.len();
            }
            let is_blank = line.is_empty() && self.line.is_empty();
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
            if is_blank {
                return all.len() - bytes.len();
            }
        }
        self.keep(only);
        if !self.overflows(self.line.len() + bytes.len()) {
            self.line.extend_from_slice(bytes);
        }
        all.len()
    }

    /// Whether the event exceeds the limit with `more` bytes of an incomplete line. The result does
    /// not depend on how the bytes are chunked, because a line that is already too long stays too
    /// long.
    fn overflows(&mut self, more: usize) -> bool {
        self.is_full |= self.limit.is_some_and(|limit| self.size + more > limit);
        self.is_full
    }

    /// Handles the end of the body. The specification drops an event without a final blank line,
    /// but several providers omit the last blank line. The event is therefore emitted, including an
    /// incomplete last line, and the caller must check whether its data is complete.
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

    /// Processes a line that was assembled in the buffer.
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

    /// Processes one line. `only` is the event's data as long as it is a single line that is not
    /// yet in `self.data`.
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

    /// Processes a line without a known field, in a stream of JSON.
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

    /// Ends the current event and starts a new one with `line`.
    fn end_before(
        &mut self,
        line: &[u8],
        only: &mut Option<&[u8]>,
        on: &mut dyn FnMut(SseFrame<'_>),
    ) {
        self.dispatch(only.take(), on);
        self.size = line.len() + 1;
    }

    /// Whether a data line can continue the JSON so far. An object can only follow `[`, `,` or `:`,
    /// or start the data. `[DONE]` never continues JSON.
    fn goes_on(&self, only: Option<&[u8]>, value: &[u8]) -> bool {
        // Evaluated only if needed, because there may be many lines of white space.
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

/// Whether the line may be an unknown field, which the specification skips: a name, optionally
/// followed by a colon and a value. The rest of a truncated event, or a message from an
/// intermediate server, is not a field.
fn is_field(line: &[u8]) -> bool {
    let end = line.iter().position(|b| *b == b':').unwrap_or(line.len());
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    line[..end].iter().all(is_of_name)
}

/// Returns a value without the optional space after the colon.
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
        // The examples in the specification.
        ("data: YHOO\ndata: +2\ndata: 10\n\n", &["-|YHOO\n+2\n10"]),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            &["-|first event", "-|second event", "-| third event"],
        ),
        ("data\n\ndata\ndata\n\ndata:", &["-|", "-|\n", "-|"]),
        ("data:test\n\ndata: test\n\n", &["-|test", "-|test"]),
        // A byte order mark at the start, names that apply to one event, and an event without data.
        (
            "\u{feff}event: add\ndata: é\u{feff}\n\ndata: x\n\nevent: only\n\ndata: y\n\n",
            &["add|é\u{feff}", "-|x", "-|y"],
        ),
        // A second byte order mark belongs to the first field's name, which is then unknown.
        (
            "\u{feff}\u{feff}data: a\ndata: b\n\ndata: c\n\n",
            &["-|b", "-|c"],
        ),
        ("data\ndata: a\n\n", &["-|\na"]),
        // Unknown fields, no space after a colon, a colon in the value, and reconnection fields.
        (
            "error: x\nretry: 10\nid: ab\ndata:{\"a\":\"b: c\"}\n\n",
            &["-|{\"a\":\"b: c\"}"],
        ),
        // The last blank line, and the end of the last line, are often missing.
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
            // "event: x", "data: 1234567890" and the blank line, each with its line end.
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
            // Missing blank lines.
            (
                "data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n",
                &["-|{\"a\":1}", "-|{\"a\":2}", "-|[DONE]"][..],
            ),
            (
                "event: x\ndata: {}\nevent: y\ndata: {}\n",
                &["x|{}", "y|{}"],
            ),
            ("data: {}\ndata: junk\ndata: {}\n", &["-|{}\njunk", "-|{}"]),
            // One JSON text in several lines.
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
            // Text that is not a field, and unknown fields.
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
