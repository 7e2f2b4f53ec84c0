//! What would run, without running it.

use crate::failure;
use crate::input::Piece;
use crate::lines::{Line, Lines};
use event::{Kind, Object};
use stdio::{Outcome, Output, Status};
use tokio::sync::mpsc;
use tool::{Answer, Call, Plan, Step};

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// One JSON line for each call of the input: its command line, or why it would not run.
    All,
    /// The ids of the calls that wait for a person.
    Pending,
}

/// Prints what would become of the calls of the input, and gives whether there is anything of that kind.
///
/// # Errors
/// When the input or the output fails.
pub fn run(mut plan: Plan, mut lines: Lines, mut pieces: mpsc::Receiver<Piece>, show: Show) -> anyhow::Result<Status> {
    let mut out = Output::new();
    let mut outcome = Outcome::default();
    let mut found = false;
    loop {
        let piece = pieces.blocking_recv().unwrap_or(Piece::End);
        let mut at = 0;
        while let Some(line) = lines.next(&piece, &mut at)? {
            if let Line::Event(event, _) = line {
                outcome.error |= event.kind() == Kind::Error;
                plan.event(&event);
                found |= steps(&mut plan, &mut out, show);
            }
        }
        match piece {
            Piece::End => break,
            Piece::Failed(failure) => return Err(failure.into()),
            _ => out.flush()?,
        }
    }
    plan.finish();
    found |= steps(&mut plan, &mut out, show);
    out.flush()?;
    let tally = plan.tally();
    if let Some(why) = failure::why(&tally, outcome.error) {
        stdio::message("tool-exec", &why);
    }
    outcome.error |= tally.is_failure();
    Ok(outcome.status(if found { Status::Done } else { Status::No }))
}

/// Writes down the plan's steps; gives whether one of them is what is asked for: would start something, or waits.
fn steps(plan: &mut Plan, out: &mut Output, show: Show) -> bool {
    let mut found = false;
    loop {
        let steps = plan.steps();
        if steps.is_empty() {
            return found;
        }
        for step in steps {
            match step {
                Step::Start { key, call, ready } => {
                    found |= show == Show::All;
                    line(out, &call, show, |o| {
                        o.str("status", "would_run").str("class", ready.class.name());
                        if let Ok(arguments) = &call.arguments {
                            o.raw("arguments", arguments.text());
                        }
                        o.array("argv", |argv| {
                            ready.argv.iter().for_each(|item| {
                                argv.str(item);
                            });
                        });
                    });
                    // Known again by this when its result comes.
                    plan.done(key, Answer { exit_code: Some(0), ..Answer::new(tool::Status::Success, "") });
                }
                Step::Result { call, answer } if answer.status == tool::Status::Pending && show == Show::Pending => {
                    found = true;
                    out.buffer().extend_from_slice(format!("{}\n", call.id).as_bytes());
                }
                Step::Result { call, answer } if answer.exit_code.is_none() => {
                    line(out, &call, show, |o| {
                        o.str("status", answer.status.name()).str("output", &answer.output);
                    });
                }
                _ => {}
            }
        }
    }
}

fn line(out: &mut Output, call: &Call, show: Show, fill: impl FnOnce(&mut Object<'_>)) {
    if show != Show::All {
        return;
    }
    let mut o = Object::open(out.buffer());
    o.str("type", "dry_run");
    if let Some(stream) = &call.stream {
        o.raw("stream", stream);
    }
    o.str("tool_name", &call.name).str("tool_id", &call.id);
    fill(&mut o);
    o.close();
    out.buffer().push(b'\n');
}
