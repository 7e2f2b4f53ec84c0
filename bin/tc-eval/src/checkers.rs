//! The checkers that `--checker` and `--decisions` name.

mod answer;
mod command;
mod decisions;
mod lines;
mod process;

pub(crate) use answer::GivenAnswer;

use crate::evaluate::judge::Judges;
use anyhow::{Result, bail};
use command::CheckerCommands;
use decisions::Decisions;
use detect::{CHECKERS, CallFilter};
use std::time::Duration;

/// The options of checkers outside of this process.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// How long a cmd: checker may take to read or to answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = patience)]
    pub checker_timeout: Duration,
    /// Decisions that were made elsewhere, as a checker of that name; may be given several times
    #[arg(long, value_name = "NAME=FILE")]
    pub decisions: Vec<String>,
}

/// Reads how long a command may take: a time above 0.
fn patience(text: &str) -> Result<Duration, String> {
    let time = event::unit::time(text).map_err(|e| e.to_string())?;
    if time.is_zero() {
        Err("it must be above 0".to_owned())
    } else {
        Ok(time)
    }
}

/// A checker by its name.
pub(crate) enum NamedChecker {
    /// One of `detect`, which each thread makes for itself.
    BuiltIn,
    /// One outside of this process.
    Outside(Box<dyn Judges>),
}

/// The checkers that `--checker` names, then those of `--decisions`, each with its name in reports.
///
/// # Errors
/// When a name is unknown (the message lists all names), a file of decisions cannot be opened, or
/// its name is that of another checker.
pub(crate) fn find(names: &[String], args: &Args) -> Result<Vec<(String, NamedChecker)>> {
    let named = names
        .iter()
        .map(|name| Ok((name.clone(), find_one(name, args.checker_timeout)?)));
    let mut found = named.collect::<Result<Vec<_>>>()?;
    for named in &args.decisions {
        let name = named
            .split_once('=')
            .map_or("", |(name, _)| name)
            .to_owned();
        if found.iter().any(|(other, _)| *other == name) || is_built_in(&name) {
            bail!("--decisions {named}: another checker has the name '{name}', choose another");
        }
        let decisions = Decisions::open(named)?;
        found.push((name, NamedChecker::Outside(Box::new(decisions))));
    }
    Ok(found)
}

fn find_one(name: &str, patience: Duration) -> Result<NamedChecker> {
    if let Some(command) = name.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            bail!(
                "--checker cmd: has no command, write one behind it, such as 'cmd:python3 mine.py'"
            );
        }
        return Ok(NamedChecker::Outside(Box::new(CheckerCommands::new(
            command, patience,
        ))));
    }
    if is_built_in(name) {
        return Ok(NamedChecker::BuiltIn);
    }
    let names: Vec<_> = CHECKERS.iter().map(|row| row.name).collect();
    bail!(
        "unknown checker '{name}', use one of: {}, cmd:COMMAND",
        names.join(", ")
    )
}

fn is_built_in(name: &str) -> bool {
    detect::checkers(name, &CallFilter::default()).is_some()
}
