//! The bytes of a body into frames.

mod values;

use values::Values;

/// One piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A server-sent event.
    Event { name: Option<&'a str>, data: &'a str },
    /// A JSON value of a body that is a value, an array or a sequence of values. Its brackets match; no more is known.
    Value(&'a str),
    /// Text between values, or a value that did not end.
    Broken(&'a str),
    /// The body is nothing that a provider's API sends: its beginning, and whether it looks like an HTML page.
    Foreign { text: &'a str, html: bool },
    /// A frame grew over [`LIMIT`]; nothing more is read.
    TooLong,
}

impl Frame<'_> {
    /// Whether this is surely not the beginning of something else.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Frame::Event { data, .. } => data.trim() == "[DONE]" || event::Raw::parse(data).is_ok(),
            Frame::Value(text) => event::Raw::parse(text).is_ok(),
            Frame::Broken(_) => false,
            Frame::Foreign { html, .. } => *html,
            Frame::TooLong => true,
        }
    }
}

/// How long one frame may grow, in bytes: four times the largest argument that must work.
const LIMIT: usize = 256 << 20;

/// How much of a body that is nothing we know is kept for the message.
const FOREIGN: usize = 64 << 10;

/// Finds out from the first bytes what a body is, and cuts it into frames. How the bytes come never shows.
///
/// The `Content-Type` is not asked: servers send event streams as `text/plain`, and recorded bodies have no headers.
#[derive(Debug)]
pub(crate) struct Framing {
    mode: Mode,
    full: bool,
}

#[derive(Debug)]
enum Mode {
    /// Nothing decided; the bytes so far.
    Start(Vec<u8>),
    Sse(sse::Decoder),
    Json(Values),
    Foreign(Foreign),
}

/// A body that is neither an event stream nor JSON, as far as its first line tells.
#[derive(Debug, Default)]
struct Foreign {
    /// Its beginning, for the message.
    kept: Vec<u8>,
    /// Where its last line begins, and how much of that line has no line end.
    line: usize,
    searched: usize,
}

impl Default for Framing {
    fn default() -> Self {
        Framing { mode: Mode::Start(Vec::new()), full: false }
    }
}

impl Framing {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) {
        if let Mode::Start(begun) = &mut self.mode {
            begun.extend_from_slice(bytes);
            if let Some(mode) = mode(begun, false) {
                let begun = std::mem::take(begun);
                self.mode = mode;
                self.feed(&begun, on);
            }
        } else {
            self.feed(bytes, on);
        }
    }

    /// The body ended, at its end or before.
    pub(crate) fn finish(&mut self, on: &mut dyn FnMut(Frame<'_>)) {
        if let Mode::Start(begun) = &mut self.mode {
            let begun = std::mem::take(begun);
            let Some(mode) = mode(&begun, true) else { return };
            self.mode = mode;
            self.feed(&begun, on);
        }
        match &mut self.mode {
            Mode::Sse(decoder) => decoder.finish(&mut |e| on(Frame::Event { name: e.name, data: e.data })),
            Mode::Json(values) => values.finish(on),
            Mode::Foreign(foreign) => {
                let text = String::from_utf8_lossy(&foreign.kept);
                on(Frame::Foreign { text: &text, html: unmarked(&foreign.kept).starts_with(b"<") });
            }
            Mode::Start(_) => {}
        }
    }

    fn feed(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) {
        if self.full {
            return;
        }
        let held = match &mut self.mode {
            Mode::Sse(decoder) => {
                decoder.push(bytes, &mut |e| on(Frame::Event { name: e.name, data: e.data }));
                decoder.held()
            }
            Mode::Json(values) => {
                values.push(bytes, on);
                values.held()
            }
            Mode::Foreign(foreign) => {
                let (kept, rest) = bytes.split_at(bytes.len().min(FOREIGN.saturating_sub(foreign.kept.len())));
                foreign.kept.extend_from_slice(kept);
                if foreign.has_event() {
                    let begun = std::mem::take(&mut foreign.kept);
                    self.mode = Mode::Sse(sse::Decoder::default());
                    self.feed(&begun, on);
                    return self.feed(rest, on);
                }
                0
            }
            Mode::Start(_) => 0,
        };
        if held > LIMIT {
            self.full = true;
            self.mode = Mode::Start(Vec::new());
            on(Frame::TooLong);
        }
    }
}

impl Foreign {
    /// Whether a line of an event follows after all. The specification of event streams skips lines with unknown fields,
    /// so the first line alone decides nothing. An HTML page may have any line.
    fn has_event(&mut self) -> bool {
        if unmarked(&self.kept).starts_with(b"<") {
            return false;
        }
        loop {
            let line = &self.kept[self.line..];
            if line.starts_with(b"data:") || line.starts_with(b"event:") {
                return true;
            }
            let Some(end) = line[self.searched..].iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.searched = line.len();
                return false;
            };
            self.line += self.searched + end + 1;
            self.searched = 0;
        }
    }
}

const MARK: &[u8] = b"\xef\xbb\xbf";

/// A body without the byte order marks and the white space before it.
fn unmarked(begun: &[u8]) -> &[u8] {
    let mut rest = begun.trim_ascii_start();
    while let Some(after) = rest.strip_prefix(MARK) {
        rest = after.trim_ascii_start();
    }
    rest
}

/// What a body that begins with these bytes is; `None` while that is open. `all` says that no more will come.
///
/// Byte order marks do not count here, however many there are: what they mean for the first line is the decoder's matter.
fn mode(begun: &[u8], all: bool) -> Option<Mode> {
    let rest = unmarked(begun);
    let first = rest.first()?;
    if !all && MARK.starts_with(rest) {
        return None;
    }
    if matches!(first, b'{' | b'[') {
        return Some(Mode::Json(Values::default()));
    }
    // A line of an event stream is a comment, or a field's name, and a colon unless the value is empty.
    for field in ["", "data", "event", "id", "retry"] {
        let field = field.as_bytes();
        match rest.strip_prefix(field) {
            Some([b':', ..]) => return Some(Mode::Sse(sse::Decoder::default())),
            Some([b'\n' | b'\r', ..]) if !field.is_empty() => return Some(Mode::Sse(sse::Decoder::default())),
            Some([]) if !all && !field.is_empty() => return None,
            None if !all && field.starts_with(rest) => return None,
            _ => {}
        }
    }
    Some(Mode::Foreign(Foreign::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Vec<String> {
        let mut out = Vec::new();
        let mut framing = Framing::default();
        let mut on = |f: Frame<'_>| out.push(format!("{f:?}"));
        for piece in pieces {
            framing.push(piece, &mut on);
        }
        framing.finish(&mut on);
        out
    }

    #[test]
    fn each_kind_of_body_is_told_from_its_first_bytes_however_they_come() {
        for (body, first) in [
            ("data: {}\n\n", "Event { name: None, data: \"{}\" }"),
            ("\u{feff}event: x\r\ndata: {}", "Event { name: Some(\"x\"), data: \"{}\" }"),
            (": ping\n\n: \n\nid: 7\ndata:1\n\n", "Event { name: None, data: \"1\" }"),
            ("{\"a\":1}\n", "Value(\"{\\\"a\\\":1}\")"),
            ("\u{feff} [{\"a\":1}\n,", "Value(\"{\\\"a\\\":1}\")"),
            ("<!doctype html><p>no", "Foreign { text: \"<!doctype html><p>no\", html: true }"),
            ("Internal Server Error", "Foreign { text: \"Internal Server Error\", html: false }"),
            ("da", "Foreign { text: \"da\", html: false }"),
            ("data", "Foreign { text: \"data\", html: false }"),
            // After the specification: a line without a colon is a field with an empty value, one mark at the start is
            // taken away and a second belongs to the name of the first field, and lines with unknown fields are skipped.
            ("data\ndata: {}\n\n", "Event { name: None, data: \"\\n{}\" }"),
            ("id\r\ndata: {}\r\n\r\n", "Event { name: None, data: \"{}\" }"),
            ("retry\rdata: {}", "Event { name: None, data: \"{}\" }"),
            ("\u{feff}\u{feff}event: x\ndata: {}", "Event { name: None, data: \"{}\" }"),
            ("\u{feff}\u{feff}data: {}\n\ndata: 2", "Event { name: None, data: \"2\" }"),
            ("\u{feff}\u{feff}\u{feff}{\"a\":1}", "Value(\"{\\\"a\\\":1}\")"),
            ("version: 2\nevent: x\ndata: {}\n\n", "Event { name: Some(\"x\"), data: \"{}\" }"),
            ("dataset: 1\n\ndata: 2", "Event { name: None, data: \"2\" }"),
            ("upstream error\nid: 7\n", "Foreign { text: \"upstream error\\nid: 7\\n\", html: false }"),
            ("\u{feff}<html>\ndata: 1", "Foreign { text: \"\\u{feff}<html>\\ndata: 1\", html: true }"),
        ] {
            assert_eq!(frames(&[body.as_bytes()]), [first], "{body}");
            let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
            assert_eq!(frames(&single), [first], "{body}");
        }
        assert!(frames(&[b"", b" \n"]).is_empty());
    }
}
