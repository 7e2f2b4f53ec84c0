//! `tc-view`: events for people.

mod args;

use args::Args;
use std::process::ExitCode;
use stdio::Status;

fn main() -> ExitCode {
    ::args::run(show)
}

/// Shows the events; an `error` among them makes the status 2.
fn show(args: Args) -> anyhow::Result<Status> {
    let mut view = args.view();
    let mut filter = args.common.filter("tc-view", args.files);
    filter.ignore_interrupts = args.ignore_interrupts;
    let outcome = stdio::view(&filter, view.as_mut())?;
    Ok(outcome.status(Status::Done))
}
