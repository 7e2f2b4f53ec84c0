//! `tc-serve`: any client, any model, correct tool calls.

mod args;
mod budget;
mod client_request;
mod command;
mod front;
mod http;
mod keys;
mod life;
mod log;
mod metrics;
mod models;
mod page;
mod panics;
mod pipe;
mod places;
mod route;
mod server;
mod sessions;
mod source;
mod tools;
mod traces;
mod turns;
mod upstream;
mod woken;

use args::Args;
use config::Configured;
use log::LogTarget;
use std::process::ExitCode;
use stdio::{Failure, Status};

/// The one-line description of the command.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process. Returns the exit status.
pub fn main() -> ExitCode {
    ask::run("tc-serve", "TC_SERVE", true, |_| None, serve)
}

fn serve(args: Args, configured: Configured) -> anyhow::Result<Status> {
    for (old, new) in [
        ("--approve", "--ask"),
        ("--log", "--access-log"),
        ("-l", "--access-log"),
        ("--steps", "--max-steps"),
    ] {
        ::args::warn_of_old_name("tc-serve", old, new);
    }
    let is_events = args.service.access_log == Some(LogTarget::StandardError);
    match args
        .settings(&configured)
        .and_then(|settings| server::serve(&settings, &configured))
    {
        Err(error) if is_events && !matches!(error.downcast_ref(), Some(Failure::Gone)) => {
            log::fail(&error);
            Ok(Status::Error)
        }
        ended => ended,
    }
}
