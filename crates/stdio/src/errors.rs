//! What people hear of `error` events that a command passes on to where nobody reads.

use crate::message;
use event::Event;
use rustix::fs::FileType;

/// How many errors are reported on standard error; all of them are in the stream.
const TOLD: u64 = 10;

/// Reports `error` events on standard error, a line each, where standard output goes to a file or a device such as /dev/null. A pipe
/// has a reader, which shows the error or reports it in turn; on a terminal the event itself is there to be read.
#[derive(Debug)]
pub struct Errors {
    command: &'static str,
    is_silent: bool,
    seen: u64,
}

impl Errors {
    /// The reports of `command`.
    pub fn new(command: &'static str) -> Self {
        let stdout = std::io::stdout();
        let kind = rustix::fs::fstat(&stdout).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let is_read = matches!(kind, Ok(FileType::Fifo | FileType::Socket)) || rustix::termios::isatty(&stdout);
        Errors { command, is_silent: is_read, seen: 0 }
    }

    /// Takes an `error` event that passes.
    pub fn tell(&mut self, event: &Event<'_>) {
        self.seen += 1;
        if self.is_silent || self.seen > TOLD {
            return;
        }
        let [source, code, text] = ["source", "code", "message"].map(|key| event.get_str(key).unwrap_or_default());
        let from = if source.is_empty() || source == self.command { String::new() } else { format!("{source}: ") };
        let code = if code.is_empty() { String::new() } else { format!(" ({code})") };
        let more = if self.seen == TOLD { "; further errors are only in the stream" } else { "" };
        message(self.command, &format!("{from}{text}{code}{more}"));
    }
}
