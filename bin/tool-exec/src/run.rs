//! One run: executes the calls of the input, or shows which calls would run.

use super::approve::{Asker, QuestionTerminal};
use super::args::Args;
use super::call::Runners;
use super::command::confine::sandboxes::{ProtectedFile, standard_files};
use super::command::confine::{Sandboxes, groups};
use super::command::program::HUB;
use super::command::{Commands, raise_limits};
use super::http::Sender;
use super::mcp::{Backend, Confines};
use super::store::{Cache, Outputs, Records, Spill, look};
use super::stream::{OutputThread, SignalsSeen};
use super::turn::{CallOptions, Calls, ToolSession, dry};
use super::{approve, policy, secrets, stream};
use anyhow::Context;
use redact::Redactor;
use std::cell::Cell;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::rc::Rc;
use stdio::{LineReader, Status};
use tokio::sync::mpsc;
use tool::{CallReplay, Judge, Log, Plan, PlanSettings, Tool, Tools};
use toolbox::LockFile;

/// Shows which calls would run, or runs them. `redactor` removes the secrets from all output.
///
/// # Errors
/// If the input, the output, a file or the requested sandbox is unavailable. Calls that are still
/// running are ended.
pub(crate) fn run(
    args: &Args,
    judge: Judge,
    backend: Backend,
    (redactor, replay): (Redactor, Option<CallReplay>),
) -> anyhow::Result<Status> {
    let missing = secrets::missing(&judge.tools);
    let mut log = Log::under_policy(args.choice, Rc::clone(&judge.policy));
    let mut filter = args.common.filter("tool-exec", args.files.clone());
    let keeping = &args.keeping;
    let runs = !args.dry_run && !args.list_pending;
    let records = if runs {
        Records::open(keeping, &filter, &mut log)?
    } else {
        look(keeping, &mut log)?;
        Records::default()
    };
    let starts = runs && replay.is_none();
    let cache = if starts { cache(args, &judge)? } else { None };
    let sandboxes = if starts {
        sandboxes(args, &judge.tools)?
    } else {
        Default::default()
    };
    let is_confined = sandboxes.confine_all(&judge.tools);
    let mut settings = policy::narrowed(settings(args), &judge.policy);
    // In a replay the recording answers the questions.
    settings.can_ask |= replay.is_some();
    let mut plan = Plan::new(judge, settings, log);
    plan.at(stream::now());
    // If a user types `--resume` at a terminal and names no files, the log is the whole input.
    if !(keeping.resume.is_empty() && keeping.log.is_none())
        && args.files.is_empty()
        && std::io::stdin().is_terminal()
    {
        filter.files.push("/dev/null".into());
    }
    let read_ahead = stream::read_ahead(&filter.files, |line| plan.foresee(line));
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
    for (tool, variable) in missing.into_iter().filter(|_| starts) {
        let text = format!(
            "{tool:?} needs {variable}, which the environment does not have: export it, else its calls fail"
        );
        crate::say(&text);
    }
    groups::sweep();
    raise_limits();
    let (send, input) = mpsc::channel(4);
    stdio::read_in_thread(filter.files.clone(), filter.max_line, move |piece| {
        send.blocking_send(piece).is_ok()
    })?;
    let at_once = Rc::new(Cell::new(false));
    let (asker, answers) = Asker::new(is_confined, redactor.clone());
    let runners = Runners {
        timeout: args.timeout,
        max_output: args.max_output,
        outputs: Outputs::new(redactor, keeping.max_result, keeping.keep_outputs),
        commands: Commands::new(args.toolbox.folder.clone(), sandboxes),
        sender: Sender::default(),
        backend,
    };
    let is_continued_here = args.permissions.continue_with.is_none();
    let options = CallOptions {
        no_time: args.common.no_time,
        progress: args.progress,
        continuation: is_continued_here.then(|| approve::continuation(args)),
        answered_by: args.permissions.answered_by.clone(),
        trace: ::args::trace(),
        at_once: Rc::clone(&at_once),
        replay,
    };
    let log = records.log.clone();
    let (calls, reports) = Calls::new(plan, runners, (cache, records), asker, options);
    let session = ToolSession {
        reader: LineReader::new(&filter),
        out: OutputThread::new(log)?,
        calls,
        reports,
        answers,
        read_ahead,
        signals: SignalsSeen::take()?,
        at_once,
    };
    stream::block_on(session.run(input))
}

/// Opens the cache. A folder given with `--cache` must be usable; otherwise the default folder is
/// used if any tool has a `cache` time. Returns `None` if nothing is cached.
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
                crate::say(&format!(
                    "results are not cached: {e:#}, or turn it off with --no-cache"
                ));
            };
            Ok(cache.inspect_err(warn).ok())
        }
    }
}

/// Returns the settings of the plan.
fn settings(args: &Args) -> PlanSettings {
    // In a dry run calls do not wait for each other.
    let jobs = if args.dry_run || args.list_pending {
        usize::MAX
    } else {
        args.jobs
    };
    // A dry run asks no questions.
    let can_ask = !args.dry_run && !args.list_pending && QuestionTerminal::is_there();
    PlanSettings {
        jobs,
        order: args.order,
        choice: args.choice,
        max_calls: args.max_calls,
        can_ask,
        max_questions: args.permissions.max_questions,
        max_repeats: args.permissions.max_repeats,
    }
}

// The sandboxes of a run, from the command line.

/// Returns the sandboxes for the commands of these tools.
///
/// # Errors
/// If a sandbox is unavailable, or if an allow-list would expose one of tool-exec's own files.
pub(crate) fn sandboxes(args: &Args, tools: &Tools) -> anyhow::Result<Sandboxes> {
    Sandboxes::check(
        args.confining.sandbox,
        tools,
        &args.toolbox.folder,
        &own_files(args),
    )
}

/// Returns the confinement of MCP servers that run as programs.
pub(crate) fn confines(args: &Args) -> Confines {
    Confines {
        least: args.confining.sandbox,
        protected: own_files(args),
    }
}

/// Returns tool-exec's own files, which no command may write. Some of them may not exist yet.
fn own_files(args: &Args) -> Vec<ProtectedFile> {
    let keeping = &args.keeping;
    let mut all = Vec::new();
    let lists = [
        ("the tools file", args.toolbox.places.as_slice()),
        ("the log", keeping.log.as_slice()),
        ("the log", &keeping.resume),
        ("the journal", keeping.journal.as_slice()),
        ("the policy", args.permissions.policy.as_slice()),
        ("the recording", args.replay.as_slice()),
    ];
    all.extend(
        lists
            .into_iter()
            .flat_map(|(what, paths)| paths.iter().map(move |path| (what, path.clone()))),
    );
    all.push((
        "the lock file",
        LockFile::new(args.servers.lock.as_deref(), &args.toolbox).path,
    ));
    let hub = std::env::var_os(HUB)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let cache = keeping
        .cache
        .clone()
        .or_else(Cache::default_folder)
        .filter(|_| !keeping.no_cache);
    let places = [
        ("the hub's socket", hub),
        ("the cache", cache),
        ("the folder of whole outputs", Spill::default_folder()),
    ];
    all.extend(
        places
            .into_iter()
            .filter_map(|(what, path)| Some((what, path?))),
    );
    all.into_iter()
        .map(|(what, path)| ProtectedFile { what, path })
        .chain(standard_files())
        .collect()
}
