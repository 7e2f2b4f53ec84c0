//! `tool-exec`: run the tool calls of a stream and write their answers.

// Without the `mcp` feature no servers are started, so the code that confines them is unused.
#![cfg_attr(not(feature = "mcp"), allow(dead_code, unused_imports))]

mod approve;
mod args;
mod call;
mod command;
mod doctor;
mod http;
mod mcp;
mod policy;
mod progress;
mod replay;
mod run;
mod secrets;
mod store;
mod stream;
mod task;
mod turn;

use anyhow::Context;
use args::Args;
use command::confine::stage;
use command::supervisor;
use mcp::{Backend, Setup, Unlocked};
use policy::judge;
use run::run;
use std::process::ExitCode;
use std::rc::Rc;
use stdio::Status;
use store::Cache;
use tool::{Judge, SandboxKind, Tools};
use toolbox::{Access, Toolbox, trust};

/// One line on what the command does.
pub const ABOUT: &str = env!("CARGO_PKG_DESCRIPTION");

/// Returns the value of an environment variable, or `None` if it is unset or not valid UTF-8.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Writes a message to standard error, prefixed with the name of this command.
fn say(text: &str) {
    stdio::message("tool-exec", text);
}

/// Runs the command with the arguments of this process and returns its exit status.
pub fn main() -> ExitCode {
    supervisor::run_if_asked()
        .or_else(stage::run_if_asked)
        .unwrap_or_else(|| {
            supervisor::keep_private();
            ::args::run(exec)
        })
}

/// Reads the tools, then lists them, shows which calls would run, or runs the calls.
fn exec(mut args: Args) -> anyhow::Result<Status> {
    ::args::warn_of_old_name("tool-exec", "--approve", "--ask");
    args.permissions.add_answers()?;
    if args.confining.doctor {
        return doctor::report(args.confining.sandbox);
    }
    if !args.describe.is_empty() {
        return describe(&args);
    }
    if args.keeping.cache_stats {
        return cache_stats(&args);
    }
    if !args.servers.hub {
        // A supervisor may outlive this process. It must not keep inherited descriptors open, such
        // as the lock of `react`.
        close_fds::set_fds_cloexec(3, &[]);
    }
    args.toolbox = Toolbox::read(&args.tools, &access(&args))?;
    let looks = args.list || args.servers.update_lock || args.servers.hub;
    let unlocked = if looks {
        Unlocked::Show
    } else {
        Unlocked::Refuse
    };
    let replay = args.replay.as_deref();
    let replay = replay.map(|log| replay::read(log, &args)).transpose()?;
    let setup = match &replay {
        // Without `--tools` the recording is the only source of tools.
        Some(replay) if args.tools.is_empty() => Setup::of_text(&replay.tools_file())?,
        _ => Setup::read(
            &args.toolbox,
            args.servers.lock.as_deref(),
            unlocked,
            run::confines(&args),
        )?,
    };
    // A replay runs nothing, so the files need not be trusted.
    if !args.permissions.trust && replay.is_none() {
        trust::toolbox(&args.toolbox, &setup.tools)?;
        args.permissions
            .policy
            .iter()
            .try_for_each(|path| trust::file(path))?;
        trust::servers(
            &args.toolbox.folder,
            &setup.pool.file.path,
            &setup.pool.servers,
        )?;
    }
    if args.servers.update_lock {
        setup.update_lock(&args.toolbox)?;
        return Ok(Status::Done);
    }
    if args.servers.hub {
        return setup.hub(&args.files);
    }
    let backend = if replay.is_some() {
        Backend::Own(Rc::clone(&setup.pool))
    } else {
        setup.backend()?
    };
    if args.list {
        setup.verify(&backend)?;
        return list(&judge(&args, setup.tools)?);
    }
    let redactor = setup.pool.redactor.clone();
    let judge = judge(&args, setup.tools)?;
    let clean = redactor.clone();
    run(&args, judge, backend, (redactor, replay)).map_err(|error| secrets::without(error, &clean))
}

/// Returns the terms under which sources of tools may be read.
fn access(args: &Args) -> Access<'_> {
    let is_confined = args.confining.sandbox != SandboxKind::None;
    Access {
        trust: args.permissions.trust,
        asks_nobody: is_confined.then_some("--sandbox"),
        fetch: Some(&http::document),
        lock: args.servers.lock.as_deref(),
        only_shows: args.servers.update_lock || !args.describe.is_empty(),
    }
}

/// Prints the tools file merged from the sources of `--describe`.
fn describe(args: &Args) -> anyhow::Result<Status> {
    let toolbox = Toolbox::merged(&args.describe, &access(args))?;
    let (tools, _) = toolbox.parse(Tools::read_beside_servers)?;
    if !args.permissions.trust {
        trust::toolbox(&toolbox, &tools)?;
    }
    for why in &toolbox.left_out {
        crate::say(why);
    }
    print(&event::safe_json(&toolbox.pretty()?))
}

/// Prints the statistics of the cache.
fn cache_stats(args: &Args) -> anyhow::Result<Status> {
    let folder = args.keeping.cache.clone().or_else(Cache::default_folder);
    let folder = folder
        .context("neither HOME nor XDG_CACHE_HOME is set, name the folder with --cache DIR")?;
    let cache = folder
        .symlink_metadata()
        .is_ok()
        .then(|| Cache::open(&folder, false))
        .transpose()?;
    let stats = cache.map(|cache| cache.stats()).unwrap_or_default();
    print(&serde_json::to_string(&stats)?)
}

/// Prints the tools in the form that a request to a model takes.
fn list(judge: &Judge) -> anyhow::Result<Status> {
    // Some descriptions come from servers, and the output may be a terminal.
    let list = judge.tools.list(|name| judge.lets_through(name));
    print(&event::safe_json(&list))
}

fn print(line: &str) -> anyhow::Result<Status> {
    let mut out = stdio::Output::new();
    out.put(line.as_bytes())?;
    out.put(b"\n")?;
    out.flush()?;
    Ok(Status::Done)
}
