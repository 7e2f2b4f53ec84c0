//! How far a run of `--each` is, on the last row of a terminal.

use crate::rows::Rows;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The shortest time between two pictures.
const PULSE: Duration = Duration::from_millis(100);

/// The row of a terminal that tells how far a run is.
pub(crate) struct Progress {
    /// Whether standard error is a terminal that no rows are written to.
    is_shown: bool,
    last: Option<Instant>,
}

impl Progress {
    /// Creates the progress of a run whose rows go to a file, or else to standard output.
    pub(crate) fn new(has_file: bool) -> Progress {
        let rows_are_elsewhere = has_file || !stdio::stdout().is_terminal();
        Progress {
            is_shown: rows_are_elsewhere && std::io::stderr().is_terminal(),
            last: None,
        }
    }

    /// Shows how many rows there are, unless that was shown a moment ago.
    pub(crate) fn show(&mut self, rows: &Rows, open: usize) {
        if !self.is_shown || self.last.is_some_and(|last| last.elapsed() < PULSE) {
            return;
        }
        self.last = Some(Instant::now());
        self.write(&line(rows.count, rows.errors, rows.pending, open));
    }

    /// Clears the row.
    pub(crate) fn end(&mut self) {
        if self.last.take().is_some() {
            self.write("");
        }
    }

    fn write(&self, text: &str) {
        // A terminal that takes nothing does not stop the run.
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
    }
}

fn line(count: u64, errors: u64, pending: u64, open: usize) -> String {
    let mut line = format!("react: {count} rows");
    for (count, what) in [(errors, "errors"), (pending, "pending")] {
        if count > 0 {
            line.push_str(&format!(", {count} {what}"));
        }
    }
    format!("{line}, {open} open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts_what_there_is() {
        assert_eq!(line(12, 0, 0, 8), "react: 12 rows, 8 open");
        assert_eq!(
            line(9, 1, 2, 0),
            "react: 9 rows, 1 errors, 2 pending, 0 open"
        );
    }
}
