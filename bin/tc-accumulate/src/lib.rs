//! `tc-accumulate`: deltas merged into tool calls.

mod args;
mod whole;

use accumulate::Accumulate;
use api::WholeResponse;
use args::Args;
use event::Demux;
use std::process::ExitCode;
use std::rc::Rc;
use stdio::{RawLines, Status};
use whole::OpenResponse;

/// What the command is for, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns the status to end with.
pub fn main() -> ExitCode {
    ::args::run(|args: Args| {
        let options = Rc::new(args.options()?);
        let filter = args.filter();
        let most = args.max_kept();
        let merging = move || Accumulate::new(Rc::clone(&options));
        let outcome = match args.api() {
            Some(api) => {
                let lines = RawLines::default();
                let to = lines.clone();
                let mut streams = Demux::new(move |_| OpenResponse {
                    merging: merging(),
                    response: WholeResponse::new(api, most),
                    lines: to.clone(),
                });
                stdio::filter_with_lines(&filter, &mut streams, &lines)
            }
            None => stdio::filter(&filter, &mut Demux::new(move |_| merging())),
        }?;
        Ok(outcome.status(Status::Done))
    })
}
