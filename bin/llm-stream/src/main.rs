//! `llm-stream`: a model's stream as events.

mod args;
mod faults;
mod http;
mod interrupt;
mod out;
mod pour;
mod replay;
mod source;

use args::Args;
use std::process::ExitCode;
use stdio::Status;

fn main() -> ExitCode {
    ::args::run(work)
}

fn work(args: Args) -> anyhow::Result<Status> {
    replay::replay(&args)
}
