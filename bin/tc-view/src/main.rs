//! `tc-view`: events for people.

mod args;

use args::{Args, Form};
use event::{Event, View};
use std::process::ExitCode;
use stdio::Status;
use view::Term;

fn main() -> ExitCode {
    ::args::run(show)
}

/// Shows the events; an `error` among them makes the status 2.
fn show(args: Args) -> anyhow::Result<Status> {
    let no_time = args.common.no_time;
    let mut view: Box<dyn View> = match args.form() {
        Form::Terminal(terminal) => Box::new(Live { view: Term::new(terminal, no_time), size: None }),
        Form::Text { colour } => Box::new(view::text(colour, no_time)),
        Form::Json { terminal: true } => Box::new(view::Json::for_terminal()),
        Form::Json { terminal: false } => Box::new(view::Json::default()),
    };
    let mut filter = args.common.filter("tc-view", args.files);
    filter.ignore_interrupts = args.ignore_interrupts;
    let outcome = stdio::view(&filter, view.as_mut())?;
    Ok(outcome.status(Status::Done))
}

/// The view on a terminal whose size may change.
struct Live {
    view: Term,
    size: Option<(usize, usize)>,
}

impl View for Live {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let size = stdio::terminal();
        if size != self.size {
            self.size = size;
            size.into_iter().for_each(|(columns, rows)| self.view.resize(columns, rows));
        }
        self.view.push(event, out);
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.view.interrupt(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.view.finish(out);
    }
}
