//! `tag-parse`: tool calls written as text, as tool-call events.

mod args;

use args::Args;
use std::process::ExitCode;
use stdio::{Demux, Status};
use tag::Streams;

fn main() -> ExitCode {
    ::args::run(|args: Args| {
        let streams = Streams::new(args.options()?);
        let outcome = stdio::filter(&args.filter(), &mut Demux::new(move |first| streams.begin(first)))?;
        Ok(outcome.status(Status::Done))
    })
}
