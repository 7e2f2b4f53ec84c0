//! Splits blocks of bytes into lines. Each line is an event, blank, or wrapped in a warning so that
//! it is not lost. The first few lines that are not events are also reported on standard error. An
//! event that exceeds the maximum length of a line is lost; an `error` reports the loss, so that
//! the rest of the stream does not look like the model's complete answer.

use crate::status::REPORTED;
use crate::writer::too_long;
use crate::{
    Emit, Errors, Failure, Filter, Input, InputBlock, LineHandler, LineWriter, Output, message,
    reader_gone, thread,
};
use base64::Engine;
use event::payload::{self, Warning};
use event::{Kind, Raw, Scanner};
use std::path::PathBuf;

/// The reason given for a line that exceeds the limit.
const TOO_LONG: &str = "longer than --max-line";

/// Reads blocks of lines into a [`LineHandler`], and counts the lines. Used by
/// [`drive`](crate::drive()), and by commands that wait for more than their input (see
/// [`read_in_thread`](crate::read_in_thread)).
#[derive(Debug)]
pub struct LineReader<'o> {
    options: &'o Filter,
    scanner: Scanner,
    number: u64,
    bad: BadLines,
    errors: Errors,
}

impl<'o> LineReader<'o> {
    /// Returns a reader at the start of the input.
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

    /// Returns a reader that reports every error, because the output does not show them.
    pub(crate) fn reporting(options: &'o Filter) -> Self {
        LineReader {
            errors: Errors::kept(options.command),
            ..LineReader::new(options)
        }
    }

    /// Returns the settings of the command.
    pub(crate) fn options(&self) -> &'o Filter {
        self.options
    }

    /// Whether an `error` event was read or written.
    pub fn has_failed(&self) -> bool {
        self.errors.any()
    }

    /// Takes one piece of the input from [`read_in_thread`](crate::read_in_thread).
    ///
    /// # Errors
    /// See [`Failure`]. The failure of an [`InputPiece::Failed`] is returned.
    pub fn piece(
        &mut self,
        piece: InputPiece,
        handler: &mut impl LineHandler,
        stdout: &mut Output,
    ) -> Result<(), Failure> {
        match piece {
            InputPiece::Lines(lines, file) => {
                self.block(InputBlock::Lines(&lines), &file, handler, stdout)?;
            }
            InputPiece::TooLong(start, length, file) => {
                self.block(InputBlock::TooLong(&start, length), &file, handler, stdout)?;
            }
            InputPiece::Next => self.next_input(),
            InputPiece::End => self.between(stdout, |out| handler.finish(out))?,
            InputPiece::Failed(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Calls `write` to write events that are not caused by a line of the input.
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

    /// Resets the line number, because the next block is the first one of another input.
    pub(crate) fn next_input(&mut self) {
        self.number = 0;
    }

    /// Takes one block. Returns whether the handler has its answer, so that reading can stop.
    pub(crate) fn block(
        &mut self,
        block: InputBlock<'_>,
        file: &str,
        handler: &mut impl LineHandler,
        stdout: &mut Output,
    ) -> Result<bool, Failure> {
        let bytes = match block {
            InputBlock::Lines(bytes) => bytes,
            InputBlock::TooLong(start, length) => {
                self.number += 1;
                let mut out = LineWriter::new(self.options, stdout, start);
                self.bad_line((start, length), file, TOO_LONG, handler, &mut out)?;
                self.end(out)?;
                return self.lost_line(start, file, handler, stdout).map(|()| false);
            }
        };
        let mut out = LineWriter::new(self.options, stdout, bytes);
        // The whole block is validated at once; line by line only if it has an invalid byte.
        let text = std::str::from_utf8(bytes).ok();
        let mut next = 0;
        while next < bytes.len() {
            let at = next;
            self.number += 1;
            let alike = text.and_then(|text| self.scanner.read_alike(text, at));
            if let Some((event, end)) = alike.filter(|(_, end)| end - at <= self.options.max_line) {
                next = (end + 1).min(bytes.len());
                if handler.event(&event, (at, next), &mut out) && self.options.stop_when_settled {
                    return self.end(out).map(|()| true);
                }
                continue;
            }
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
            next = (end + 1).min(bytes.len());
            let line = &bytes[at..end];
            let whole = (line, line.len() as u64);
            let text = match text {
                Some(text) => Ok(&text[at..end]),
                None => std::str::from_utf8(line),
            };
            let Ok(text) = text else {
                self.bad_line(whole, file, "not UTF-8", handler, &mut out)?;
                continue;
            };
            if line.len() > self.options.max_line {
                self.bad_line(whole, file, TOO_LONG, handler, &mut out)?;
                self.end(out)?;
                self.lost_line(line, file, handler, stdout)?;
                out = LineWriter::new(self.options, stdout, bytes);
                continue;
            }
            match self.scanner.read(text) {
                Ok(event) => {
                    if event.kind() == Kind::Error {
                        self.errors.report(&event);
                    }
                    if handler.event(&event, (at, next), &mut out) && self.options.stop_when_settled
                    {
                        return self.end(out).map(|()| true);
                    }
                }
                Err(_) if text.trim_ascii().is_empty() => handler.blank((at, next), &mut out),
                Err(_) if handler.other_line(text, &mut out) => {}
                Err(e) => self.bad_line(whole, file, &e.to_string(), handler, &mut out)?,
            }
        }
        self.end(out).map(|()| false)
    }

    /// Handles a line that was too long to be read. If the line could have been an event, its
    /// stream has failed, because the rest must not look complete. Any other line has no effect.
    #[cold]
    fn lost_line(
        &mut self,
        start: &[u8],
        file: &str,
        handler: &mut impl LineHandler,
        stdout: &mut Output,
    ) -> Result<(), Failure> {
        let Some(line) = long_line(self.options, start, self.number, file) else {
            return Ok(());
        };
        let mut out = LineWriter::new(self.options, stdout, line.as_bytes());
        if let Ok(event) = self.scanner.read(line.trim_end_matches('\n')) {
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

    /// Hands the handler a warning that contains a line that is not an event.
    fn bad_line(
        &mut self,
        (start, length): (&[u8], u64),
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

/// The maximum number of bytes of a bad line that its warning contains.
const CARRIED: usize = 64 * 1024;

/// A line that is not an event.
#[derive(Clone, Copy, Debug)]
pub struct BadLine<'a> {
    /// The name of the line's input.
    pub file: &'a str,
    /// The 1-based line number in that input.
    pub number: u64,
    /// The bytes of the line, or its start.
    pub start: &'a [u8],
    /// The length of the whole line in bytes, without the line feed.
    pub length: u64,
    /// The reason, as the end of the sentence "not an event: …".
    pub what: &'a str,
}

/// Counts the lines of a run that are not events.
#[derive(Clone, Copy, Debug, Default)]
pub struct BadLines {
    seen: u64,
}

impl BadLines {
    /// Reports a bad line, and calls `put` with the warning that replaces the line in the stream.
    ///
    /// # Errors
    /// [`Failure::Strict`] with `--strict`. The caller must write the preceding lines first.
    pub fn warn(
        &mut self,
        options: &Filter,
        BadLine {
            file,
            number,
            start,
            length,
            what,
        }: BadLine<'_>,
        put: impl FnOnce(&Warning<'_>),
    ) -> Result<(), Failure> {
        if options.strict {
            return Err(Failure::Strict {
                file: file.to_owned(),
                line: number,
                what: what.to_owned(),
            });
        }
        self.seen += 1;
        if self.seen <= REPORTED {
            let more = if self.seen == REPORTED {
                "; further ones are only in the stream"
            } else {
                ""
            };
            let text = format!(
                "{file}, line {number}: not an event ({what}), passed on as a warning{more}"
            );
            message(options.command, &text);
        }
        let mut kept = &start[..start.len().min(CARRIED)];
        if let Err(e) = std::str::from_utf8(kept)
            && e.error_len().is_none()
        {
            kept = &kept[..e.valid_up_to()]; // the cut is inside a character
        }
        let text = String::from_utf8_lossy(kept);
        let exact = matches!(text, std::borrow::Cow::Borrowed(_));
        let base64 = (!exact).then(|| base64::engine::general_purpose::STANDARD.encode(kept));
        let message = format!("line {number} of {file} is not an event: {what}");
        put(&Warning {
            raw: Some((&text).into()),
            raw_bytes: (kept.len() as u64 != length || !exact).then_some(length),
            raw_base64: base64.as_ref().map(Into::into),
            line: Some(number),
            ..Warning::new(options.command, "not_an_event", &message)
        });
        Ok(())
    }
}

/// Returns the error event, with its line feed, for a line that starts with `start` and was too
/// long to be read. Returns `None` if the line cannot have been an event.
fn long_line(options: &Filter, start: &[u8], number: u64, file: &str) -> Option<String> {
    let start = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&start[..e.valid_up_to()]).unwrap_or_default(),
    };
    if !start.trim_ascii_start().starts_with('{') {
        return None;
    }
    // Commands write the name of the stream before the other fields, so it is at the start of the
    // line.
    let stream = Raw::members_of_cut(start).find(|(key, value)| key == "stream" && value.is_str());
    let message = format!(
        "line {number} of {file} is longer than --max-line, so an event of the stream is lost; \
         raise --max-line"
    );
    let mut line = Vec::new();
    payload::line(
        &mut line,
        &too_long(options, &message).into(),
        stream.as_ref().map(|(_, value)| value.text()),
        0,
        None,
    );
    line.push(b'\n');
    String::from_utf8(line).ok()
}

/// A piece of the input that [`read_in_thread`] sends.
#[derive(Debug)]
pub enum InputPiece {
    /// Whole lines, and the name of their input.
    Lines(Vec<u8>, Box<str>),
    /// The start of a line that is too long, its length in bytes, and the name of its input.
    TooLong(Vec<u8>, u64, Box<str>),
    /// The end of an input that is followed by another one.
    Next,
    /// The end of all inputs.
    End,
    /// Reading failed, or the reader of standard output has exited.
    Failed(Failure),
}

/// Opens and reads the inputs in a thread. The thread calls `send` with each piece; `send` blocks
/// until the command has room, and returns whether it wants more. After [`InputPiece::End`] the
/// thread waits until the reader of standard output exits.
///
/// # Errors
/// [`Failure::Limit`] if the thread cannot be started. Any other failure is sent as a piece.
pub fn read_in_thread(
    files: Vec<PathBuf>,
    max_line: usize,
    mut send: impl FnMut(InputPiece) -> bool + Send + 'static,
) -> Result<(), Failure> {
    thread(move || {
        let failure = match read(&files, max_line, &mut send) {
            Ok(wanted) if !wanted || !send(InputPiece::End) || !reader_gone(None) => return,
            Ok(_) => Failure::Gone,
            Err(failure) => failure,
        };
        send(InputPiece::Failed(failure));
    })
}

/// Reads to the end of all inputs. Returns `false` if `send` wanted no more.
fn read(
    files: &[PathBuf],
    max_line: usize,
    send: &mut impl FnMut(InputPiece) -> bool,
) -> Result<bool, Failure> {
    let mut input = Input::open(files, max_line)?;
    loop {
        let name = input.now();
        let piece = match input.block(None, &mut || Ok(()))? {
            Some(InputBlock::Lines(lines)) => InputPiece::Lines(lines.to_vec(), Box::from(&*name)),
            Some(InputBlock::TooLong(start, length)) => {
                InputPiece::TooLong(start.to_vec(), length, Box::from(&*name))
            }
            None => InputPiece::Next,
        };
        if matches!(piece, InputPiece::Next) && !input.advance() {
            return Ok(true);
        }
        if !send(piece) {
            return Ok(false);
        }
    }
}
