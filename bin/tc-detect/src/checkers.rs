//! All checkers by their names: those of `detect`, and `cmd:`, which starts processes.

use crate::command::Command;
use crate::learn::Learning;
use anyhow::{Context, bail};
use detect::{CHECKERS, CallFilter, Checkers, Factory, Risk, Settings};
use std::rc::Rc;

/// The name of the adapter and how it decides.
const COMMAND: (&str, &str) = (
    "cmd:COMMAND",
    "any command that reads events and exits 0 or 1",
);

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHECKERS
        .iter()
        .map(|row| (row.name, row.help))
        .chain([COMMAND])
}

/// The help of `--checker`.
pub fn help() -> String {
    let checkers: Vec<_> = all()
        .map(|(name, help)| format!("{name} ({help})"))
        .collect();
    format!("Who decides: {}", checkers.join(", "))
}

/// The checkers of that name, which count live streams where `learning` is given; `calls` decides
/// what counts as a call.
///
/// # Errors
/// When the name is unknown; the message lists all names. When the file of `--learn` is not a
/// table, or another checker should learn.
pub fn find(
    name: &str,
    calls: &CallFilter,
    risk: Risk,
    learning: Option<&Learning>,
) -> anyhow::Result<Checkers> {
    let usual = named(name, calls, &Settings { risk, table: None })?;
    let Some(learning) = learning else {
        return Ok(usual);
    };
    if name != "auto" && !name.starts_with("auto:") {
        bail!("--learn: {name} does not learn, use --checker auto");
    }
    if calls.name.is_some() {
        bail!("--learn: counts calls of all tools, leave --name out");
    }
    let table = Some(Rc::new(learning.table()?));
    Ok(learning.checkers(usual, named(name, calls, &Settings { risk, table })?))
}

fn named(name: &str, calls: &CallFilter, settings: &Settings) -> anyhow::Result<Checkers> {
    if let Some(command) = name.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            bail!(
                "--checker cmd: has no command, write one behind it, such as 'cmd:grep -q tool_call_delta'"
            );
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
