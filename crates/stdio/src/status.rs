//! How a command ends: the exit statuses of the protocol, the message on standard error, and the
//! reports of `error` events there.

use event::payload::{Error, FinishReason, StreamEnd, Warning};
use event::{Event, Kind, Text};
use rustix::fs::FileType;
use std::io::Write;

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 0: success, there is a tool call, or results are ready.
    Done,
    /// 1: the answer is no.
    No,
    /// 2: an error in the stream or in the command.
    Error,
    /// 3: undecided, or a call needs approval.
    Undecided,
    /// 130 or 143: ended by this signal (2 or 15), after open streams and calls were closed.
    Signal(i32),
    /// The exit status of a child command, if that is the answer.
    Command(u8),
}

impl Status {
    /// Returns the exit status as a number.
    pub fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::No => 1,
            Status::Error => 2,
            Status::Undecided => 3,
            Status::Signal(n) => u8::try_from(128 + n).unwrap_or(255),
            Status::Command(code) => code,
        }
    }
}

/// How the run of a filter ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilterEnd {
    /// Whether an `error` event was forwarded or written. It turns the statuses 0 and 1 into 2.
    pub error: bool,
    /// The signal that ended the run; `None` if no signal arrived.
    pub signal: Option<i32>,
}

impl FilterEnd {
    /// Returns the exit status of a command. `answer` is the status without errors and signals.
    pub fn status(self, answer: Status) -> Status {
        match self {
            FilterEnd {
                signal: Some(n), ..
            } => Status::Signal(n),
            FilterEnd { error: true, .. } if answer != Status::Undecided => Status::Error,
            _ => answer,
        }
    }
}

/// The reason why a command cannot continue to read its input or write its output.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The reader of standard output has exited, because it needs no more. The command exits with 0
    /// and without a message.
    #[error("the reader of standard output has exited")]
    Gone,
    /// Standard output cannot be written, for example because the disk is full.
    #[error("standard output: {0}, free some space or write elsewhere")]
    Write(std::io::Error),
    /// The system allows no more files or threads.
    #[error("{what}: {error}, raise the limits (ulimit -n for files, ulimit -u for threads)")]
    Limit {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// An input cannot be read.
    #[error("{file}: {error}, check the path and its permissions")]
    Read {
        /// The file as the user named it, or "standard input".
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A line is not an event, with `--strict`.
    #[error("{file}, line {line}: not an event ({what}), fix the line or leave out --strict")]
    Strict {
        /// The file as the user named it, or "standard input".
        file: String,
        /// The 1-based line number.
        line: u64,
        /// The reason why the line is not an event.
        what: String,
    },
}

impl Failure {
    /// Returns a function that converts a system error to [`Failure::Limit`]. `what` is the
    /// operation that failed.
    pub fn limit<E: Into<std::io::Error>>(what: &'static str) -> impl Fn(E) -> Failure {
        move |error| Failure::Limit {
            what,
            error: error.into(),
        }
    }
}

/// Writes `command: text` as one line on standard error. Control and invisible characters in `text`
/// are escaped, because `text` may quote input.
pub fn message(command: &str, text: &str) {
    let mut line = format!("{command}: ");
    push_visible(&mut line, &text.trim_end().replace('\n', " "));
    line.push('\n');
    // The error is ignored: if standard error is closed, there is no other place for the message.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Writes lines on standard error for a person to copy. They are unchanged, except that control and
/// invisible characters are escaped.
pub fn block(lines: &str) {
    let mut text = String::new();
    for line in lines.lines() {
        push_visible(&mut text, line);
        text.push('\n');
    }
    // Ignored as in `message`.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

fn push_visible(out: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() || event::is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
}

/// The maximum number of errors, and of lines that are not events, that are reported on standard
/// error.
pub(crate) const REPORTED: u64 = 10;

/// Reports `error` events on standard error, one line each, and counts them.
#[derive(Debug)]
pub struct Errors {
    command: &'static str,
    is_silent: bool,
    seen: u64,
}

impl Errors {
    /// Returns the reports of a command that forwards or shows events. It reports errors only if
    /// standard output is a file or a device such as /dev/null. A pipe has a reader that shows or
    /// reports the error, and a terminal shows the event itself. If standard error leads to the same
    /// file (`2>&1`), the error is already there.
    pub fn passed(command: &'static str) -> Self {
        let stdout = crate::stdout();
        let stat = rustix::fs::fstat(&stdout).ok();
        let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
        let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let stderr = rustix::fs::fstat(rustix::stdio::stderr()).ok();
        let is_same = stat.is_some() && stat.map(place) == stderr.map(place);
        let is_read = is_same
            || matches!(kind, Some(FileType::Fifo | FileType::Socket))
            || rustix::termios::isatty(&stdout);
        Errors {
            is_silent: is_read,
            ..Errors::kept(command)
        }
    }

    /// Returns the reports of a command that does not write events to its output.
    pub fn kept(command: &'static str) -> Self {
        Errors {
            command,
            is_silent: false,
            seen: 0,
        }
    }

    /// Whether any error was counted.
    pub fn any(&self) -> bool {
        self.seen > 0
    }

    /// Counts an error that is reported elsewhere.
    pub fn count(&mut self) {
        self.seen += 1;
    }

    /// Counts an `error` event, and reports it unless it is one too many.
    #[cold]
    pub fn report(&mut self, event: &Event<'_>) {
        self.seen += 1;
        if self.is_silent || self.seen > REPORTED {
            return;
        }
        let error = Error::read(event);
        let [source, code, text] = [error.source, error.code, error.message].map(Text::str);
        let from = if source.is_empty() || source == self.command {
            String::new()
        } else {
            format!("{source}: ")
        };
        let code = if code.is_empty() {
            String::new()
        } else {
            format!(" ({code})")
        };
        let more = if self.seen == REPORTED {
            "; further errors are not reported"
        } else {
            ""
        };
        message(self.command, &format!("{from}{text}{code}{more}"));
    }
}

/// Reports on standard error the warnings that a view does not show, and why an answer is
/// incomplete.
#[derive(Debug)]
pub(crate) struct Notices {
    command: &'static str,
    seen: u64,
    /// Whether an `error` event of the answer was reported, which explains why it was cut.
    has_failed: bool,
}

impl Notices {
    pub(crate) fn new(command: &'static str) -> Self {
        Notices {
            command,
            seen: 0,
            has_failed: false,
        }
    }

    /// Reports an event if it is a warning or the end of an incomplete answer.
    #[inline]
    pub(crate) fn report(&mut self, event: &Event<'_>) {
        if matches!(
            event.kind(),
            Kind::Error | Kind::Warning | Kind::StreamStart | Kind::StreamEnd
        ) {
            self.report_rare(event);
        }
    }

    #[cold]
    fn report_rare(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::Error => self.has_failed = true,
            Kind::StreamStart => self.has_failed = false,
            Kind::StreamEnd => {
                let reason = StreamEnd::read(event).finish_reason;
                // Whoever cancelled the answer knows it, and an error explains why it was cut.
                let is_explained = reason == FinishReason::Cancelled
                    || reason == FinishReason::Cut && self.has_failed;
                if let Some(why) = reason.notice().filter(|_| !is_explained) {
                    self.put(why);
                }
            }
            _ => {
                let warning = Warning::read(event);
                let [source, code, text] =
                    [warning.source, warning.code, warning.message].map(Text::str);
                // The command that read the line has reported it already.
                if code != "not_an_event" {
                    self.put(&format!("{source}: {text} ({code})"));
                }
            }
        }
    }

    fn put(&mut self, text: &str) {
        self.seen += 1;
        if self.seen <= REPORTED {
            let more = if self.seen == REPORTED {
                "; further warnings are not reported"
            } else {
                ""
            };
            message(self.command, &format!("warning: {text}{more}"));
        }
    }
}
