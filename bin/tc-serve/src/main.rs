//! `tc-serve`: any client, any model, correct tool calls.

mod args;

use args::Args;
use std::process::ExitCode;
use stdio::Status;

fn main() -> ExitCode {
    ::args::run(|_: Args| Ok(Status::Done))
}
