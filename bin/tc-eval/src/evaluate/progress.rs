//! The progress of a long run on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// How long a run takes before its progress shows.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows on standard error how many streams were measured, if that is a terminal and the run takes
/// long.
pub struct Progress {
    begin: Instant,
    is_wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins the run. Continuous integration gets none: its logs keep every state of a line.
    pub fn new() -> Self {
        let is_wanted = stderr().is_terminal() && std::env::var_os("CI").is_none();
        Progress {
            begin: Instant::now(),
            is_wanted,
            bar: None,
        }
    }

    /// Counts one stream.
    pub fn step(&mut self) {
        if !self.is_wanted {
            return;
        }
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if self.begin.elapsed() < PATIENCE => {}
            None => {
                let style =
                    ProgressStyle::with_template("{spinner} {human_pos} streams, {per_sec}");
                let bar = ProgressBar::new_spinner();
                self.bar = Some(
                    style
                        .map(|style| bar.clone().with_style(style))
                        .unwrap_or(bar),
                );
            }
        }
    }

    /// Writes a message on a line of its own.
    pub fn message(&self, text: &str) {
        let write = || stdio::message("tc-eval", text);
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes it from the terminal.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
