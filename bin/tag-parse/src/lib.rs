//! `tag-parse`: tool calls written as text, as tool-call events.

mod args;
mod list;

use args::Args;
use event::Demux;
use std::process::ExitCode;
use stdio::Status;
use tag::Streams;

/// What the command is for, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns the status to end with.
pub fn main() -> ExitCode {
    ::args::run(work)
}

fn work(args: Args) -> anyhow::Result<Status> {
    if args.list_dialects {
        list::print(&args.dialects()?)?;
        return Ok(Status::Done);
    }
    if let Some(name) = &args.show_dialect {
        list::show(args.dialects()?.find(name)?)?;
        return Ok(Status::Done);
    }
    let streams = Streams::new(args.options()?);
    let outcome = stdio::filter(
        &args.filter(),
        &mut Demux::new(move |first| streams.begin(first)),
    )?;
    Ok(outcome.status(Status::Done))
}
