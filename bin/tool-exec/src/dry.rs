//! What would run, without running it.

use crate::failure;
use crate::input::Piece;
use crate::lines::{Line, Lines};
use event::{Kind, Object};
use stdio::{Outcome, Output, Status};
use tokio::sync::mpsc;
use tool::{Answer, Call, Plan, Step};

/// Prints one JSON line for each call of the input: its command line, or why it would not run.
///
/// # Errors
/// When the input or the output fails.
pub fn run(mut plan: Plan, mut lines: Lines, mut pieces: mpsc::Receiver<Piece>) -> anyhow::Result<Status> {
    let mut out = Output::new();
    let mut outcome = Outcome::default();
    let mut runs = false;
    loop {
        let piece = pieces.blocking_recv().unwrap_or(Piece::End);
        let mut at = 0;
        while let Some(line) = lines.next(&piece, &mut at)? {
            if let Line::Event(event, _) = line {
                outcome.error |= event.kind() == Kind::Error;
                plan.event(&event);
                runs |= steps(&mut plan, &mut out);
            }
        }
        match piece {
            Piece::End => break,
            Piece::Failed(failure) => return Err(failure.into()),
            _ => out.flush()?,
        }
    }
    plan.finish();
    runs |= steps(&mut plan, &mut out);
    out.flush()?;
    let tally = plan.tally();
    if let Some(why) = failure::why(&tally, outcome.error) {
        stdio::message("tool-exec", &why);
    }
    outcome.error |= tally.is_failure();
    Ok(outcome.status(if runs { Status::Done } else { Status::No }))
}

/// Writes down the plan's steps; gives whether one of them would start something.
fn steps(plan: &mut Plan, out: &mut Output) -> bool {
    let mut runs = false;
    loop {
        let steps = plan.steps();
        if steps.is_empty() {
            return runs;
        }
        for step in steps {
            match step {
                Step::Start { key, call, ready } => {
                    runs = true;
                    line(out, &call, |o| {
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
                Step::Result { call, answer } if answer.exit_code.is_none() => {
                    line(out, &call, |o| {
                        o.str("status", answer.status.name()).str("output", &answer.output);
                    });
                }
                _ => {}
            }
        }
    }
}

fn line(out: &mut Output, call: &Call, fill: impl FnOnce(&mut Object<'_>)) {
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
