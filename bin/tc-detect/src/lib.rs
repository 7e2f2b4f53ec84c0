//! `tc-detect`: is there a tool call in this stream?

use api::{LOOKED_AT, RecordingForm, recognise};
use args::Args;
use branch::Branch;
use detect::{CheckerAnswers, Detect, StreamAnswer};
use divert::Diversion;
use event::{Demux, Event, Machine};
use learn::Learning;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use stdio::{Failure, FilterEnd, RawLines, Status};

mod args;
mod branch;
mod checkers;
mod divert;
mod learn;

/// What the command is for, on one line.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Runs the command with the arguments of this process; returns the status to end with.
pub fn main() -> ExitCode {
    ::args::run(detect_calls)
}

/// Asks the checker about every stream, writes its decisions where the user wants them, and returns
/// the answer as the status.
fn detect_calls(mut args: Args) -> anyhow::Result<Status> {
    let answers = CheckerAnswers::default();
    let learning = args
        .learn
        .as_deref()
        .map(|path| Learning::new(path, !args.is_past()));
    let checkers = checkers::find(&args.checker, &args.calls(), args.risk, learning.as_ref())?;
    if learning
        .as_ref()
        .is_some_and(|learning| !learning.is_live())
    {
        stdio::message(
            "tc-detect",
            "--learn: nothing is learned from a recording; pipe live streams into tc-detect",
        );
    }
    if !leave_out_recordings(&mut args, &answers) {
        return Ok(Status::Undecided);
    }
    let name: Rc<str> = args.checker.as_str().into();
    let detect = {
        let answers = answers.clone();
        let others = args.others();
        move |first: &Event<'_>| {
            Detect::new(Rc::clone(&name), checkers(first), answers.clone(), first).followed(others)
        }
    };
    let filter = args.filter();
    let no_time = args.common.no_time;
    let mut failed = None;
    let (outcome, events) = if args.then.is_some() || args.or_else.is_some() {
        let commands = branch::BranchCommands::new(args.then, args.or_else)?;
        let ends = commands.clone();
        let lines = RawLines::default();
        let to = lines.clone();
        let ran = run(&filter, Some(&lines), move |first| {
            Branch::new(detect(first), commands.clone(), no_time, to.clone())
        })?;
        failed = ends.failed();
        ran
    } else if let Some(fd) = args.decide_fd {
        let target = divert::open(fd)?;
        run(&filter, None, move |first| {
            Diversion::new(detect(first), Rc::clone(&target), no_time)
        })?
    } else {
        run(&filter, None, detect)?
    };
    if events == 0 && outcome.signal.is_none() {
        stdio::message(
            "tc-detect",
            "the input has no events; for a recorded body or a tape: llm-stream --replay FILE | \
             tc-detect",
        );
        answers.undecided();
    }
    if let Some(Err(e)) = learning.map(|learning| learning.save()) {
        stdio::message("tc-detect", &format!("--learn {e:#}"));
    }
    let status = outcome.status(match answers.answer() {
        StreamAnswer::Yes => Status::Done,
        StreamAnswer::No => Status::No,
        StreamAnswer::Undecided => Status::Undecided,
    });
    Ok(match (status, failed) {
        (Status::Signal(_), _) | (_, None) => status,
        (_, Some(code)) => Status::Command(code),
    })
}

/// Runs a machine for each stream; returns how the run ended, and the number of events. `lines` are
/// those that the machines write beside their events, if they do.
fn run<M: Machine>(
    filter: &stdio::Filter,
    lines: Option<&RawLines>,
    make: impl FnMut(&Event<'_>) -> M + 'static,
) -> Result<(FilterEnd, u64), Failure> {
    let mut machines = Demux::new(make);
    let outcome = match lines {
        Some(lines) => stdio::filter_with_lines(filter, &mut machines, lines),
        None => stdio::filter(filter, &mut machines),
    }?;
    Ok((outcome, machines.events()))
}

/// Removes recordings from the operands, each with a message; they count as undecided. `false`: no
/// input is left.
fn leave_out_recordings(args: &mut Args, answers: &CheckerAnswers) -> bool {
    if args.files.is_empty() {
        args.files.push(PathBuf::from("-"));
    }
    args.files.retain(|path| {
        let stdin = path == Path::new("-");
        let Some(what) = recorded(if stdin { Path::new(args::STDIN) } else { path }) else {
            return true;
        };
        let (name, file) = if stdin {
            ("standard input".into(), "FILE".into())
        } else {
            (path.display().to_string(), path.display().to_string())
        };
        let text =
            format!("{name}: {what}, not events; run: llm-stream --replay {file} | tc-detect");
        stdio::message("tc-detect", &text);
        answers.undecided();
        false
    });
    !args.files.is_empty()
}

/// What kind of recording a file is, if it is one. Only files on disk are looked at: a pipe can be
/// read only once.
fn recorded(path: &Path) -> Option<&'static str> {
    let file = path
        .metadata()
        .ok()
        .filter(|m| m.is_file())
        .and_then(|_| File::open(path).ok())?;
    let mut start = Vec::new();
    file.take(LOOKED_AT as u64).read_to_end(&mut start).ok()?;
    match RecordingForm::of(&start) {
        RecordingForm::Tape => Some("a tape"),
        RecordingForm::Log => None,
        RecordingForm::Body => recognise(&start, true).map(|_| "a provider's answer"),
    }
}
