//! `tool-exec`: run the tool calls of a stream, and answer them.

mod args;
mod cache;
mod dry;
mod failure;
mod input;
mod journal;
mod lines;
mod output;
mod program;
mod run;
mod scratch;
mod session;
mod signals;
mod supervise;

use anyhow::Context;
use args::{Approve, Args, Order};
use lines::Lines;
use session::Session;
use std::io::IsTerminal;
use std::process::ExitCode;
use stdio::{Failure, Status};
use tool::{Glob, Judge, Log, Plan, Rules, Settings, Tools};

fn main() -> ExitCode {
    supervise::asked().unwrap_or_else(|| ::args::run(exec))
}

/// Reads the tools, then lists them, shows what would run, or runs it.
fn exec(args: Args) -> anyhow::Result<Status> {
    let judge = judge(&args)?;
    if args.list {
        return list(&judge);
    }
    let mut log = Log::of_choice(args.choice);
    for path in &args.resume {
        let bytes = std::fs::read(path)
            .with_context(|| format!("{}: the log cannot be read, check the path", path.display()))?;
        bytes.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok()).for_each(|line| log.line(line));
    }
    let mut plan = Plan::new(judge, settings(&args), log);
    let read_ahead = input::read_ahead(&args.files, |line| plan.foresee_line(line));
    let lines = Lines::new(args.common.filter("tool-exec", args.files.clone()));
    // Somebody who types that a log is to be finished has nothing to add to it.
    let log_only = !args.resume.is_empty() && args.files.is_empty() && std::io::stdin().is_terminal();
    let pieces = if log_only { input::nothing() } else { input::start(args.files.clone(), args.common.max_line)? };
    if args.dry_run || args.list_pending {
        let show = if args.list_pending { dry::Show::Pending } else { dry::Show::All };
        return dry::run(plan, lines, pieces, show);
    }
    run::raise_limits();
    let session = Session {
        plan,
        lines,
        read_ahead,
        runner: run::runner(&args.tools, args.timeout, args.max_output),
        cache: args.cache.as_deref().map(cache::Cache::open).transpose()?,
        journal: args.journal.as_deref().map(journal::Journal::open).transpose()?,
        out: output::Writer::new(args.common.no_time)?,
        no_time: args.common.no_time,
        progress: args.progress,
        errors: stdio::Errors::passed("tool-exec"),
    };
    signals::end_when_busy()?;
    // Tokio panics where it has no files for its signals.
    stdio::check_descriptors(12)?;
    let limit = |error| Failure::Limit { what: "the runtime cannot be started", error };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(limit)?;
    let status = runtime.block_on(tokio::task::LocalSet::new().run_until(session.run(pieces)));
    // The thread that waits for the reader of the output, and a write that blocks, end with the process.
    runtime.shutdown_background();
    status
}

/// The tools file, and what of it may run.
fn judge(args: &Args) -> anyhow::Result<Judge> {
    let name = args.tools.display();
    let text =
        std::fs::read(&args.tools).with_context(|| format!("{name}: the tools file cannot be read, check the path"))?;
    let text =
        String::from_utf8(text).ok().with_context(|| format!("{name}: not UTF-8, write the tools file as UTF-8"))?;
    let tools = Tools::read(&text).with_context(|| name.to_string())?;
    let globs = |patterns: &[String]| patterns.iter().map(|p| Glob::new(p)).collect();
    let rules = Rules {
        allow: globs(&args.allow),
        deny: globs(&args.deny),
        danger: args.approve == Approve::None,
        approved: args.approve_call.iter().cloned().collect(),
        denied: args.deny_call.iter().cloned().collect(),
    };
    Ok(Judge { tools, rules })
}

fn settings(args: &Args) -> Settings {
    let order = match args.order {
        Order::Call => tool::Order::Call,
        Order::Completion => tool::Order::Completion,
    };
    // In a dry run nothing takes a place.
    let jobs = if args.dry_run || args.list_pending { usize::MAX } else { args.jobs };
    Settings { jobs, order, choice: args.choice, max_calls: args.max_calls }
}

fn list(judge: &Judge) -> anyhow::Result<Status> {
    let mut out = stdio::Output::new();
    out.put(judge.tools.list(|tool| judge.rules.let_through(&tool.name)).as_bytes())?;
    out.put(b"\n")?;
    out.flush()?;
    Ok(Status::Done)
}
