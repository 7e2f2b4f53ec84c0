//! The lines that leave: those of a block that pass, and new ones; and who takes those that come.

use crate::{Failure, Output, message};
use event::payload::{Error, Warning};
use event::{Event, Kind, Payload, payload};
use std::path::PathBuf;

/// How a command reads its input and writes its output.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The command's name, for messages and warnings.
    pub command: &'static str,
    /// The operands; without any, standard input.
    pub files: Vec<PathBuf>,
    /// `--no-time`: events that this command writes have no `t`.
    pub no_time: bool,
    /// `--strict`: a line that is not an event ends the command with 2.
    pub strict: bool,
    /// `--max-line`, in bytes.
    pub max_line: usize,
    /// What is written.
    pub emit: Emit,
    /// Stop reading at the first machine that is settled.
    pub stop_when_settled: bool,
    /// SIGINT does not end the command: its input ends by itself after the signal.
    pub ignore_interrupts: bool,
}

/// What a filter writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// The lines that pass, and new events.
    #[default]
    Events,
    /// Only the lines of [`RawLines`](crate::RawLines).
    Lines,
    /// Nothing: only the answers of the machines are wanted.
    Nothing,
}

/// Takes each line of the input: the machines of a filter, a view, or a command that needs more
/// than those get.
pub trait LineHandler {
    /// The event of the line `at.0..at.1` of the block. Returns whether the answer is known.
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool;
    /// A blank line.
    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>);
    /// A line that is not an event, before it is reported; returns whether the handler can read it
    /// nevertheless.
    fn other_line(&mut self, _: &str, _: &mut LineWriter<'_>) -> bool {
        false
    }
    /// The warning that takes the place of a line that is not an event.
    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>);
    /// A signal asks the command to end; returns whether the handler needs the rest of its input
    /// nevertheless.
    fn interrupt(&mut self, _: &mut LineWriter<'_>) -> bool {
        false
    }
    /// The input has ended.
    fn finish(&mut self, out: &mut LineWriter<'_>);
}

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
        let text = too_long_text(kind.name(), length);
        message(self.options.command, &text);
        self.lost = true;
        self.put_event(&too_long(self.options, &text).into(), stream, choice, t);
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

/// The error that `message` describes.
pub(crate) fn too_long<'a>(options: &Filter, message: &'a str) -> Error<'a> {
    Error::new(options.command, "line_too_long", message)
}

/// The message for an event that is too long to be written.
pub(crate) fn too_long_text(kind: &str, length: usize) -> String {
    format!(
        "a {kind} of {length} bytes is longer than --max-line, so the turn has failed; raise \
         --max-line here and in the commands behind"
    )
}
