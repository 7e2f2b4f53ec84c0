//! `tc-view`: shows events to people.

mod args;
mod follow;

use anyhow::bail;
use args::Args;
use std::process::ExitCode;
use stdio::Status;

/// The description of the command, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns its exit status.
pub fn main() -> ExitCode {
    ::args::run(show)
}

/// Shows the events; returns status 2 if one of them is an `error`.
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
