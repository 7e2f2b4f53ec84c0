//! The driver: blocks of bytes in, a machine for each stream, blocks of bytes out.

use crate::{BadLine, BadLines, Block, Demux, Errors, Failure, Input, Output, Piece, Signals, Status, long, message};
use event::payload::{self, Warning};
use event::{Event, Kind, Machine, Payload, Scanner, Sink};
use std::path::PathBuf;

/// How a filter reads, whatever it does.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The command's name, for messages and warnings.
    pub command: &'static str,
    /// The operands; none is standard input.
    pub files: Vec<PathBuf>,
    /// `--no-time`: events that this command writes have no `t`.
    pub no_time: bool,
    /// `--strict`: a line that is no event ends the command with 2.
    pub strict: bool,
    /// `--max-line`, in bytes.
    pub max_line: usize,
    /// What is written.
    pub emit: Emit,
    /// Stop reading at the first machine that is settled.
    pub stop_when_settled: bool,
    /// SIGINT does not end the command: what is read ends by itself after it.
    pub ignore_interrupts: bool,
}

/// What a filter writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// The lines that pass, and new events.
    #[default]
    Events,
    /// Only what its machines write with [`Sink::line`].
    Lines,
    /// Nothing: only the machines' answers matter.
    Nothing,
}

/// How the run of a filter ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Whether an `error` event passed or was written, which makes a status of 0 or 1 a 2.
    pub error: bool,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Outcome {
    /// The exit status of a command whose own answer is `answer`.
    pub fn status(self, answer: Status) -> Status {
        match self {
            Outcome { signal: Some(n), .. } => Status::Signal(n),
            Outcome { error: true, .. } if answer != Status::Undecided => Status::Error,
            _ => answer,
        }
    }
}

/// Runs a machine for each stream of the input until it ends, the answer is known, or a signal comes.
///
/// # Errors
/// See [`Failure`]. On [`Failure::Gone`] the command ends silently with 0.
pub fn filter<M: Machine>(options: &Filter, machines: &mut Demux<M>) -> Result<Outcome, Failure> {
    drive(options, machines)
}

/// What the driver hands each line to: the machines of a filter, a view, or a command that needs more than those get.
pub trait Stage {
    /// The event of the line `at.0..at.1` of the block. Gives whether the answer is known.
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), copy: &mut Copy<'_>) -> bool;
    /// A blank line.
    fn blank(&mut self, at: (usize, usize), copy: &mut Copy<'_>);
    /// A line that is not an event, before it is reported as one; gives whether the stage reads it nevertheless.
    fn other_line(&mut self, _: &str, _: &mut Copy<'_>) -> bool {
        false
    }
    /// A line that is no event.
    fn bad_line(&mut self, warning: &Warning<'_>, copy: &mut Copy<'_>);
    /// A signal asks the command to end; gives whether the stage needs its input up to the end nevertheless.
    fn interrupt(&mut self, _: &mut Copy<'_>) -> bool {
        false
    }
    /// The input has ended.
    fn finish(&mut self, copy: &mut Copy<'_>);
}

impl<M: Machine> Stage for Demux<M> {
    // Called for each line, and once more where a line was lost: without this the second call costs the first its inlining.
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), copy: &mut Copy<'_>) -> bool {
        let (stream, t) = (event.stream().map(|s| s.text()), event.t().map(|t| t.text()));
        self.push(event, &mut Here { copy, at, stream, t, lost: false })
    }

    fn blank(&mut self, at: (usize, usize), copy: &mut Copy<'_>) {
        copy.pass(at.0, at.1);
    }

    fn bad_line(&mut self, warning: &Warning<'_>, copy: &mut Copy<'_>) {
        copy.write(*warning, None, 0, None);
    }

    fn finish(&mut self, copy: &mut Copy<'_>) {
        for (stream, mut machine) in self.drain() {
            machine.finish(&mut Here { copy, at: (0, 0), stream: stream.as_deref(), t: None, lost: false });
        }
    }
}

/// Reads all input into `stage`; the rules of reading, flushing and ending are those of [`filter`].
///
/// # Errors
/// See [`Failure`].
pub fn drive(options: &Filter, stage: &mut impl Stage) -> Result<Outcome, Failure> {
    let mut input = Input::open(&options.files, options.max_line)?;
    let signals = if options.ignore_interrupts { Signals::without_interrupt()? } else { Signals::new()? };
    let mut stdout = Output::new();
    let mut reader = Reader::new(options);
    let mut stopped = false;
    // After a signal: whether the stage needs the rest. Another signal ends the process wherever it is.
    let mut needs_rest = None;
    loop {
        while !stopped {
            let file = input.now();
            let heeded = Some(&signals).filter(|_| needs_rest != Some(true));
            let block = input.block(heeded, &mut || stdout.flush())?;
            if needs_rest.is_none() && signals.seen().is_some() {
                needs_rest = Some(reader.between(&mut stdout, |copy| stage.interrupt(copy))?);
                if block.is_none() && needs_rest == Some(true) {
                    continue;
                }
            }
            if signals.interrupted() {
                reader.between(&mut stdout, |copy| stage.interrupt(copy))?;
            }
            let Some(block) = block else { break };
            stopped = reader.block(block, &file, stage, &mut stdout)?;
        }
        if stopped || signals.seen().is_some() || !input.advance() {
            break;
        }
        reader.number = 0;
    }
    reader.between(&mut stdout, |copy| stage.finish(copy))?;
    stdout.flush()?;
    Ok(Outcome { error: reader.has_failed(), signal: signals.seen() })
}

/// Reads blocks of lines into a [`Stage`], and counts the lines. [`drive`] does this with all input; a command that waits for more
/// than its input calls it itself, see [`read_in_thread`](crate::read_in_thread).
#[derive(Debug)]
pub struct Reader<'o> {
    options: &'o Filter,
    scanner: Scanner,
    number: u64,
    bad: BadLines,
    errors: Errors,
}

impl<'o> Reader<'o> {
    /// A reader at the beginning of the input.
    pub fn new(options: &'o Filter) -> Self {
        let errors = match options.emit {
            Emit::Events => Errors::passed(options.command),
            _ => Errors::kept(options.command),
        };
        Reader { options, scanner: Scanner::default(), number: 0, bad: BadLines::default(), errors }
    }

    /// Whether an `error` event was read or written.
    pub fn has_failed(&self) -> bool {
        self.errors.any()
    }

    /// Takes one piece of the input that [`read_in_thread`](crate::read_in_thread) gave.
    ///
    /// # Errors
    /// See [`Failure`]; that of a [`Piece::Failed`] too.
    pub fn piece(&mut self, piece: Piece, stage: &mut impl Stage, stdout: &mut Output) -> Result<(), Failure> {
        match piece {
            Piece::Lines(lines, file) => self.block(Block::Lines(&lines), &file, stage, stdout).map(drop),
            Piece::TooLong(start, length, file) => {
                self.block(Block::TooLong(&start, length), &file, stage, stdout).map(drop)
            }
            Piece::Next => {
                self.number = 0;
                Ok(())
            }
            Piece::End => self.between(stdout, |copy| stage.finish(copy)),
            Piece::Failed(failure) => Err(failure),
        }
    }

    /// Writes what no line of the input leads to.
    ///
    /// # Errors
    /// [`Failure::Gone`] and [`Failure::Write`].
    pub fn between<T>(&mut self, stdout: &mut Output, write: impl FnOnce(&mut Copy<'_>) -> T) -> Result<T, Failure> {
        let mut copy = Copy::new(self.options, stdout, b"");
        let given = write(&mut copy);
        self.end(copy).map(|()| given)
    }

    /// Takes one block; gives whether to stop.
    fn block(
        &mut self,
        block: Block<'_>,
        file: &str,
        stage: &mut impl Stage,
        stdout: &mut Output,
    ) -> Result<bool, Failure> {
        let bytes = match block {
            Block::Lines(bytes) => bytes,
            Block::TooLong(start, length) => {
                let mut copy = Copy::new(self.options, stdout, start);
                self.number += 1;
                self.bad_line(start, length, file, "longer than --max-line", stage, &mut copy)?;
                self.end(copy)?;
                return self.lost_line(start, file, stage, stdout).map(|()| false);
            }
        };
        let mut copy = Copy::new(self.options, stdout, bytes);
        // One check for the whole block; only a block with a bad byte is checked line by line.
        let text = std::str::from_utf8(bytes).ok();
        let mut next = 0;
        while next < bytes.len() {
            let at = next;
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
            next = (end + 1).min(bytes.len());
            self.number += 1;
            let line = match text {
                Some(text) => Ok(&text[at..end]),
                None => std::str::from_utf8(&bytes[at..end]),
            };
            let Ok(line) = line else {
                self.bad_line(&bytes[at..end], (end - at) as u64, file, "not UTF-8", stage, &mut copy)?;
                continue;
            };
            if line.len() > self.options.max_line {
                self.bad_line(line.as_bytes(), line.len() as u64, file, "longer than --max-line", stage, &mut copy)?;
                self.end(copy)?;
                self.lost_line(line.as_bytes(), file, stage, stdout)?;
                copy = Copy::new(self.options, stdout, bytes);
                continue;
            }
            match self.scanner.read(line) {
                Ok(event) => {
                    if event.kind() == Kind::Error {
                        self.errors.report(&event);
                    }
                    if stage.event(&event, (at, next), &mut copy) && self.options.stop_when_settled {
                        return self.end(copy).map(|()| true);
                    }
                }
                Err(_) if line.trim_ascii().is_empty() => stage.blank((at, next), &mut copy),
                Err(_) if stage.other_line(line, &mut copy) => {}
                Err(e) => self.bad_line(line.as_bytes(), line.len() as u64, file, &e.to_string(), stage, &mut copy)?,
            }
        }
        self.end(copy).map(|()| false)
    }

    /// An event that was too long to be read is lost, so its stream has failed: what is left of it must not look whole. The line
    /// may also have been something else than an event.
    #[cold]
    fn lost_line(
        &mut self,
        start: &[u8],
        file: &str,
        stage: &mut impl Stage,
        stdout: &mut Output,
    ) -> Result<(), Failure> {
        let Some(line) = long::error(self.options, start, self.number, file) else { return Ok(()) };
        let mut copy = Copy::new(self.options, stdout, line.as_bytes());
        if let Ok(event) = self.scanner.read(&line) {
            stage.event(&event, (0, line.len()), &mut copy);
        }
        self.errors.count();
        self.end(copy)
    }

    fn end(&mut self, copy: Copy<'_>) -> Result<(), Failure> {
        if copy.lost {
            self.errors.count();
        }
        copy.end()
    }

    /// A line that is no event: it goes on inside a warning.
    fn bad_line(
        &mut self,
        start: &[u8],
        length: u64,
        file: &str,
        what: &str,
        stage: &mut impl Stage,
        copy: &mut Copy<'_>,
    ) -> Result<(), Failure> {
        if self.options.strict {
            copy.flush()?;
        }
        let bad = BadLine { file, number: self.number, start, length, what };
        self.bad.warn(self.options, bad, |warning| stage.bad_line(warning, copy))
    }
}

/// One block on its way out: lines that pass one after the other leave it as one piece.
#[derive(Debug)]
pub struct Copy<'b> {
    options: &'b Filter,
    stdout: &'b mut Output,
    block: &'b [u8],
    run: (usize, usize),
    failed: Option<Failure>,
    /// An event was too long to be written.
    lost: bool,
}

impl<'b> Copy<'b> {
    fn new(options: &'b Filter, stdout: &'b mut Output, block: &'b [u8]) -> Self {
        Copy { options, stdout, block, run: (0, 0), failed: None, lost: false }
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

    /// Writes an event; gives whether it was too long, and an `error` was written in its place.
    pub fn write<'p>(
        &mut self,
        payload: impl Into<Payload<'p>>,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) -> bool {
        self.put_event(&payload.into(), stream, choice, t)
    }

    fn put_event(&mut self, payload: &Payload<'_>, stream: Option<&str>, choice: u32, t: Option<&str>) -> bool {
        self.put_run();
        if self.options.emit != Emit::Events || self.failed.is_some() {
            return false;
        }
        let t = t.filter(|_| !self.options.no_time);
        let buffer = self.stdout.buffer();
        let from = buffer.len();
        payload::line(buffer, payload, stream, choice, t);
        let length = buffer.len() - from;
        // What warns of trouble is short, and is written whatever the limit is.
        let too_long = length > self.options.max_line && !matches!(payload.kind(), Kind::Warning | Kind::Error);
        if too_long {
            let text = long::text(payload.kind().name(), length);
            message(self.options.command, &text);
            buffer.truncate(from);
            let error = long::failed(self.options, &text);
            payload::line(buffer, &error.into(), stream, choice, t);
            self.lost = true;
        }
        buffer.push(b'\n');
        self.failed = self.stdout.spill().err();
        too_long
    }

    /// Appends what `fill` writes, whatever it is.
    pub fn text(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.options.emit != Emit::Events || self.failed.is_some() {
            return;
        }
        fill(self.stdout.buffer());
        self.failed = self.stdout.spill().err();
    }

    /// Writes a line that need not be an event.
    pub fn line(&mut self, json: &str) {
        self.put_run();
        if self.failed.is_none() {
            let buffer = self.stdout.buffer();
            buffer.extend_from_slice(json.as_bytes());
            buffer.push(b'\n');
            self.failed = self.stdout.spill().err();
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.put_run();
        self.failed.take().map_or(Ok(()), Err)?;
        self.stdout.flush()
    }

    fn end(mut self) -> Result<(), Failure> {
        self.put_run();
        self.failed.map_or(Ok(()), Err)
    }
}

/// The sink that a machine sees: the line at hand, and where it goes.
struct Here<'h, 'b> {
    copy: &'h mut Copy<'b>,
    at: (usize, usize),
    stream: Option<&'h str>,
    t: Option<&'h str>,
    lost: bool,
}

impl Sink for Here<'_, '_> {
    fn line(&mut self, json: &str) {
        if self.copy.options.emit != Emit::Nothing {
            self.copy.line(json);
        }
    }

    #[inline]
    fn pass(&mut self) {
        self.copy.pass(self.at.0, self.at.1);
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.lost |= self.copy.put_event(payload, self.stream, choice, self.t);
    }

    fn lost(&self) -> bool {
        self.lost
    }
}
