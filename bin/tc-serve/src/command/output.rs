//! What a command writes: events to its standard output, and lines to its standard error, which go to
//! the standard error of this process.

use crate::log::{LogLine, Notices};
use crate::pipe::Pipe;
use event::payload::Warning;
use event::{Scanner, Sink};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

/// The longest line that is read, in bytes.
const LINE: usize = 16 << 20;
/// How many lines that are not events are reported for each answer.
const REPORTED: u64 = 10;

/// The lines that a command writes, as events.
#[derive(Debug)]
pub(super) struct CommandOutput {
    lines: LineCutter,
    state: OutputState,
}

#[derive(Debug)]
struct OutputState {
    scanner: Scanner,
    number: u64,
    bad: u64,
    has_stream: bool,
    log: RequestLog,
}

impl CommandOutput {
    /// The output of a command before its first byte. `log` gets what is wrong with it.
    pub(super) fn new(log: RequestLog) -> CommandOutput {
        CommandOutput {
            lines: LineCutter::new(LINE),
            state: OutputState {
                scanner: Scanner::default(),
                number: 0,
                bad: 0,
                has_stream: false,
                log,
            },
        }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8], pipe: &Pipe) {
        let CommandOutput { lines, state } = self;
        lines.push(bytes, |line| state.line(line, pipe));
        pipe.set_kept(lines.kept());
    }

    /// Handles the end of the bytes.
    pub(super) fn finish(&mut self, pipe: &Pipe) {
        let CommandOutput { lines, state } = self;
        lines.finish(|line| state.line(line, pipe));
    }

    /// Whether an event of a stream came.
    pub(super) fn has_stream(&self) -> bool {
        self.state.has_stream
    }
}

impl OutputState {
    fn line(&mut self, line: Line<'_>, pipe: &Pipe) {
        self.number += 1;
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(start) => {
                // It may have been an event, and without that event the answer must not look
                // complete.
                if start.trim_ascii_start().starts_with(b"{") {
                    let message = format!(
                        "line {} of the command's output is too long to be read",
                        self.number
                    );
                    self.log.line(&message);
                    self.has_stream = true;
                    pipe.fail("line_too_long", &message, 502, None);
                }
                return self.bad_line("it is too long", pipe);
            }
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.bad_line("it is not UTF-8", pipe);
        };
        match self.scanner.read(text) {
            Ok(event) => {
                self.has_stream |= event.kind().begins_stream();
                pipe.push(&event);
            }
            Err(_) if text.trim_ascii().is_empty() => {}
            Err(error) => {
                let why = error.to_string();
                self.bad_line(&why, pipe);
            }
        }
    }

    fn bad_line(&mut self, why: &str, pipe: &Pipe) {
        self.bad += 1;
        if self.bad > REPORTED {
            return;
        }
        let more = if self.bad == REPORTED {
            "; further ones are not reported"
        } else {
            ""
        };
        let message = format!(
            "line {} of the command's output is not an event: {why}{more}",
            self.number
        );
        self.log.line(&message);
        let sink: &mut dyn Sink = &mut &*pipe;
        sink.emit(0, Warning::new("tc-serve", "not_an_event", &message));
    }
}

/// The longest line that is shown, in bytes. The rest of a longer line is left out.
const SHOWN_LINE: usize = 4096;
/// How much of each request is shown, in bytes.
const SHOWN: usize = 64 << 10;

/// The standard error of one command.
#[derive(Debug)]
pub(crate) struct CommandErrors {
    pipe: Option<ChildStderr>,
    lines: LineCutter,
    request: RequestLog,
}

/// What one request writes to standard error.
#[derive(Clone, Debug)]
pub(crate) struct RequestLog {
    notices: Notices,
    id: Arc<str>,
    /// How much of it may still be shown, in bytes.
    left: usize,
}

impl RequestLog {
    /// The notices about the request `id`.
    pub(crate) fn new(notices: Notices, id: &str) -> RequestLog {
        RequestLog {
            notices,
            id: id.into(),
            left: SHOWN,
        }
    }

    /// Notes what is wrong with the command.
    pub(super) fn line(&mut self, text: &str) {
        if self.has_room(text) {
            self.warn(text);
        }
    }

    /// Shows a line that the command wrote.
    fn shown(&mut self, text: &str) {
        if self.has_room(text) {
            let request = &self.id;
            self.notices.write(LogLine::Command { request, text });
        }
    }

    fn warn(&self, message: &str) {
        self.notices.write(LogLine::Warning {
            code: "command",
            message,
            request: Some(&self.id),
        });
    }

    /// Whether a line of `text` may still be shown.
    fn has_room(&mut self, text: &str) -> bool {
        // A line without text takes as much room as its beginning does.
        let length = "tc-serve: request : ".len() + self.id.len() + text.len() + 1;
        if length <= self.left {
            self.left -= length;
            return true;
        }
        if std::mem::take(&mut self.left) > 0 {
            self.warn("its command writes more to standard error than is shown");
        }
        false
    }
}

impl CommandErrors {
    /// Shows what comes out of `pipe`.
    pub(crate) fn new(pipe: ChildStderr, request: RequestLog) -> CommandErrors {
        CommandErrors {
            pipe: Some(pipe),
            lines: LineCutter::new(SHOWN_LINE),
            request,
        }
    }

    /// Reads to the end. May be dropped and called again.
    pub(crate) async fn read(&mut self) {
        let mut block = [0; 4096];
        let CommandErrors {
            pipe,
            lines,
            request,
        } = self;
        let mut take = |line: Line<'_>| {
            let (bytes, rest) = match line {
                Line::Whole(bytes) => (bytes, ""),
                Line::TooLong(bytes) => (bytes, " …"),
            };
            request.shown(&format!("{}{rest}", String::from_utf8_lossy(bytes)));
        };
        while let Some(open) = pipe {
            match open.read(&mut block).await {
                Ok(count) if count > 0 => lines.push(&block[..count], &mut take),
                _ => {
                    *pipe = None;
                    lines.finish(&mut take);
                }
            }
        }
    }
}

/// A line of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A whole line, without its line feed.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than allowed.
    TooLong(&'a [u8]),
}

/// Cuts bytes, which come in any pieces, into lines.
#[derive(Debug)]
pub(super) struct LineCutter {
    /// The line at the end, which is not complete, or the beginning of one that is too long.
    open: Vec<u8>,
    is_too_long: bool,
    max: usize,
}

impl LineCutter {
    /// Lines of at most `max` bytes.
    pub(super) fn new(max: usize) -> LineCutter {
        LineCutter {
            open: Vec::new(),
            is_too_long: false,
            max,
        }
    }

    /// How many bytes of a line that is not complete are kept.
    pub(super) fn kept(&self) -> usize {
        self.open.len()
    }

    /// Takes the next bytes, and gives `take` each line that ends in them.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.end(&mut take);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// Handles the end of the bytes, and gives `take` a last line without a line feed.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.open.is_empty() {
            self.end(&mut take);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.max - self.open.len();
        self.is_too_long |= bytes.len() > room;
        self.open.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self, take: &mut impl FnMut(Line<'_>)) {
        take(if self.is_too_long {
            Line::TooLong(&self.open)
        } else {
            Line::Whole(&self.open)
        });
        self.is_too_long = false;
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]], max: usize) -> Vec<String> {
        let mut lines = LineCutter::new(max);
        let mut out = Vec::new();
        let mut take = |line: Line<'_>| {
            out.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                Line::TooLong(line) => format!("{}…", String::from_utf8_lossy(line)),
            });
        };
        pieces.iter().for_each(|piece| lines.push(piece, &mut take));
        lines.finish(&mut take);
        out
    }

    #[test]
    fn no_split_shows_and_a_long_line_is_cut() {
        let text = b"ab\n\nabcd\nabcdefgh\nx\nlast";
        let expected = ["ab", "", "abcd", "abcd…", "x", "last"];
        assert_eq!(all(&[text], 4), expected);
        for at in 0..text.len() {
            assert_eq!(all(&[&text[..at], &text[at..]], 4), expected, "{at}");
        }
        assert_eq!(all(&[b"abcde"], 4), ["abcd…"]);
        assert_eq!(all(&[b"a\n"], 4), ["a"]);
    }
}
