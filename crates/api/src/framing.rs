//! Splits the bytes of a body into frames.

mod values;

use crate::framing::values::Values;
use flate2::write::MultiGzDecoder;
use std::io::{Error, Write};

pub(crate) use crate::framing::values::Frame;

/// How many bytes of an unrecognised body to keep for the error message.
const FOREIGN: usize = 64 << 10;

/// Detects the format of a body from its first bytes and splits it into frames. The frames do not
/// depend on how the bytes are chunked.
///
/// The `Content-Type` is ignored: some servers send event streams as `text/plain`, and recorded
/// bodies have no headers.
#[derive(Debug)]
pub(crate) struct Framing {
    mode: BodyForm,
    /// The maximum size of a frame, in bytes.
    limit: usize,
    full: bool,
    /// Whether this is the content of a compressed body. It is not decompressed a second time.
    is_inner: bool,
}

#[derive(Debug)]
enum BodyForm {
    /// Not yet detected. Holds the bytes so far, with insignificant white space removed, and the
    /// number of bytes removed.
    Start(Vec<u8>, usize),
    Sse(crate::sse::SseParser),
    Json(Values),
    /// A gzip body, and the framing of its decompressed content.
    Gzip(Box<(Gzip, Framing)>),
    Foreign(Foreign),
}

/// A body whose first line is neither an event stream nor JSON.
#[derive(Debug, Default)]
struct Foreign {
    /// The start of the body, for the error message.
    kept: Vec<u8>,
    /// The offset of the last line, and the length of the part of that line already searched for
    /// its end.
    line: usize,
    searched: usize,
}

impl Framing {
    /// Creates a framing with a maximum frame size of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Framing {
        Framing {
            mode: BodyForm::Start(Vec::new(), 0),
            limit,
            full: false,
            is_inner: false,
        }
    }

    /// Returns the number of buffered bytes of the current frame.
    pub(crate) fn kept(&self) -> usize {
        match &self.mode {
            BodyForm::Start(begun, _) => begun.len(),
            BodyForm::Sse(decoder) => decoder.kept(),
            BodyForm::Json(values) => values.kept(),
            BodyForm::Gzip(both) => both.1.kept(),
            BodyForm::Foreign(foreign) => foreign.kept.len(),
        }
    }

    /// Processes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) {
        if let BodyForm::Start(begun, dropped) = &mut self.mode {
            begun.extend_from_slice(bytes);
            let (before, left) = shrink(begun);
            if *dropped + before > self.limit {
                return self.too_long(on);
            }
            *dropped += before - left;
            if let Some(mode) = mode(begun, false, self.limit, self.is_inner) {
                let begun = std::mem::take(begun);
                self.mode = mode;
                self.feed(&begun, on);
            }
        } else {
            self.feed(bytes, on);
        }
    }

    /// Processes the next bytes, in a form that has bytes between its frames only to the end of one
    /// frame. Returns the number of bytes processed.
    pub(crate) fn push_frame(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) -> usize {
        if let BodyForm::Start(begun, _) = &self.mode
            && begun.is_empty()
            && unmarked(bytes).len() == bytes.len()
            && let Some(mode) = mode(bytes, false, self.limit, self.is_inner)
        {
            self.mode = mode;
        }
        let (length, is_full) = match &mut self.mode {
            BodyForm::Sse(decoder) => {
                let length = decoder.push_event(bytes, &mut |e| event(e, on));
                (length, decoder.is_full())
            }
            BodyForm::Json(values) => {
                let length = values.push_value(bytes, on);
                (length, values.is_full())
            }
            _ => {
                self.push(bytes, on);
                return bytes.len();
            }
        };
        if is_full {
            self.too_long(on);
        }
        length
    }

    /// Returns the maximum size of a frame with the bytes around it, if the next byte is the first
    /// one after a frame. The same bytes then always make the same frame.
    pub(crate) fn room_between(&self) -> Option<usize> {
        match &self.mode {
            BodyForm::Sse(decoder) if decoder.is_between() => Some(self.limit),
            BodyForm::Json(values) => values.room_between(),
            _ => None,
        }
    }

    /// Records that a frame was read without [`Framing::push_frame`].
    pub(crate) fn skip_frame(&mut self) {
        if let BodyForm::Json(values) = &mut self.mode {
            values.skip_value();
        }
    }

    /// Handles the end of the body, complete or truncated.
    pub(crate) fn finish(&mut self, on: &mut dyn FnMut(Frame<'_>)) {
        if let BodyForm::Start(begun, _) = &mut self.mode {
            let begun = std::mem::take(begun);
            let Some(mode) = mode(&begun, true, self.limit, self.is_inner) else {
                return;
            };
            self.mode = mode;
            self.feed(&begun, on);
        }
        if self.full {
            return;
        }
        match &mut self.mode {
            BodyForm::Sse(decoder) => decoder.finish(&mut |e| event(e, on)),
            BodyForm::Json(values) => {
                values.finish(on);
                if values.is_full() {
                    self.too_long(on);
                }
            }
            BodyForm::Gzip(both) => {
                let (gzip, inner) = &mut **both;
                let finished = gzip.finish(&mut |bytes| inner.take(bytes, on));
                inner.finish(on);
                damaged(finished, on);
            }
            BodyForm::Foreign(foreign) => foreign.report(on),
            BodyForm::Start(..) => {}
        }
    }

    /// Same as [`Framing::push`], but returns whether to continue.
    fn take(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) -> bool {
        self.push(bytes, on);
        !self.full
    }

    fn feed(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) {
        if self.full {
            return;
        }
        let is_full = match &mut self.mode {
            BodyForm::Sse(decoder) => {
                decoder.push(bytes, &mut |e| event(e, on));
                decoder.is_full()
            }
            BodyForm::Json(values) => {
                values.push(bytes, on);
                values.is_full()
            }
            BodyForm::Gzip(both) => {
                let (gzip, inner) = &mut **both;
                let pushed = gzip.push(bytes, &mut |bytes| inner.take(bytes, on));
                self.full = inner.full;
                damaged(pushed, on);
                false
            }
            BodyForm::Foreign(foreign) => {
                let (kept, rest) =
                    bytes.split_at(bytes.len().min(FOREIGN.saturating_sub(foreign.kept.len())));
                foreign.kept.extend_from_slice(kept);
                if foreign.has_event() {
                    let begun = std::mem::take(&mut foreign.kept);
                    self.mode = events(self.limit);
                    self.feed(&begun, on);
                    return self.feed(rest, on);
                }
                if foreign.kept.len() == FOREIGN {
                    self.full = true;
                    foreign.report(on);
                }
                false
            }
            BodyForm::Start(..) => false,
        };
        if is_full {
            self.too_long(on);
        }
    }

    fn too_long(&mut self, on: &mut dyn FnMut(Frame<'_>)) {
        self.full = true;
        self.mode = BodyForm::Foreign(Foreign::default());
        on(Frame::TooLong);
    }
}

/// Reports an error in a compressed body.
fn damaged(result: Result<(), std::io::Error>, on: &mut dyn FnMut(Frame<'_>)) {
    if let Err(why) = result {
        on(Frame::Damaged(&why.to_string()));
    }
}

/// Returns the form of a body of server-sent events.
fn events(limit: usize) -> BodyForm {
    BodyForm::Sse(crate::sse::SseParser::limited(limit).of_json())
}

/// Passes on a server-sent event. JSON without `data:` is treated like a JSON body, because it may
/// be a complete response or several lines.
fn event(event: crate::sse::SseFrame<'_>, on: &mut dyn FnMut(Frame<'_>)) {
    if event.is_bare && event.data.trim() != "[DONE]" {
        let mut values = Values::limited(usize::MAX);
        values.push(event.data.as_bytes(), on);
        values.finish(on);
    } else {
        on(Frame::Event {
            name: event.name,
            data: event.data,
        });
    }
}

/// A byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

impl Foreign {
    fn report(&self, on: &mut dyn FnMut(Frame<'_>)) {
        let text = String::from_utf8_lossy(&self.kept);
        on(Frame::Foreign {
            text: &text,
            html: unmarked(&self.kept).starts_with(b"<"),
        });
    }

    /// Whether a line of an event follows after all. The specification of event streams skips lines
    /// with unknown fields, so the first line alone is not conclusive. An HTML page may contain any
    /// line.
    fn has_event(&mut self) -> bool {
        if unmarked(&self.kept).starts_with(b"<") {
            return false;
        }
        loop {
            let line = &self.kept[self.line..];
            if line.starts_with(b"data:") || line.starts_with(b"event:") {
                return true;
            }
            let Some(end) = line[self.searched..]
                .iter()
                .position(|b| matches!(b, b'\n' | b'\r'))
            else {
                self.searched = line.len();
                return false;
            };
            self.line += self.searched + end + 1;
            self.searched = 0;
        }
    }
}

/// Returns the body without leading byte order marks and white space.
fn unmarked(begun: &[u8]) -> &[u8] {
    let mut rest = begun.trim_ascii_start();
    while let Some(after) = rest.strip_prefix(MARK) {
        rest = after.trim_ascii_start();
    }
    rest
}

/// Replaces leading byte order marks and white space by the shortest text that decoders treat the
/// same way, so that each of these bytes is examined only once. Returns the number of bytes before
/// and after.
fn shrink(begun: &mut Vec<u8>) -> (usize, usize) {
    let before = begun.len() - unmarked(begun).len();
    let front = &begun[..before];
    let line = front
        .iter()
        .rposition(|b| matches!(b, b'\n' | b'\r'))
        .map_or(0, |end| end + 1);
    let left: &[u8] = match (line > 0, &front[line..]) {
        (false, MARK) => MARK,
        (false, []) => b"",
        // An indented field has a different name.
        (false, _) => b" ",
        (true, []) => b"\n",
        (true, _) => b"\n ",
    };
    begun.splice(..before, left.iter().copied());
    (before, left.len())
}

/// Detects the format of a body that starts with these bytes; `None` if more bytes are needed.
/// `all` means that the body has no more bytes.
///
/// Byte order marks are ignored here, however many there are. The decoder handles their effect on
/// the first line.
fn mode(begun: &[u8], all: bool, limit: usize, is_inner: bool) -> Option<BodyForm> {
    let rest = unmarked(begun);
    let first = rest.first()?;
    if !is_inner && begun.starts_with(MAGIC) {
        return Some(BodyForm::Gzip(Box::new((
            Gzip::new(),
            Framing {
                is_inner: true,
                ..Framing::new(limit)
            },
        ))));
    }
    if !is_inner && !all && MAGIC.starts_with(begun) {
        return None;
    }
    if !all && MARK.starts_with(rest) {
        return None;
    }
    if matches!(first, b'{' | b'[') {
        return Some(BodyForm::Json(Values::limited(limit)));
    }
    // A line of an event stream is a comment, or a field name followed by a colon, which may be
    // missing if the value is empty.
    for field in ["", "data", "event", "id", "retry"] {
        let field = field.as_bytes();
        match rest.strip_prefix(field) {
            Some([b':', ..]) => return Some(events(limit)),
            Some([b'\n' | b'\r', ..]) if !field.is_empty() => return Some(events(limit)),
            Some([]) if !all && !field.is_empty() => return None,
            None if !all && field.starts_with(rest) => return None,
            _ => {}
        }
    }
    Some(BodyForm::Foreign(Foreign::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Vec<String> {
        limited(pieces, usize::MAX)
    }

    fn limited(pieces: &[&[u8]], limit: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mut framing = Framing::new(limit);
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
            (
                "\u{feff}event: x\r\ndata: {}",
                "Event { name: Some(\"x\"), data: \"{}\" }",
            ),
            (
                ": ping\n\n: \n\nid: 7\ndata:1\n\n",
                "Event { name: None, data: \"1\" }",
            ),
            ("{\"a\":1}\n", "Value(\"{\\\"a\\\":1}\")"),
            ("\u{feff} [{\"a\":1}\n,", "Value(\"{\\\"a\\\":1}\")"),
            (
                "<!doctype html><p>no",
                "Foreign { text: \"<!doctype html><p>no\", html: true }",
            ),
            (
                "Internal Server Error",
                "Foreign { text: \"Internal Server Error\", html: false }",
            ),
            ("da", "Foreign { text: \"da\", html: false }"),
            ("data", "Foreign { text: \"data\", html: false }"),
            // According to the specification, a line without a colon is a field with an empty
            // value, one byte order mark at the start is removed while a second one belongs to the
            // first field's name, and lines with unknown fields are skipped.
            (
                "data\ndata: {}\n\n",
                "Event { name: None, data: \"\\n{}\" }",
            ),
            (
                "id\r\ndata: {}\r\n\r\n",
                "Event { name: None, data: \"{}\" }",
            ),
            ("retry\rdata: {}", "Event { name: None, data: \"{}\" }"),
            (
                "\u{feff}\u{feff}event: x\ndata: {}",
                "Event { name: None, data: \"{}\" }",
            ),
            (
                "\u{feff}\u{feff}data: {}\n\ndata: 2",
                "Event { name: None, data: \"2\" }",
            ),
            (
                "\u{feff}\u{feff}\u{feff}{\"a\":1}",
                "Value(\"{\\\"a\\\":1}\")",
            ),
            (
                "version: 2\nevent: x\ndata: {}\n\n",
                "Event { name: Some(\"x\"), data: \"{}\" }",
            ),
            ("dataset: 1\n\ndata: 2", "Event { name: None, data: \"2\" }"),
            (
                "data: {}\n{\"error\":\n{}}",
                "Event { name: None, data: \"{}\" }, Value(\"{\\\"error\\\":\\n{}}\")",
            ),
            (
                "upstream error\nid: 7\n",
                "Foreign { text: \"upstream error\\nid: 7\\n\", html: false }",
            ),
            (
                "\u{feff}<html>\ndata: 1",
                "Foreign { text: \"\\u{feff}<html>\\ndata: 1\", html: true }",
            ),
        ] {
            assert_eq!(frames(&[body.as_bytes()]).join(", "), first, "{body}");
            let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
            assert_eq!(frames(&single).join(", "), first, "{body}");
        }
        assert!(frames(&[b"", b" \n"]).is_empty());
    }

    #[test]
    fn white_space_before_the_first_frame_counts_and_is_not_kept() {
        for body in [
            "\u{feff}\u{feff}   \u{feff}\n\ndata: 1\n\ndata: 2\n\n",
            "\n\u{feff}data: 1\n\ndata: 2\n\n",
            "\u{feff}\u{feff}data: 1\n\ndata: 2\n\n",
            "\u{feff} \n  \t\r\n data: 1\n\ndata: 2\n\n",
            "\n\n\n\ndata: 1\n\n",
            "          {\"a\":1}",
            " \r \n <html>",
        ] {
            let bytes = body.as_bytes();
            for limit in 0..20 {
                let whole = limited(&[bytes], limit);
                assert_eq!(
                    whole.last().is_some_and(|last| last == "TooLong"),
                    whole.contains(&"TooLong".to_owned())
                );
                for step in 1..bytes.len() {
                    assert_eq!(
                        limited(&bytes.chunks(step).collect::<Vec<_>>(), limit),
                        whole,
                        "{body:?} {limit} {step}"
                    );
                }
            }
        }
        let mut framing = Framing::new(usize::MAX);
        for piece in [" ", "\u{feff}", "\n", "\u{feff} \n "] {
            framing.push(piece.repeat(1000).as_bytes(), &mut |_| {});
            let BodyForm::Start(kept, _) = &framing.mode else {
                panic!("nothing is decided")
            };
            assert!(kept.len() <= MARK.len(), "{kept:?}");
        }
    }

    #[test]
    fn a_page_without_end_is_given_once() {
        let page = [b'x'; 1000];
        assert_eq!(frames(&[&page[..]; 100]).len(), 1);
        assert_eq!(frames(&[&page[..]; 100]), frames(&[&[b'x'; 100_000][..]]));
    }

    fn compressed(body: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn a_compressed_body_is_the_body_however_its_bytes_come() {
        let body = b"data: {\"a\":1}\n\nevent: x\ndata: {}\n\ndata: [DONE]\n\n";
        let want = frames(&[body]);
        assert_eq!(want.len(), 3);
        let bytes = compressed(body);
        // A gzip file may have several members in a row.
        for bytes in [
            bytes.clone(),
            [compressed(&body[..20]), compressed(&body[20..])].concat(),
        ] {
            for step in 1..bytes.len() {
                assert_eq!(
                    frames(&bytes.chunks(step).collect::<Vec<_>>()),
                    want,
                    "{step}"
                );
            }
        }
        for cut in 3..bytes.len() {
            let got = frames(&[&bytes[..cut]]);
            assert!(
                got.last().is_some_and(|last| last.starts_with("Damaged")),
                "{cut}: {got:?}"
            );
        }
        let mut wrong = bytes.clone();
        let middle = bytes.len() / 2;
        wrong[middle] ^= 0x55;
        assert!(
            frames(&[&wrong])
                .iter()
                .any(|frame| frame.starts_with("Damaged"))
        );
        // A body that was compressed twice is only decompressed once.
        let twice = frames(&[&compressed(&compressed(&body.repeat(100)))]);
        assert!(twice[0].starts_with("Foreign"), "{twice:?}");
    }

    #[test]
    fn a_compressed_body_without_end_ends_at_the_limit() {
        let line = [b"data: ".as_slice(), &vec![b'x'; 8 << 20]].concat();
        let bytes = compressed(&line);
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        let mut framing = Framing::new(64 << 10);
        let mut out = Vec::new();
        for piece in bytes.chunks(4096) {
            framing.push(piece, &mut |frame| out.push(format!("{frame:?}")));
            assert!(!matches!(&framing.mode, BodyForm::Gzip(both) if both.0.room() > 2 << 20));
        }
        framing.finish(&mut |frame| out.push(format!("{frame:?}")));
        assert_eq!(out, ["TooLong"]);
    }
}

/// The first bytes of a gzip body: the magic number, and deflate as the only compression method.
pub(crate) const MAGIC: &[u8] = b"\x1f\x8b\x08";

/// How many bytes are decompressed in one step. One byte expands to at most 1,032 bytes, so a step
/// produces at most about a megabyte.
const STEP: usize = 1024;

/// Decompresses a body as it arrives.
#[derive(Debug)]
pub(crate) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    is_damaged: bool,
}

impl Gzip {
    /// Creates a decompressor.
    pub(crate) fn new() -> Gzip {
        Gzip {
            decoder: MultiGzDecoder::new(Vec::new()),
            is_damaged: false,
        }
    }

    /// Decompresses the next bytes. Passes the output to `on` in pieces until `on` returns `false`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        on: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Error> {
        for step in bytes.chunks(STEP) {
            if self.is_damaged {
                return Ok(());
            }
            let written = self.decoder.write_all(step);
            if !self.give(on) {
                return Ok(());
            }
            self.checked(written)?;
        }
        Ok(())
    }

    /// Handles the end of the body.
    pub(crate) fn finish(&mut self, on: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        if self.is_damaged {
            return Ok(());
        }
        let finished = self.decoder.try_finish();
        self.give(on);
        self.checked(finished)
    }

    fn give(&mut self, on: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let text = self.decoder.get_mut();
        let goes_on = on(text);
        text.clear();
        goes_on
    }

    fn checked(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        self.is_damaged |= result.is_err();
        result
    }

    /// Returns the size of the output buffer, in bytes.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.decoder.get_ref().capacity()
    }
}
