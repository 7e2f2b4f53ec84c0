//! `tc-view`: events for people.

mod args;

use args::{Args, Form};
use event::View;
use std::process::ExitCode;
use stdio::Status;

fn main() -> ExitCode {
    ::args::run(show)
}

/// Shows the events; an `error` among them makes the status 2.
fn show(args: Args) -> anyhow::Result<Status> {
    let no_time = args.common.no_time;
    let mut view: Box<dyn View> = match args.form() {
        Form::Terminal(terminal) => Box::new(view::term(terminal, no_time)),
        Form::Text { colour } => Box::new(view::text(colour, no_time)),
        Form::Json { terminal: true } => Box::new(view::Json::for_terminal()),
        Form::Json { terminal: false } => Box::new(view::Json::default()),
    };
    let outcome = stdio::view(&args.common.filter("tc-view", args.files), view.as_mut())?;
    Ok(outcome.status(Status::Done))
}
