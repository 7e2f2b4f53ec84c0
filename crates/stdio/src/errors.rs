//! Reports of `error` events on standard error, where they would not be seen otherwise.

use crate::message;
use event::payload::Error;
use event::{Event, Text};
use rustix::fs::FileType;

/// How many errors are reported on standard error.
const REPORTED: u64 = 10;

/// Reports `error` events on standard error, a line each, and counts them.
#[derive(Debug)]
pub struct Errors {
    command: &'static str,
    is_silent: bool,
    seen: u64,
}

impl Errors {
    /// Reports of a command that passes events on. It reports where standard output goes to a file
    /// or a device such as /dev/null: a pipe has a reader, which shows the error or reports it in
    /// turn, and a terminal shows the event itself.
    pub fn passed(command: &'static str) -> Self {
        let stdout = std::io::stdout();
        let kind = rustix::fs::fstat(&stdout).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let is_read = matches!(kind, Ok(FileType::Fifo | FileType::Socket))
            || rustix::termios::isatty(&stdout);
        Errors {
            command,
            is_silent: is_read,
            seen: 0,
        }
    }

    /// Reports of a command that keeps the events from its output.
    pub fn kept(command: &'static str) -> Self {
        Errors {
            command,
            is_silent: false,
            seen: 0,
        }
    }

    /// Whether there was any.
    pub fn any(&self) -> bool {
        self.seen > 0
    }

    /// Counts an error that is reported elsewhere.
    pub fn count(&mut self) {
        self.seen += 1;
    }

    /// Takes an `error` event.
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
