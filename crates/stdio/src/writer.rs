//! Writes the output: the lines of a block that are forwarded, and new events. Also has the trait
//! that receives the input.

use crate::{Failure, Output, message};
use event::payload::{Error, Warning};
use event::{Event, Kind, Payload};
use std::path::PathBuf;

/// How a command reads its input and writes its output.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The command's name, for messages and warnings.
    pub command: &'static str,
    /// The operands. Standard input is read if there are none.
    pub files: Vec<PathBuf>,
    /// `--no-time`: events written by this command have no `t`.
    pub no_time: bool,
    /// `--strict`: a line that is not an event ends the command with status 2.
    pub strict: bool,
    /// `--max-line`, in bytes.
    pub max_line: usize,
    /// Which output is written.
    pub emit: Emit,
    /// Whether to stop reading at the first machine that is settled.
    pub stop_when_settled: bool,
    /// Whether SIGINT does not end the command, because its input ends by itself after the signal.
    pub ignore_interrupts: bool,
}

/// The output that a filter writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// Forwarded lines, and new events.
    #[default]
    Events,
    /// Only the lines of [`RawLines`](crate::RawLines).
    Lines,
    /// Nothing, because only the answers of the machines are needed.
    Nothing,
}

/// Receives each line of the input. Implemented by the machines of a filter, by a view, and by
/// commands that need more control.
pub trait LineHandler {
    /// Takes the event of the line `at.0..at.1` of the block. Returns whether the answer is known.
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool;
    /// Takes a blank line.
    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>);
    /// Takes a line that is not an event, before it is reported. Returns whether the handler could
    /// read it nevertheless.
    fn other_line(&mut self, _: &str, _: &mut LineWriter<'_>) -> bool {
        false
    }
    /// Takes the warning that replaces a line that is not an event.
    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>);
    /// Handles a signal that asks the command to end. Returns whether the handler needs the rest of
    /// its input nevertheless.
    fn interrupt(&mut self, _: &mut LineWriter<'_>) -> bool {
        false
    }
    /// Handles the end of the input.
    fn finish(&mut self, out: &mut LineWriter<'_>);
}

/// Writes the forwarded lines of one block, with new events between them. Adjacent forwarded lines
/// are copied at once.
#[derive(Debug)]
pub struct LineWriter<'b> {
    pub(crate) options: &'b Filter,
    stdout: &'b mut Output,
    block: &'b [u8],
    /// The range of forwarded lines that have not been written yet.
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

    /// Forwards the line `at..next` of the block unchanged.
    #[inline]
    pub fn pass(&mut self, at: usize, next: usize) {
        if self.run.1 != at {
            self.put_run();
            self.run.0 = at;
        }
        self.run.1 = next;
    }

    #[inline]
    fn put_run(&mut self) {
        if self.run.0 < self.run.1 {
            self.put_lines();
        }
    }

    #[inline(never)]
    fn put_lines(&mut self) {
        let run = &self.block[self.run.0..self.run.1];
        self.run.0 = self.run.1;
        if self.options.emit != Emit::Events || self.failed.is_some() {
            return;
        }
        let mut result = self.stdout.put(run);
        if run.last() != Some(&b'\n') && result.is_ok() {
            result = self.stdout.put(b"\n"); // the last line of a file that lacks its line feed
        }
        self.failed = result.err();
    }

    /// Writes an event. Returns whether it was too long, so that an `error` was written instead.
    pub fn write<'p>(
        &mut self,
        payload: impl Into<Payload<'p>>,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) -> bool {
        self.put_event(&payload.into(), stream, choice, t)
    }

    /// Like [`LineWriter::write`], for an event that the log of this output already contains.
    /// [`Output::unrecorded`] omits it.
    pub fn write_recorded<'p>(
        &mut self,
        payload: impl Into<Payload<'p>>,
        stream: Option<&str>,
        choice: u32,
    ) {
        self.put_run();
        let from = self.stdout.buffer().len();
        // If the event was too long, the `error` that replaces it is not in the log yet.
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
        let from = self.stdout.buffer().len();
        self.stdout.push_event(payload, stream, choice, t);
        let buffer = self.stdout.buffer();
        let length = buffer.len() - from;
        // Warnings and errors are short, and are written regardless of the limit.
        let too_long = length > self.options.max_line
            && !matches!(payload.kind(), Kind::Warning | Kind::Error);
        if too_long {
            buffer.truncate(from);
            self.put_too_long(payload.kind(), length, stream, choice, t);
            return true;
        }
        buffer.push(b'\n');
        if self.stdout.is_full() {
            self.failed = self.stdout.spill().err();
        }
        false
    }

    /// Reports an event that is not written because it is too long. `length` is its length in
    /// bytes, or a lower bound.
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

    /// Appends the bytes that `fill` writes, which are not necessarily events.
    pub fn text(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.options.emit != Emit::Events || self.failed.is_some() {
            return;
        }
        fill(self.stdout.buffer());
        self.failed = self.stdout.spill().err();
    }

    /// Writes a line of JSON that is not necessarily an event.
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

/// Returns the `error` event with this message.
pub(crate) fn too_long<'a>(options: &Filter, message: &'a str) -> Error<'a> {
    Error::new(options.command, "line_too_long", message)
}

/// Returns the message for an event that is too long to be written.
pub(crate) fn too_long_text(kind: &str, length: usize) -> String {
    format!(
        "a {kind} of {length} bytes is longer than --max-line, so the turn has failed; raise \
         --max-line here and in the commands behind"
    )
}
