//! The lines that leave: those of a block that pass, and new ones.

use crate::{Emit, Failure, Filter, Output, long, message};
use event::{Kind, Payload, payload};

/// Writes the lines of one block that pass, and new events between them. Neighbouring lines that
/// pass are copied as one piece.
#[derive(Debug)]
pub struct LineWriter<'b> {
    pub(crate) options: &'b Filter,
    stdout: &'b mut Output,
    block: &'b [u8],
    /// The lines that pass and are not written yet.
    run: (usize, usize),
    failed: Option<Failure>,
    /// Whether an event was too long to be written.
    pub(crate) lost: bool,
}

impl<'b> LineWriter<'b> {
    pub(crate) fn new(options: &'b Filter, stdout: &'b mut Output, block: &'b [u8]) -> Self {
        LineWriter {
            options,
            stdout,
            block,
            run: (0, 0),
            failed: None,
            lost: false,
        }
    }

    /// Passes the line `at..next` of the block on as it came.
    #[inline]
    pub fn pass(&mut self, at: usize, next: usize) {
        if self.run.1 != at {
            self.put_run();
            self.run.0 = at;
        }
        self.run.1 = next;
    }

    fn put_run(&mut self) {
        let run = &self.block[self.run.0..self.run.1];
        self.run.0 = self.run.1;
        if self.options.emit != Emit::Events || self.failed.is_some() || run.is_empty() {
            return;
        }
        let mut result = self.stdout.put(run);
        if run.last() != Some(&b'\n') && result.is_ok() {
            result = self.stdout.put(b"\n"); // the last line of a file that lacks its line feed
        }
        self.failed = result.err();
    }

    /// Writes an event; returns whether it was too long, so that an `error` was written in its
    /// place.
    pub fn write<'p>(
        &mut self,
        payload: impl Into<Payload<'p>>,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) -> bool {
        self.put_event(&payload.into(), stream, choice, t)
    }

    /// As [`LineWriter::write`], for an event that the log of this output has already:
    /// [`Output::unrecorded`] leaves it out.
    pub fn write_recorded<'p>(
        &mut self,
        payload: impl Into<Payload<'p>>,
        stream: Option<&str>,
        choice: u32,
    ) {
        self.put_run();
        let from = self.stdout.buffer().len();
        // An event that is too long to be written is not in the log: the error in its place is.
        if !self.put_event(&payload.into(), stream, choice, None) {
            self.stdout.mark_recorded(from);
        }
    }

    pub(crate) fn put_event(
        &mut self,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) -> bool {
        self.put_run();
        if self.options.emit != Emit::Events || self.failed.is_some() {
            return false;
        }
        let t = t.filter(|_| !self.options.no_time);
        let buffer = self.stdout.buffer();
        let from = buffer.len();
        payload::line(buffer, payload, stream, choice, t);
        let length = buffer.len() - from;
        // Reports of trouble are short, and are written under any limit.
        let too_long = length > self.options.max_line
            && !matches!(payload.kind(), Kind::Warning | Kind::Error);
        if too_long {
            buffer.truncate(from);
            self.put_too_long(payload.kind(), length, stream, choice, t);
            return true;
        }
        buffer.push(b'\n');
        self.failed = self.stdout.spill().err();
        false
    }

    /// Reports an event that is not written, since it has `length` bytes or more.
    pub(crate) fn put_too_long(
        &mut self,
        kind: Kind,
        length: usize,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) {
        let text = long::text(kind.name(), length);
        message(self.options.command, &text);
        self.lost = true;
        self.put_event(&long::failed(self.options, &text).into(), stream, choice, t);
    }

    /// Appends the bytes that `fill` writes, which need not be events.
    pub fn text(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.options.emit != Emit::Events || self.failed.is_some() {
            return;
        }
        fill(self.stdout.buffer());
        self.failed = self.stdout.spill().err();
    }

    /// Writes a line of JSON that need not be an event.
    pub fn line(&mut self, json: &str) {
        self.put_run();
        if self.failed.is_none() {
            let buffer = self.stdout.buffer();
            buffer.extend_from_slice(json.as_bytes());
            buffer.push(b'\n');
            self.failed = self.stdout.spill().err();
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.put_run();
        self.failed.take().map_or(Ok(()), Err)?;
        self.stdout.flush()
    }

    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.put_run();
        self.failed.map_or(Ok(()), Err)
    }
}
