//! `tc-view`: events for people.

mod args;
mod follow;

use anyhow::bail;
use args::Args;
use std::process::ExitCode;
use stdio::Status;

/// What the command is for, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns the status to end with.
pub fn main() -> ExitCode {
    ::args::run(show)
}

/// Shows the events; an `error` among them makes the status 2.
fn show(args: Args) -> anyhow::Result<Status> {
    let mut view = args.view();
    let mut filter = args.common.filter("tc-view", args.files.clone());
    filter.ignore_interrupts = args.ignore_interrupts;
    let outcome = if args.follow {
        follow::follow(&args, &filter, view.as_mut())?
    } else if let Some(url) = args.files.iter().find(|file| follow::is_url(file)) {
        bail!(
            "{}: add --follow, which reads a session of a service",
            url.display()
        );
    } else {
        stdio::view(&filter, view.as_mut())?
    };
    Ok(outcome.status(Status::Done))
}
