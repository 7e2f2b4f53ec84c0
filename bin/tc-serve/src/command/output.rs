//! The lines that a command writes, as events.

use super::errors::RequestLog;
use super::lines::{Line, Lines};
use crate::pipe::Pipe;
use event::payload::Warning;
use event::{Scanner, Sink};

/// The longest line that is read, in bytes.
const LINE: usize = 16 << 20;
/// How many lines that are not events are reported for each answer.
const REPORTED: u64 = 10;

/// The lines that a command writes, as events.
#[derive(Debug)]
pub struct CommandOutput {
    lines: Lines,
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
    pub fn new(log: RequestLog) -> CommandOutput {
        let state = OutputState {
            scanner: Scanner::default(),
            number: 0,
            bad: 0,
            has_stream: false,
            log,
        };
        CommandOutput {
            lines: Lines::new(LINE),
            state,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8], pipe: &Pipe) {
        let CommandOutput { lines, state } = self;
        lines.push(bytes, |line| state.line(line, pipe));
        pipe.set_kept(lines.kept());
    }

    /// Takes the end of the bytes.
    pub fn finish(&mut self, pipe: &Pipe) {
        let CommandOutput { lines, state } = self;
        lines.finish(|line| state.line(line, pipe));
    }

    /// Whether an event of a stream came.
    pub fn has_stream(&self) -> bool {
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
        let sink: &mut dyn Sink = &mut pipe.sink();
        sink.emit(0, Warning::new("tc-serve", "not_an_event", &message));
    }
}
