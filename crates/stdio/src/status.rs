//! How a command ends: the exit statuses of the protocol and the one line on standard error.

use std::io::Write;

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 0: done; there is a tool call; results are ready.
    Done,
    /// 1: the answer is no.
    No,
    /// 2: an error, in the stream or of the command.
    Error,
    /// 3: not decided, or a call waits for approval.
    Undecided,
    /// 130 or 143: ended by this signal (2 or 15) after what was open had been closed.
    Signal(i32),
    /// The status of a command that was run, where that counts as the answer.
    Command(u8),
}

impl Status {
    /// The number for the system.
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
            Outcome {
                signal: Some(n), ..
            } => Status::Signal(n),
            Outcome { error: true, .. } if answer != Status::Undecided => Status::Error,
            _ => answer,
        }
    }
}

/// Why a command cannot continue with its input or output.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The reader of standard output went away: it has enough. The command ends with 0, without a
    /// message.
    #[error("the reader of standard output is gone")]
    Gone,
    /// Standard output cannot be written (disk full, …).
    #[error("standard output: {0}, free some space or write elsewhere")]
    Write(std::io::Error),
    /// A standard file was closed when the command started.
    #[error("{file} is closed, {remedy}")]
    Closed {
        /// Which one.
        file: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The system allows no more files or threads.
    #[error("{what}: {error}, raise the limits (ulimit -n for files, ulimit -u for threads)")]
    Limit {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// An input cannot be read.
    #[error("{file}: {error}, check the path and its permissions")]
    Read {
        /// The file as it was named, or "standard input".
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A line is not an event, under `--strict`.
    #[error("{file}, line {line}: not an event ({what}), mend the line or leave out --strict")]
    Strict {
        /// The file as it was named, or "standard input".
        file: String,
        /// 1-based.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// Writes `command: text` as one line on standard error. Control and invisible characters in `text`
/// are escaped, since it may quote input.
pub fn message(command: &str, text: &str) {
    let mut line = format!("{command}: ");
    for c in text.trim_end().chars() {
        if c == '\n' {
            line.push(' ');
        } else if c.is_control() || event::is_hidden(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    // The error is ignored: writing fails where standard error is closed, and there is no other
    // place for a message.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
