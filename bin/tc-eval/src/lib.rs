//! `tc-eval`: measures how well checkers detect tool calls.

mod args;
mod checkers;
mod corpus;
mod diff;
mod draft;
mod evaluate;
mod explain;
mod fit;
mod label;
mod merge;
mod read;
mod reading;
mod recordings;
mod split;

use args::{Args, EvalCommand};
use std::process::ExitCode;
use stdio::Status;

/// The description of the command, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns its exit status.
pub fn main() -> ExitCode {
    ::args::run(run)
}

/// Runs the subcommand; without one, evaluates checkers.
fn run(args: Args) -> anyhow::Result<Status> {
    match args.command {
        None => evaluate::evaluate(&args.evaluate, &args.common),
        Some(EvalCommand::Label(args)) => label::label(&args),
        Some(EvalCommand::Explain(options)) => explain::explain(&options, &args.common),
        Some(EvalCommand::Diff(args)) => diff::diff(&args),
        Some(EvalCommand::Merge(args)) => merge::merge(&args),
        Some(EvalCommand::Fit(options)) => fit::fit(&options, &args.common),
    }
}

/// Writes the complete output of a command to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = stdio::Output::new();
    out.put(text.as_bytes())?;
    Ok(out.flush()?)
}
