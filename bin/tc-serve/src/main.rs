//! `tc-serve`: any client, any model, correct tool calls.

mod access_log;
mod args;
mod asked;
mod budget;
mod command;
mod http;
mod pipe;
mod places;
mod server;
mod source;
mod startup;
mod turns;
mod upstream;

use args::Args;
use std::process::ExitCode;

fn main() -> ExitCode {
    ::args::run(|args: Args| server::serve(&args.settings()?))
}
