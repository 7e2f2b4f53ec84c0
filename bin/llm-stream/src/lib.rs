//! `llm-stream`: writes a model's stream as events.

mod args;
mod ask;
mod each;
mod host;
mod input;
mod models;
mod output;
mod remedy;
mod replay;

use anyhow::bail;
use args::Args;
use std::process::ExitCode;

/// The description of the command, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns its exit status.
pub fn main() -> ExitCode {
    ::ask::run(
        "llm-stream",
        "LLM",
        false,
        remedy::remedy,
        |args: Args, configured| {
            if !args.replay.files.is_empty() {
                return replay::replay(&args);
            }
            if args.faults.faults(&args.connection).any() && !args.replay.is_offline()? {
                bail!(
                    "faults are put into recorded answers only, name some with --replay, or with \
                     --tape and without --tape-mode"
                );
            }
            if args.models {
                return models::list(args, &configured);
            }
            if args.each {
                return each::each(args, &configured);
            }
            match (args.auto.probe, args.request.dry_run) {
                (true, _) => ask::probe(args, &configured),
                (_, true) => ask::dry_run(args, &configured),
                _ => ask::turn(args, &configured),
            }
        },
    )
}
