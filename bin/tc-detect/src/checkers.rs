//! All checkers by their names: those of `detect`, and `cmd:`, which starts processes.

use crate::args::Args;
use crate::command::Command;
use crate::learn::Learning;
use anyhow::{Context, bail};
use detect::{CHECKERS, CallFilter, Checkers, Factory, Settings};
use std::rc::Rc;

/// The name of the adapter and how it decides.
const COMMAND: (&str, &str) = ("cmd:COMMAND", "any command that reads events and exits 0 or 1");

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHECKERS.iter().map(|row| (row.name, row.help)).chain([COMMAND])
}

/// The help of `--checker`.
pub fn help() -> String {
    let checkers: Vec<_> = all().map(|(name, help)| format!("{name} ({help})")).collect();
    format!("Who decides: {}", checkers.join(", "))
}

/// The checkers that the arguments name, and what they learn.
///
/// # Errors
/// When the name is unknown; the message lists all names. When the file of `--learn` is not a table, or another checker should learn.
pub fn find(args: &Args) -> anyhow::Result<(Checkers, Option<Learning>)> {
    let usual = named(&args.checker, &args.calls(), &Settings { risk: args.risk, table: None })?;
    let Some(path) = &args.learn else { return Ok((usual, None)) };
    if args.checker != "auto" && !args.checker.starts_with("auto:") {
        bail!("--learn: {} does not learn, use --checker auto", args.checker);
    }
    if args.name.is_some() {
        bail!("--learn: counts calls of all tools, leave --name out");
    }
    if args.is_past() {
        return Ok((usual, None));
    }
    let learning = Learning::new(path);
    let table = Some(Rc::new(learning.table()?));
    let learned = named(&args.checker, &args.calls(), &Settings { risk: args.risk, table })?;
    Ok((learning.checkers(usual, learned), Some(learning)))
}

fn named(name: &str, calls: &CallFilter, settings: &Settings) -> anyhow::Result<Checkers> {
    if let Some(command) = name.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            bail!("--checker cmd: has no command, write one behind it, such as 'cmd:grep -q tool_call_delta'");
        }
        let command = command.to_owned();
        let factory: Factory = Rc::new(move || Box::new(Command::start(&command)));
        return Ok(Rc::new(move |_| Rc::clone(&factory)));
    }
    detect::checkers_with(name, calls, settings).with_context(|| {
        let names: Vec<_> = all().map(|(name, _)| name).collect();
        format!("unknown checker '{name}', use one of: {}", names.join(", "))
    })
}
