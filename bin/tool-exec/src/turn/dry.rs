//! `--dry-run` and `--list-pending`: prints which calls would run, without running any.

use super::session;
use event::payload::Warning;
use event::{Event, Object};
use redact::Redactor;
use stdio::{Emit, Filter, LineHandler, LineWriter, Status};
use tool::{CallReference, Plan, PlanStep, RequestedCall, ToolAnswer, Work};

/// Which calls to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// All calls of the input, one JSON line each: what would run, or why it would not.
    All,
    /// The calls that need approval, as `ID:HASH`.
    Pending,
}

/// Prints the calls of the input that `show` selects. Unless there is an error, the status is
/// [`Status::Done`] if any of them would run (with [`Listing::Pending`]: needs approval), and
/// [`Status::No`] otherwise. `redactor` redacts the tools file's secrets.
///
/// # Errors
/// If the input or the output fails.
pub(crate) fn run(
    plan: Plan,
    filter: Filter,
    redactor: &Redactor,
    show: Listing,
) -> anyhow::Result<Status> {
    let mut dry = DryRun {
        plan,
        redactor,
        show,
        found: false,
        line: Vec::new(),
    };
    let mut outcome = stdio::drive(
        &Filter {
            emit: Emit::Lines,
            ..filter
        },
        &mut dry,
    )?;
    let tally = dry.plan.tally();
    if let Some(why) = session::why(&tally, outcome.error) {
        crate::say(&why);
    }
    outcome.error |= tally.is_failure();
    Ok(outcome.status(if dry.found { Status::Done } else { Status::No }))
}

/// Feeds the input to a real plan but starts nothing.
struct DryRun<'r> {
    plan: Plan,
    redactor: &'r Redactor,
    show: Listing,
    /// Whether a selected call was found: one that would run, or that needs approval.
    found: bool,
    line: Vec<u8>,
}

impl DryRun<'_> {
    /// Prints the plan's steps until none are left. Each call that would start gets an empty
    /// result, because the plan waits for one.
    fn print_steps(&mut self, out: &mut LineWriter<'_>) {
        let redactor = self.redactor;
        loop {
            let steps = self.plan.steps();
            if steps.is_empty() {
                return;
            }
            for step in steps {
                match step {
                    PlanStep::Start { key, call, ready } => {
                        self.found |= self.show == Listing::All;
                        self.write(&call, out, |o| {
                            o.str("status", "would_run")
                                .str("class", ready.class.name());
                            if let Ok(arguments) = &call.arguments {
                                o.raw("arguments", arguments.text());
                            }
                            match &ready.work {
                                Work::Command(argv) => o.array("argv", |items| {
                                    argv.iter().for_each(|item| {
                                        items.str(&redactor.text(item));
                                    });
                                }),
                                Work::Http(request) => o
                                    .str("method", request.method)
                                    .str("url", &redactor.url(&request.url)),
                                Work::Mcp(tool) => {
                                    o.str("server", &tool.server).str("tool", &tool.tool)
                                }
                            };
                        });
                        // The exit code marks this placeholder result, so that it is not printed.
                        self.plan.done(
                            key,
                            ToolAnswer {
                                exit_code: Some(0),
                                ..ToolAnswer::new(tool::Status::Success, "")
                            },
                        );
                    }
                    PlanStep::Result { call, answer, .. }
                        if answer.status == tool::Status::Pending
                            && self.show == Listing::Pending =>
                    {
                        self.found = true;
                        if let Some(hash) = answer.hash {
                            let id = call.id.clone();
                            out.line(&CallReference { id, hash }.to_string());
                        }
                    }
                    PlanStep::Result { call, answer, .. } if answer.exit_code.is_none() => {
                        self.write(&call, out, |o| {
                            o.str("status", answer.status.name())
                                .str("output", &answer.output);
                        });
                    }
                    _ => {}
                }
            }
        }
    }

    fn write(
        &mut self,
        call: &RequestedCall,
        out: &mut LineWriter<'_>,
        fill: impl FnOnce(&mut Object<'_>),
    ) {
        if self.show != Listing::All {
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
        out.line(&String::from_utf8_lossy(&self.line));
    }
}

impl LineHandler for DryRun<'_> {
    fn event(&mut self, event: &Event<'_>, _: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        self.plan.event(event);
        self.print_steps(out);
        false
    }

    fn blank(&mut self, _: (usize, usize), _: &mut LineWriter<'_>) {}

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        self.plan
            .event(&Event::of(&(*warning).into(), None, 0, None));
        self.print_steps(out);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        self.plan.finish();
        self.print_steps(out);
    }
}
