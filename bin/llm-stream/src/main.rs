//! `llm-stream`: a model's stream as events.

mod args;
mod ask;
mod host;
mod input;
mod output;
mod replay;
mod task;
mod tools;
mod watch;

use args::Args;
use std::process::ExitCode;
use task::Task;

fn main() -> ExitCode {
    ::args::run_with(args::remedy, |args: Args| match args.task()? {
        Task::Probe(settings) => ask::probe(&settings),
        Task::DryRun(settings) => ask::dry_run(&settings),
        Task::Turn(settings) => ask::turn(&settings),
        Task::Replay(settings) => replay::replay(&settings),
    })
}
