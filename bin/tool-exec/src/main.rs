//! `tool-exec`: run the tool calls of a stream, and answer them.

mod args;
mod command;
mod store;
mod stream;
mod turn;

use anyhow::Context;
use args::{Approve, Args, Order};
use command::{Runner, raise_limits, supervise};
use std::cell::Cell;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::rc::Rc;
use stdio::{Failure, LineReader, Status};
use store::{Cache, Journal};
use stream::{Signals, Writer, ahead};
use tokio::sync::mpsc;
use tool::{Glob, Judge, Log, Plan, Rules, Settings, Tools};
use turn::{Calls, Session, dry};

fn main() -> ExitCode {
    supervise::run_if_asked().unwrap_or_else(|| ::args::run(exec))
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
    let mut filter = args.common.filter("tool-exec", args.files.clone());
    // With --resume alone, typed at a terminal, the log is all the input.
    if !args.resume.is_empty() && args.files.is_empty() && std::io::stdin().is_terminal() {
        filter.files.push("/dev/null".into());
    }
    let read_ahead = ahead::read_ahead(&filter.files, |line| plan.foresee_line(line));
    if args.dry_run || args.list_pending {
        return dry::run(plan, filter, if args.list_pending { dry::Listing::Pending } else { dry::Listing::All });
    }
    raise_limits();
    let (send, input) = mpsc::channel(4);
    stdio::read_in_thread(filter.files.clone(), filter.max_line, move |piece| send.blocking_send(piece).is_ok())?;
    let at_once = Rc::new(Cell::new(false));
    let runner = Runner::new(&args.tools, args.timeout, args.max_output);
    let (mut calls, reports) = Calls::new(plan, runner, Rc::clone(&at_once));
    calls.cache = args.cache.as_deref().map(Cache::open).transpose()?;
    calls.journal = args.journal.as_deref().map(Journal::open).transpose()?;
    (calls.no_time, calls.progress) = (args.common.no_time, args.progress);
    let (reader, out, signals) = (LineReader::new(&filter), Writer::new()?, Signals::take()?);
    let session = Session { reader, out, calls, reports, read_ahead, signals, at_once };
    // Tokio panics where it has no files for its signals.
    stdio::check_descriptors(12)?;
    let limit = |error| Failure::Limit { what: "the runtime cannot be started", error };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(limit)?;
    let status = runtime.block_on(tokio::task::LocalSet::new().run_until(session.run(input)));
    // The thread that watches the reader of the output, and a write that blocks, end with the process.
    runtime.shutdown_background();
    status
}

/// The tools, and the rules about which of them may run.
fn judge(args: &Args) -> anyhow::Result<Judge> {
    let tools = ::args::file(&args.tools, Tools::read)?;
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
    // In a dry run no call waits for another one.
    let jobs = if args.dry_run || args.list_pending { usize::MAX } else { args.jobs };
    Settings { jobs, order, choice: args.choice, max_calls: args.max_calls }
}

fn list(judge: &Judge) -> anyhow::Result<Status> {
    let mut out = stdio::Output::new();
    out.put(judge.tools.list(|name| judge.rules.let_through(name)).as_bytes())?;
    out.put(b"\n")?;
    out.flush()?;
    Ok(Status::Done)
}
