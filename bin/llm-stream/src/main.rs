//! `llm-stream`: a model's stream as events.

mod allow;
mod args;
mod ask;
mod capabilities;
mod faults;
mod header;
mod http;
mod interrupt;
mod key;
mod limits;
mod log;
mod lost;
mod mode;
mod out;
mod patience;
mod pour;
mod recorder;
mod remedy;
mod replay;
mod resolve;
mod retry;
mod route;
mod session;
mod source;
mod tools;
mod trouble;
mod turn;
mod verbose;

use args::Args;
use std::process::ExitCode;

fn main() -> ExitCode {
    ::args::run_with(
        remedy::remedy,
        |args: Args| {
            if args.replay.files.is_empty() { ask::ask(&args) } else { replay::replay(&args) }
        },
    )
}
