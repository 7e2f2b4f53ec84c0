//! The options of reading and writing.

use std::path::PathBuf;

/// How a command reads its input and writes its output.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The command's name, for messages and warnings.
    pub command: &'static str,
    /// The operands; without any, standard input.
    pub files: Vec<PathBuf>,
    /// `--no-time`: events that this command writes have no `t`.
    pub no_time: bool,
    /// `--strict`: a line that is not an event ends the command with 2.
    pub strict: bool,
    /// `--max-line`, in bytes.
    pub max_line: usize,
    /// What is written.
    pub emit: Emit,
    /// Stop reading at the first machine that is settled.
    pub stop_when_settled: bool,
    /// SIGINT does not end the command: its input ends by itself after the signal.
    pub ignore_interrupts: bool,
}

/// What a filter writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// The lines that pass, and new events.
    #[default]
    Events,
    /// Only lines that are not events, such as [`RawLines`](crate::RawLines).
    Lines,
    /// Nothing: only the answers of the machines are wanted.
    Nothing,
}
