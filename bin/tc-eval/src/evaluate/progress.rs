//! The progress of a long run on a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The delay before progress is shown. `PAUSE` is the interval between updates.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);

/// Shows on standard error how many streams were measured, if standard error is a terminal and the
/// run takes long.
pub(super) struct ProgressLine {
    begin: Instant,
    /// The time of the next update; `None` if progress is not shown.
    next: Option<Instant>,
    streams: u64,
    is_shown: bool,
}

impl ProgressLine {
    /// Begins the run. Continuous integration gets no line: its logs keep every state of a line.
    pub(super) fn new() -> Self {
        let begin = Instant::now();
        let is_wanted = stderr().is_terminal() && std::env::var_os("CI").is_none();
        ProgressLine {
            begin,
            next: is_wanted.then(|| begin + PATIENCE),
            streams: 0,
            is_shown: false,
        }
    }

    /// Counts one stream.
    pub(super) fn step(&mut self) {
        self.streams += 1;
        let now = Instant::now();
        if self.next.is_some_and(|next| next <= now) {
            let rate = self.streams as f64 / (now - self.begin).as_secs_f64();
            // Fails if the terminal has closed.
            let _ = write!(
                stderr(),
                "\r{} streams, {rate:.0} a second\x1b[K",
                self.streams
            );
            self.next = Some(now + PAUSE);
            self.is_shown = true;
        }
    }

    /// Writes a message on a line of its own.
    pub(super) fn message(&mut self, text: &str) {
        self.end();
        stdio::message("tc-eval", text);
    }

    /// Removes the line from the terminal.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
