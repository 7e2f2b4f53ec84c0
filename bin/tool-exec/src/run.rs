//! A run: the calls of the input run, or what would run is shown.

use crate::approve::{Asker, Terminal, continuation};
use crate::args::{Args, Order};
use crate::call::Runners;
use crate::command::confine::group;
use crate::command::{raise_limits, supervisor};
use crate::mcp::Backend;
use crate::store::{Cache, Outputs, Records};
use crate::stream::{Cancels, Signals, Writer, ahead, clock};
use crate::turn::{Calls, Session, dry};
use crate::{policy, sandbox, secrets};
use anyhow::Context;
use redact::Redactor;
use std::cell::Cell;
use std::io::IsTerminal;
use std::rc::Rc;
use stdio::{Failure, LineReader, Status};
use tokio::sync::mpsc;
use tool::{Judge, Log, Plan, Settings, Tool};

/// Shows what would run, or runs it; `redactor` takes the secrets out of all that it writes.
///
/// # Errors
/// When the input, the output, a file or the sandbox that was asked for cannot be had. Whatever
/// still runs is ended.
pub fn run(
    args: &Args,
    judge: Judge,
    backend: Backend,
    redactor: Redactor,
) -> anyhow::Result<Status> {
    let missing = secrets::missing(&judge.tools);
    let mut log = Log::under_policy(args.choice, Rc::clone(&judge.policy));
    let mut filter = args.common.filter("tool-exec", args.files.clone());
    let keeping = &args.keeping;
    let runs = !args.dry_run && !args.list_pending;
    let records = if runs {
        let files = [keeping.log.as_deref(), keeping.journal.as_deref()];
        Records::open(files, &keeping.resume, &filter, &mut log)?
    } else {
        Records::look(keeping.log.as_deref(), &keeping.resume, &mut log)?;
        Records::default()
    };
    let cache = if runs { cache(args, &judge)? } else { None };
    let sandboxes = if runs {
        sandbox::sandboxes(args, &judge.tools)?
    } else {
        Default::default()
    };
    let is_confined = sandboxes.confine_all(&judge.tools);
    let settings = policy::narrowed(settings(args), &judge.policy);
    let mut plan = Plan::new(judge, settings, log);
    plan.at(clock::now());
    // With --resume alone, typed at a terminal, the log is all the input.
    if !(keeping.resume.is_empty() && keeping.log.is_none())
        && args.files.is_empty()
        && std::io::stdin().is_terminal()
    {
        filter.files.push("/dev/null".into());
    }
    let read_ahead = ahead::read_ahead(&filter.files, |line| plan.foresee_line(line));
    if !runs {
        return dry::run(
            plan,
            filter,
            &redactor,
            if args.list_pending {
                dry::Listing::Pending
            } else {
                dry::Listing::All
            },
        );
    }
    for (tool, variable) in missing {
        let text = format!(
            "{tool:?} needs {variable}, which the environment does not have: export it, else its calls fail"
        );
        stdio::message("tool-exec", &text);
    }
    group::sweep();
    raise_limits();
    let (send, input) = mpsc::channel(4);
    stdio::read_in_thread(filter.files.clone(), filter.max_line, move |piece| {
        send.blocking_send(piece).is_ok()
    })?;
    let at_once = Rc::new(Cell::new(false));
    let (asker, answers) = Asker::new(is_confined, redactor.clone());
    let outputs = Outputs::new(redactor, args.keeping.max_result, args.keeping.keep_outputs);
    let runners = Runners::new(
        &args.tools,
        backend,
        args.timeout,
        args.max_output,
        outputs,
        sandboxes,
    );
    let (mut calls, reports) = Calls::new(plan, runners, asker, Rc::clone(&at_once));
    calls.continuation = args
        .permissions
        .continue_with
        .is_none()
        .then(|| continuation::continuation(args));
    calls.cache = cache;
    let log = records.log.clone();
    calls.records = records;
    (calls.no_time, calls.progress) = (args.common.no_time, args.progress);
    let (reader, out, signals) = (
        LineReader::new(&filter),
        Writer::new(log)?,
        Signals::take()?,
    );
    let cancels = Cancels::of(args.cancel_on.as_deref())?;
    let session = Session {
        reader,
        out,
        calls,
        reports,
        answers,
        read_ahead,
        cancels,
        signals,
        at_once,
    };
    // Tokio panics where it has no files for its signals.
    stdio::check_descriptors(12)?;
    let limit = |error| Failure::Limit {
        what: "the runtime cannot be started",
        error,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(limit)?;
    let run = async {
        supervisor::prepare();
        session.run(input).await
    };
    let status = runtime.block_on(tokio::task::LocalSet::new().run_until(run));
    // The thread that watches the reader of the output, and a write that blocks, end with the
    // process.
    runtime.shutdown_background();
    status
}

/// The cache: the folder that the user names, which must be usable, else the default one where a
/// tool has a `cache` time.
fn cache(args: &Args, judge: &Judge) -> anyhow::Result<Option<Cache>> {
    let has_time = |tool: &Rc<Tool>| tool.exec.as_ref().is_some_and(|exec| exec.cache.is_some());
    match &args.keeping.cache {
        _ if args.keeping.no_cache => Ok(None),
        Some(folder) => Cache::open(folder, false).map(Some),
        None if !judge.tools.iter().any(has_time) => Ok(None),
        None => {
            let folder = Cache::default_folder().context("neither HOME nor XDG_CACHE_HOME is set");
            let cache = folder.and_then(|folder| Cache::open(&folder, true));
            let warn = |e: &anyhow::Error| {
                stdio::message(
                    "tool-exec",
                    &format!("results are not cached: {e:#}, or turn it off with --no-cache"),
                );
            };
            Ok(cache.inspect_err(warn).ok())
        }
    }
}

/// The settings of the plan.
fn settings(args: &Args) -> Settings {
    let order = match args.order {
        Order::Call => tool::Order::Call,
        Order::Completion => tool::Order::Completion,
    };
    // In a dry run no call waits for another one.
    let jobs = if args.dry_run || args.list_pending {
        usize::MAX
    } else {
        args.jobs
    };
    // What only looks asks nobody.
    let can_ask = !args.dry_run && !args.list_pending && Terminal::is_there();
    let (max_questions, max_repeats) =
        (args.permissions.max_questions, args.permissions.max_repeats);
    Settings {
        jobs,
        order,
        choice: args.choice,
        max_calls: args.max_calls,
        can_ask,
        max_questions,
        max_repeats,
    }
}
