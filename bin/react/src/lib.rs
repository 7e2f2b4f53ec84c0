//! `react`: the agent loop, built from commands joined by pipes. The model calls tools, `tool-exec`
//! runs them, and their results go back to the model until it answers without a call.

mod args;
mod chat;
mod conversations;
mod each;
mod folder;
mod input;
mod log;
mod options;
mod pipeline;
mod progress;
mod rows;
mod run;
mod signals;
mod structured;

use anyhow::bail;
use args::Args;
use std::process::ExitCode;
use stdio::Status;

/// The description of the command, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns its exit status.
pub fn main() -> ExitCode {
    let spec = options::spec(args::agent);
    config::run(spec, args::remedy, |args: Args, configured| {
        // A default would let a text become the conversation.
        if args.takes_log() && !configured.is_typed(options::FORMAT) {
            bail!("events is no default of --format, type -f events where standard input is a log");
        }
        let is_form = |option: &&str| configured.is_typed(option);
        if args.own.each && options::FORMS.iter().any(is_form) {
            bail!("--each writes rows, which have one form: leave --format out");
        }
        let args = args.without_defaults(|option| configured.is_given(option));
        let ended = match args.own.each {
            true => each::run(args),
            false => run::run(args),
        };
        match ended {
            Err(e) if e.is::<run::Reported>() => Ok(Status::Error),
            ended => ended,
        }
    })
}
