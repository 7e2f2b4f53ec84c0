//! `tc-detect`: is there a tool call in this stream?

mod args;
mod branch;
mod command;
mod divert;
mod text;

use args::Args;
use branch::Branch;
use command::Command;
use detect::{Answer, Checker, Detect, Tally};
use divert::Divert;
use event::Event;
use std::process::ExitCode;
use std::rc::Rc;
use stdio::{Demux, Status};
use text::Texts;

fn main() -> ExitCode {
    ::args::run(detect_calls)
}

/// Asks the checker about every stream, writes its decisions where they are wanted, and answers with the status.
fn detect_calls(args: Args) -> anyhow::Result<Status> {
    let tally = Tally::default();
    let build = checker(&args)?;
    let name: Rc<str> = args.checker.as_str().into();
    let detect = {
        let (tally, others) = (tally.clone(), args.others());
        move |first: &Event<'_>| Detect::new(Rc::clone(&name), build(first), tally.clone(), first).followed(others)
    };
    let filter = args.filter();
    let outcome = if args.then.is_some() || args.or_else.is_some() {
        let (commands, no_time) = (branch::Commands::new(args.then, args.or_else), args.common.no_time);
        stdio::filter(&filter, &mut Demux::new(move |first| Branch::new(detect(first), commands.clone(), no_time)))?
    } else if let Some(fd) = args.decide_fd {
        let (target, no_time) = (divert::open(fd)?, args.common.no_time);
        stdio::filter(&filter, &mut Demux::new(move |first| Divert::new(detect(first), Rc::clone(&target), no_time)))?
    } else {
        stdio::filter(&filter, &mut Demux::new(detect))?
    };
    Ok(outcome.status(match tally.answer() {
        Answer::Yes => Status::Done,
        Answer::No => Status::No,
        Answer::Undecided => Status::Undecided,
    }))
}

/// Builds the checker of a choice.
type Build = Rc<dyn Fn() -> Box<dyn Checker>>;
/// Gives the builder for a stream, from its first event.
type Builds = Box<dyn Fn(&Event<'_>) -> Build>;

/// What builds the checkers of a stream, from its first event: one of the table, or one that needs more than events.
fn checker(args: &Args) -> anyhow::Result<Builds> {
    let calls = args.calls();
    if let Some(command) = args.checker.strip_prefix("cmd:") {
        let command = command.to_owned();
        let build: Build = Rc::new(move || Box::new(Command::start(&command)));
        return Ok(Box::new(move |_| Rc::clone(&build)));
    }
    let texts = (args.checker == "tag").then(Texts::new);
    let name = if texts.is_some() { "full".to_owned() } else { args.checker.clone() };
    detect::build(&name, &calls)?; // A name that is unknown is told before anything is read.
    let build: Build = Rc::new(move || match detect::build(&name, &calls) {
        Ok(checker) => checker,
        Err(_) => Box::new(Command::start("exit 2")),
    });
    Ok(match texts {
        None => Box::new(move |_| Rc::clone(&build)),
        Some(texts) => Box::new(move |first| {
            let (texts, full, first) = (texts.clone(), Rc::clone(&build), first.raw().to_owned());
            Rc::new(move || Box::new(texts.checker(&first, full())))
        }),
    })
}
