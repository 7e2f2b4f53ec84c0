//! Blocks of bytes as lines: each is an event, blank, or wrapped in a warning.

use crate::{
    BadLine, BadLines, Block, Emit, Errors, Failure, Filter, LineHandler, LineWriter, Output,
    Piece, long,
};
use event::{Kind, Scanner};

/// Reads blocks of lines into a [`LineHandler`], and counts the lines. [`drive`](crate::drive())
/// uses it; so does a command that waits for more than its input, see
/// [`read_in_thread`](crate::read_in_thread).
#[derive(Debug)]
pub struct LineReader<'o> {
    options: &'o Filter,
    scanner: Scanner,
    number: u64,
    bad: BadLines,
    errors: Errors,
}

impl<'o> LineReader<'o> {
    /// A reader at the beginning of the input.
    pub fn new(options: &'o Filter) -> Self {
        let errors = match options.emit {
            Emit::Events => Errors::passed(options.command),
            _ => Errors::kept(options.command),
        };
        LineReader {
            options,
            scanner: Scanner::default(),
            number: 0,
            bad: BadLines::default(),
            errors,
        }
    }

    /// Whether an `error` event was read or written.
    pub fn has_failed(&self) -> bool {
        self.errors.any()
    }

    /// Takes one piece of the input from [`read_in_thread`](crate::read_in_thread).
    ///
    /// # Errors
    /// See [`Failure`]; a [`Piece::Failed`] is returned as its failure.
    pub fn piece(
        &mut self,
        piece: Piece,
        handler: &mut impl LineHandler,
        stdout: &mut Output,
    ) -> Result<(), Failure> {
        match piece {
            Piece::Lines(lines, file) => self
                .block(Block::Lines(&lines), &file, handler, stdout)
                .map(drop),
            Piece::TooLong(start, length, file) => self
                .block(Block::TooLong(&start, length), &file, handler, stdout)
                .map(drop),
            Piece::Next => {
                self.next_input();
                Ok(())
            }
            Piece::End => self.between(stdout, |out| handler.finish(out)),
            Piece::Failed(failure) => Err(failure),
        }
    }

    /// Lets `write` write events that no line of the input leads to.
    ///
    /// # Errors
    /// [`Failure::Gone`] and [`Failure::Write`].
    pub fn between<T>(
        &mut self,
        stdout: &mut Output,
        write: impl FnOnce(&mut LineWriter<'_>) -> T,
    ) -> Result<T, Failure> {
        let mut out = LineWriter::new(self.options, stdout, b"");
        let result = write(&mut out);
        self.end(out).map(|()| result)
    }

    /// The next block is the first one of another input.
    pub(crate) fn next_input(&mut self) {
        self.number = 0;
    }

    /// Takes one block; returns whether the handler knows its answer and reading may stop.
    pub(crate) fn block(
        &mut self,
        block: Block<'_>,
        file: &str,
        handler: &mut impl LineHandler,
        stdout: &mut Output,
    ) -> Result<bool, Failure> {
        let bytes = match block {
            Block::Lines(bytes) => bytes,
            Block::TooLong(start, length) => {
                let mut out = LineWriter::new(self.options, stdout, start);
                self.number += 1;
                self.bad_line(
                    start,
                    length,
                    file,
                    "longer than --max-line",
                    handler,
                    &mut out,
                )?;
                self.end(out)?;
                return self.lost_line(start, file, handler, stdout).map(|()| false);
            }
        };
        let mut out = LineWriter::new(self.options, stdout, bytes);
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
                self.bad_line(
                    &bytes[at..end],
                    (end - at) as u64,
                    file,
                    "not UTF-8",
                    handler,
                    &mut out,
                )?;
                continue;
            };
            if line.len() > self.options.max_line {
                self.bad_line(
                    line.as_bytes(),
                    line.len() as u64,
                    file,
                    "longer than --max-line",
                    handler,
                    &mut out,
                )?;
                self.end(out)?;
                self.lost_line(line.as_bytes(), file, handler, stdout)?;
                out = LineWriter::new(self.options, stdout, bytes);
                continue;
            }
            match self.scanner.read(line) {
                Ok(event) => {
                    if event.kind() == Kind::Error {
                        self.errors.report(&event);
                    }
                    if handler.event(&event, (at, next), &mut out) && self.options.stop_when_settled
                    {
                        return self.end(out).map(|()| true);
                    }
                }
                Err(_) if line.trim_ascii().is_empty() => handler.blank((at, next), &mut out),
                Err(_) if handler.other_line(line, &mut out) => {}
                Err(e) => self.bad_line(
                    line.as_bytes(),
                    line.len() as u64,
                    file,
                    &e.to_string(),
                    handler,
                    &mut out,
                )?,
            }
        }
        self.end(out).map(|()| false)
    }

    /// An event that was too long to be read is lost, so its stream has failed: the rest of it must
    /// not look complete. A line that cannot have been an event changes nothing.
    #[cold]
    fn lost_line(
        &mut self,
        start: &[u8],
        file: &str,
        handler: &mut impl LineHandler,
        stdout: &mut Output,
    ) -> Result<(), Failure> {
        let Some(line) = long::error(self.options, start, self.number, file) else {
            return Ok(());
        };
        let mut out = LineWriter::new(self.options, stdout, line.as_bytes());
        if let Ok(event) = self.scanner.read(&line) {
            handler.event(&event, (0, line.len()), &mut out);
        }
        self.errors.count();
        self.end(out)
    }

    fn end(&mut self, out: LineWriter<'_>) -> Result<(), Failure> {
        if out.lost {
            self.errors.count();
        }
        out.end()
    }

    /// Hands over the warning that carries a line which is not an event.
    fn bad_line(
        &mut self,
        start: &[u8],
        length: u64,
        file: &str,
        what: &str,
        handler: &mut impl LineHandler,
        out: &mut LineWriter<'_>,
    ) -> Result<(), Failure> {
        if self.options.strict {
            out.flush()?;
        }
        let bad = BadLine {
            file,
            number: self.number,
            start,
            length,
            what,
        };
        self.bad
            .warn(self.options, bad, |warning| handler.bad_line(warning, out))
    }
}
