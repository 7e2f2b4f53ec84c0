//! `tc-accumulate`: deltas merged into tool calls.

mod args;

use accumulate::Accumulate;
use args::Args;
use std::process::ExitCode;
use std::rc::Rc;
use stdio::{Demux, Status};

fn main() -> ExitCode {
    ::args::run(|args: Args| {
        let options = Rc::new(args.options()?);
        let outcome = stdio::filter(
            &args.filter(),
            &mut Demux::new(move |_| Accumulate::new(Rc::clone(&options))),
        )?;
        Ok(outcome.status(Status::Done))
    })
}
