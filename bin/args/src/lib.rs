//! What every command's arguments share: the common options, one-line usage errors, and how a `main` ends.

mod generate;

pub use generate::Document;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use stdio::{Failure, Status};

/// The options that every command that reads events has.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Leave out times (`t`, `timestamp`, `duration_ms`) from the events this command writes, so that runs can be compared
    #[arg(long, help_heading = "Common options")]
    pub no_time: bool,
    /// End with status 2 at the first line that is no event, instead of passing it on as a warning
    #[arg(long, help_heading = "Common options")]
    pub strict: bool,
    /// Longest line that is read, in bytes (K, M and G are understood)
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = bytes, help_heading = "Common options")]
    pub max_line: usize,
    /// Print the man page or the completions of a shell, and stop
    #[arg(long, value_name = "DOCUMENT", value_enum, exclusive = true, help_heading = "Common options")]
    generate: Option<Document>,
}

impl Common {
    /// The driver's settings for `command` over `files`.
    pub fn filter(&self, command: &'static str, files: Vec<PathBuf>) -> stdio::Filter {
        let Common { no_time, strict, max_line, .. } = *self;
        stdio::Filter { command, files, no_time, strict, max_line, emit: stdio::Emit::Events, stop_when_settled: false }
    }
}

/// Reads a number of bytes: `4096`, `64K`, `64M`, `1G` (powers of 1024).
///
/// # Errors
/// What is wrong with the text, for a usage message.
pub fn bytes(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let n: usize = digits.parse().map_err(|_| "not a number of bytes, such as 65536 or 64M".to_owned())?;
    n.checked_mul(unit).filter(|n| *n > 0).ok_or_else(|| "out of range".to_owned())
}

/// Reads a time: `500ms`, `2s`, `1.5s`, `5m`, `1h`, `7d`, or seconds without a unit.
///
/// # Errors
/// What is wrong with the text, for a usage message.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match &text[at..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("not a time, such as 500ms, 30s or 5m".to_owned()),
    };
    let n: f64 = text[..at].parse().map_err(|_| "not a time, such as 500ms, 30s or 5m".to_owned())?;
    std::time::Duration::try_from_secs_f64(n * unit).map_err(|_| "out of range".to_owned())
}

/// Runs a command: parses its arguments and ends with the status of `work`. A usage error is one line and status 2;
/// [`Failure::Gone`] anywhere under an error is a silent 0.
pub fn run<A: Parser>(work: impl FnOnce(A) -> anyhow::Result<Status>) -> ExitCode {
    let command = A::command().get_name().to_owned();
    if let Err(closed) = stdio::check_output() {
        stdio::message(&command, &closed.to_string());
        return ExitCode::from(Status::Error.code());
    }
    // Read before the arguments that a command requires.
    let parsed = A::command().try_get_matches().and_then(|mut matches| match matches.get_one::<Document>("generate") {
        Some(document) => Ok(Err(*document)),
        None => A::from_arg_matches_mut(&mut matches).map(Ok).map_err(|e| e.format(&mut A::command())),
    });
    let args = match parsed {
        Ok(Ok(args)) => args,
        Ok(Err(document)) => return ExitCode::from(document.print(A::command()).code()),
        Err(e) if !e.use_stderr() => return ExitCode::from(print(&command, &e).code()),
        Err(e) => {
            stdio::message(&command, &usage(&command, &e));
            return ExitCode::from(Status::Error.code());
        }
    };
    let status = match work(args) {
        Ok(status) => status,
        Err(e) if matches!(e.downcast_ref::<Failure>(), Some(Failure::Gone)) => Status::Done,
        Err(e) => {
            stdio::message(&command, &format!("{e:#}"));
            Status::Error
        }
    };
    ExitCode::from(status.code())
}

/// `--help` and `--version`; a reader that leaves (`--help | head -1`) is no error.
fn print(command: &str, e: &clap::Error) -> Status {
    match e.print() {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            stdio::message(command, &Failure::Write(e).to_string());
            Status::Error
        }
        _ => Status::Done,
    }
}

/// The first paragraph of a usage error, on one line, with the remedy.
fn usage(command: &str, e: &clap::Error) -> String {
    let text = e.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = first.trim_start_matches("error: ").split_whitespace().collect();
    format!("{}, see '{command} --help'", words.join(" ").trim_end_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert!(bytes("x").is_err() && bytes("0").is_err() && bytes("-1").is_err());
        assert_eq!(duration("500ms"), Ok(std::time::Duration::from_millis(500)));
        assert_eq!(duration("2"), Ok(std::time::Duration::from_secs(2)));
        assert!(duration("2 weeks").is_err() && duration("").is_err());
    }
}
