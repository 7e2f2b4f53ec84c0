//! What would run, without running it.

use super::failure;
use event::payload::Warning;
use event::{Event, Object};
use stdio::{Copy, Emit, Filter, Stage, Status};
use tool::{Answer, Call, Plan, PlanStep};

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// One JSON line for each call of the input: its command line, or why it would not run.
    All,
    /// The ids of the calls that wait for a person.
    Pending,
}

/// Prints what would become of the calls of the input. The answer is whether there is anything of that kind.
///
/// # Errors
/// When the input or the output fails.
pub fn run(plan: Plan, filter: Filter, show: Show) -> anyhow::Result<Status> {
    let mut dry = DryRun { plan, show, found: false, line: Vec::new() };
    let mut outcome = stdio::drive(&Filter { emit: Emit::Lines, ..filter }, &mut dry)?;
    let tally = dry.plan.tally();
    if let Some(why) = failure::why(&tally, outcome.error) {
        stdio::message("tool-exec", &why);
    }
    outcome.error |= tally.is_failure();
    Ok(outcome.status(if dry.found { Status::Done } else { Status::No }))
}

/// The calls of the input, none of which runs.
struct DryRun {
    plan: Plan,
    show: Show,
    /// Whether one of them is of the kind that is asked for: would start, or waits for a person.
    found: bool,
    line: Vec<u8>,
}

impl DryRun {
    /// Writes the plan's steps down.
    fn settle(&mut self, copy: &mut Copy<'_>) {
        loop {
            let steps = self.plan.steps();
            if steps.is_empty() {
                return;
            }
            for step in steps {
                match step {
                    PlanStep::Start { key, call, ready } => {
                        self.found |= self.show == Show::All;
                        self.write(&call, copy, |o| {
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
                        // The exit code marks it, so that its result is not written as that of a call which does not run.
                        self.plan.done(key, Answer { exit_code: Some(0), ..Answer::new(tool::Status::Success, "") });
                    }
                    PlanStep::Result { call, answer }
                        if answer.status == tool::Status::Pending && self.show == Show::Pending =>
                    {
                        self.found = true;
                        copy.line(&call.id);
                    }
                    PlanStep::Result { call, answer } if answer.exit_code.is_none() => {
                        self.write(&call, copy, |o| {
                            o.str("status", answer.status.name()).str("output", &answer.output);
                        });
                    }
                    _ => {}
                }
            }
        }
    }

    fn write(&mut self, call: &Call, copy: &mut Copy<'_>, fill: impl FnOnce(&mut Object<'_>)) {
        if self.show != Show::All {
            return;
        }
        self.line.clear();
        let mut o = Object::open(&mut self.line);
        o.str("type", "dry_run");
        if let Some(stream) = &call.stream {
            o.raw("stream", stream);
        }
        o.str("tool_name", &call.name).str("tool_id", &call.id);
        fill(&mut o);
        o.close();
        copy.line(&String::from_utf8_lossy(&self.line));
    }
}

impl Stage for DryRun {
    fn event(&mut self, event: &Event<'_>, _: (usize, usize), copy: &mut Copy<'_>) -> bool {
        self.plan.event(event);
        self.settle(copy);
        false
    }

    fn blank(&mut self, _: (usize, usize), _: &mut Copy<'_>) {}

    fn bad_line(&mut self, warning: &Warning<'_>, copy: &mut Copy<'_>) {
        self.plan.event(&Event::of(&(*warning).into(), None, 0, None));
        self.settle(copy);
    }

    fn finish(&mut self, copy: &mut Copy<'_>) {
        self.plan.finish();
        self.settle(copy);
    }
}
