//! The progress of a long run on a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How long a run takes before its progress shows.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it changes.
const PERIOD: Duration = Duration::from_millis(100);

/// Shows on standard error how many streams were measured, if that is a terminal and the run takes
/// long.
pub struct Progress {
    begin: Instant,
    is_wanted: bool,
    streams: u32,
    /// When the line on the terminal was written, if there is one.
    shown: Option<Instant>,
}

impl Progress {
    /// Begins the run. Continuous integration gets none: its logs keep every state of a line.
    pub fn new() -> Self {
        Progress {
            begin: Instant::now(),
            is_wanted: stderr().is_terminal() && std::env::var_os("CI").is_none(),
            streams: 0,
            shown: None,
        }
    }

    /// Counts one stream.
    pub fn step(&mut self) {
        self.streams += 1;
        let now = Instant::now();
        let ran = now - self.begin;
        let is_due = self.shown.is_none_or(|shown| now - shown >= PERIOD);
        if self.is_wanted && is_due && ran >= PATIENCE {
            self.shown = Some(now);
            let rate = f64::from(self.streams) / ran.as_secs_f64();
            self.write(&format!("{} streams, {rate:.0}/s", self.streams));
        }
    }

    /// Writes a message on a line of its own.
    pub fn message(&self, text: &str) {
        self.clear();
        stdio::message("tc-eval", text);
    }

    /// Removes it from the terminal.
    pub fn end(self) {
        self.clear();
    }

    fn clear(&self) {
        if self.shown.is_some() {
            self.write("");
        }
    }

    /// Puts a text in the place of the line.
    fn write(&self, text: &str) {
        // A terminal that is gone must not end the run.
        let _ = write!(stderr(), "\r\x1b[K{text}");
    }
}
