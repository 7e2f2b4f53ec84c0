//! Splits a body of JSON into its values: a single value, a sequence of values (on separate lines
//! or not), or an array.

/// Finds the start and end of each value from its brackets and quotes, in a single pass.
///
/// The items of a top-level array count as values, so that Gemini's array is decoded item by item.
/// Where text cannot be JSON (a line feed inside a string, or an object where none is allowed), the
/// text so far is reported as broken and parsing continues from there, so an invalid line does not
/// affect the others.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// The current value, or text between values, if it is incomplete.
    kept: Vec<u8>,
    depth: u32,
    state: ValuesState,
    /// The last byte outside strings that is not white space.
    last: u8,
    /// Whether a top-level `[` was seen.
    array: bool,
    /// The number of bytes since the last value.
    between: usize,
    limit: usize,
    full: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ValuesState {
    /// Between two values.
    #[default]
    Between,
    /// Inside a value, outside its strings.
    Value,
    /// Inside a string.
    Text,
    /// Inside a string, after a backslash.
    Escape,
    /// Inside text that is not a value, up to the end of the line.
    Junk,
}

impl Values {
    /// Creates a splitter that allows at most `limit` bytes per value and between two values.
    pub(crate) fn limited(limit: usize) -> Values {
        Values {
            limit,
            ..Values::default()
        }
    }

    /// Whether the limit was exceeded. No more values are emitted then. The result does not depend
    /// on how the bytes are chunked.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the number of buffered bytes.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Processes the next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) {
        while !bytes.is_empty() {
            bytes = &bytes[self.push_value(bytes, on)..];
        }
    }

    /// Returns how many bytes the next value may have, with those before it, if the next byte is
    /// outside of values.
    pub(crate) fn room_between(&self) -> Option<usize> {
        let is_between = self.state == ValuesState::Between && !self.full;
        is_between.then(|| self.limit.saturating_sub(self.between))
    }

    /// Records that a value was read without [`Values::push_value`].
    pub(crate) fn skip_value(&mut self) {
        self.between = 0;
    }

    /// Processes the next bytes, at most to the end of a value. Returns the number of bytes
    /// processed.
    pub(crate) fn push_value(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) -> usize {
        if self.full {
            return bytes.len();
        }
        let mut from = 0; // where what is not yet in `kept` begins
        for (at, &byte) in bytes.iter().enumerate() {
            match self.state {
                ValuesState::Between => {
                    from = at;
                    self.between(byte);
                    if self.full {
                        return bytes.len();
                    }
                    if self.state == ValuesState::Between {
                        from = at + 1;
                    }
                    continue;
                }
                ValuesState::Text => match byte {
                    b'"' => self.state = ValuesState::Value,
                    b'\\' => self.state = ValuesState::Escape,
                    b'\n' => {
                        self.give(&bytes[from..at], on, true);
                        from = at + 1;
                    }
                    _ => {}
                },
                ValuesState::Escape => self.state = ValuesState::Text,
                ValuesState::Junk if byte == b'\n' => {
                    self.give(&bytes[from..at], on, true);
                    from = at + 1;
                }
                ValuesState::Junk => {}
                ValuesState::Value => match byte {
                    b' ' | b'\t' | b'\r' | b'\n' => continue,
                    b'"' => self.state = ValuesState::Text,
                    b'{' if !matches!(self.last, b',' | b':' | b'[') => {
                        self.give(&bytes[from..at], on, true);
                        from = at;
                        self.between(byte);
                        continue;
                    }
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            self.give(&bytes[from..=at], on, false);
                            return at + 1;
                        }
                    }
                    _ => {}
                },
            }
            if self.state != ValuesState::Text || byte == b'"' {
                self.last = byte;
            }
        }
        if self.state != ValuesState::Between {
            self.full |= self.kept.len() + bytes.len() - from > self.limit;
            self.kept.extend_from_slice(&bytes[from..]);
        }
        bytes.len()
    }

    /// Handles the end of the body.
    pub(crate) fn finish(&mut self, on: &mut dyn FnMut(Frame<'_>)) {
        self.give(&[], on, true);
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | 0xef | 0xbb | 0xbf => {
                self.between += 1;
                self.full |= self.between > self.limit;
            }
            b'[' if !self.array => self.array = true,
            b'{' | b'[' => {
                self.state = ValuesState::Value;
                self.depth = 1;
                self.last = byte;
            }
            _ => self.state = ValuesState::Junk,
        }
    }

    fn give(&mut self, rest: &[u8], on: &mut dyn FnMut(Frame<'_>), broken: bool) {
        self.full |= self.kept.len() + rest.len() > self.limit;
        if self.full {
            return;
        }
        let whole = if self.kept.is_empty() {
            String::from_utf8_lossy(rest)
        } else {
            self.kept.extend_from_slice(rest);
            String::from_utf8_lossy(&self.kept)
        };
        if !whole.trim().is_empty() {
            on(if broken {
                Frame::Broken(&whole)
            } else {
                Frame::Value(&whole)
            });
        }
        self.kept.clear();
        self.state = ValuesState::Between;
        self.depth = 0;
        self.between = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(body: &str, step: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mut values = Values::limited(usize::MAX);
        let mut on = |f: Frame<'_>| match f {
            Frame::Value(text) => out.push(text.to_owned()),
            Frame::Broken(text) => out.push(format!("broken {text}")),
            _ => {}
        };
        for piece in body.as_bytes().chunks(step) {
            values.push(piece, &mut on);
        }
        values.finish(&mut on);
        out
    }

    #[test]
    fn brackets_after_a_value_over_the_limit_are_not_read() {
        let mut values = Values::limited(3);
        values.push(b"{\"a\":1}}]}{}", &mut |frame| panic!("{frame:?}"));
        assert!(values.is_full());
    }

    #[test]
    fn a_value_over_the_limit_ends_it_however_the_bytes_come() {
        let body = b"{\"a\":1}\n  {\"bb\":22}\n          {\"a\":1}\n{\"ccccc\":33333333}{}";
        let read = |limit: usize, step: usize| {
            let mut out = Vec::new();
            let mut values = Values::limited(limit);
            let mut on = |f: Frame<'_>| out.push(format!("{f:?}"));
            for piece in body.chunks(step) {
                values.push(piece, &mut on);
            }
            values.finish(&mut on);
            (out, values.is_full())
        };
        for limit in 0..30 {
            let whole = read(limit, 1000);
            assert!((1..20).all(|step| read(limit, step) == whole), "{limit}");
            let expected = [(7, 0), (9, 1), (11, 2), (18, 3)]
                .into_iter()
                .find(|(least, _)| limit < *least);
            assert_eq!(
                (whole.0.len(), whole.1),
                expected.map_or((5, false), |(_, values)| (values, true)),
                "{limit}"
            );
        }
    }

    #[test]
    fn values_are_found_however_they_are_laid_out() {
        for (body, want) in [
            (
                "{\"a\":\"}\\\"\"}\n{\"b\":[1,{}]}",
                vec!["{\"a\":\"}\\\"\"}", "{\"b\":[1,{}]}"],
            ),
            (
                "[{\n \"a\": 1\n}\n,\r\n{\"é\":2}\n]\n",
                vec!["{\n \"a\": 1\n}", "{\"é\":2}"],
            ),
            ("{\"a\":{\n", vec!["broken {\"a\":{\n"]),
            (
                "{\"a\":\"x\n{\"b\":1}",
                vec!["broken {\"a\":\"x", "{\"b\":1}"],
            ),
            (
                "{\"a\":{\"x\":1}\n{\"b\":1}\n",
                vec!["broken {\"a\":{\"x\":1}\n", "{\"b\":1}"],
            ),
            (
                "{\"a\":1}\nnonsense {\n{\"b\":1}",
                vec!["{\"a\":1}", "broken nonsense {", "{\"b\":1}"],
            ),
            ("[]", vec![]),
        ] {
            for step in [1, 2, 3, 100] {
                assert_eq!(frames(body, step), want, "{body} by {step}");
            }
        }
    }
}

/// One piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A server-sent event.
    Event {
        name: Option<&'a str>,
        data: &'a str,
    },
    /// A JSON value from a body that is a value, an array or a sequence of values. Only its
    /// brackets are checked.
    Value(&'a str),
    /// Text between values, or an incomplete value.
    Broken(&'a str),
    /// The body does not belong to any provider's API. Contains its start, and whether it looks
    /// like an HTML page.
    Foreign { text: &'a str, html: bool },
    /// The compressed body is damaged. Contains the reason.
    Damaged(&'a str),
    /// A frame exceeds the limit; decoding ends.
    TooLong,
}

impl Frame<'_> {
    /// Whether this frame is complete rather than truncated.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Frame::Event { data, .. } => data.trim() == "[DONE]" || event::Raw::parse(data).is_ok(),
            Frame::Value(text) => event::Raw::parse(text).is_ok(),
            Frame::Broken(_) | Frame::Damaged(_) => false,
            Frame::Foreign { html, .. } => *html,
            Frame::TooLong => true,
        }
    }
}
