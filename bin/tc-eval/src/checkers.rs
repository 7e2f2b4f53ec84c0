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
use std::collections::BTreeMap;
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

/// Parses the time that a command may take, which must be above 0.
fn patience(text: &str) -> Result<Duration, String> {
    let time = event::unit::time(text).map_err(|e| e.to_string())?;
    if time.is_zero() {
        Err("it must be above 0".to_owned())
    } else {
        Ok(time)
    }
}

/// A checker, found by its name.
pub(crate) enum NamedChecker {
    /// A checker of the `detect` crate, which each thread creates for itself.
    BuiltIn,
    /// A checker outside this process.
    Outside(Box<dyn Judges>),
}

/// Returns the checkers given with `--checker`, then those given with `--decisions`, each with its
/// name in reports.
///
/// # Errors
/// Fails if a name is unknown (the message lists all names), a decisions file cannot be opened, or
/// two checkers have the same name.
pub(crate) fn find(names: &[String], args: &Args) -> Result<Vec<(String, NamedChecker)>> {
    let mut found: Vec<(String, NamedChecker)> = Vec::new();
    for checker in names {
        let (name, command) = named_command(checker);
        let is_taken = found.iter().any(|(other, _)| *other == name);
        if is_taken || command.is_some() && is_built_in(name) {
            bail!(
                "--checker '{checker}': choose another name, '{name}' is that of another checker"
            );
        }
        found.push((name.to_owned(), find_one(checker, args.checker_timeout)?));
    }
    for named in &args.decisions {
        let name = of_decisions(named).to_owned();
        if found.iter().any(|(other, _)| *other == name) || is_built_in(&name) {
            bail!("--decisions {named}: choose another name, '{name}' is that of another checker");
        }
        let decisions = Decisions::open(named)?;
        found.push((name, NamedChecker::Outside(Box::new(decisions))));
    }
    Ok(found)
}

/// Returns the checkers that the user named, each with the option and value that select it;
/// checkers whose name alone selects them are left out.
pub(crate) fn named_by(names: &[String], args: &Args) -> BTreeMap<String, [String; 2]> {
    let commands = names
        .iter()
        .map(|text| (named_command(text).0, ["--checker", text]));
    let decisions = args.decisions.iter();
    let decisions = decisions.map(|text| (of_decisions(text), ["--decisions", text]));
    commands
        .chain(decisions)
        .filter(|(name, [_, text])| name != text)
        .map(|(name, option)| (name.to_owned(), option.map(str::to_owned)))
        .collect()
}

/// Returns the name of a checker in reports, and the command of `NAME=cmd:COMMAND` or
/// `cmd:COMMAND`; `None` for other checkers.
fn named_command(checker: &str) -> (&str, Option<&str>) {
    match checker.strip_prefix("cmd:") {
        Some(command) => (checker, Some(command)),
        None => match checker.split_once("=cmd:") {
            Some((name, command)) => (name, Some(command)),
            None => (checker, None),
        },
    }
}

/// Returns the name in `NAME=FILE`.
fn of_decisions(named: &str) -> &str {
    named.split_once('=').map_or("", |(name, _)| name)
}

fn find_one(checker: &str, patience: Duration) -> Result<NamedChecker> {
    if let (name, Some(command)) = named_command(checker) {
        if command.trim().is_empty() || name.trim().is_empty() {
            bail!(
                "--checker '{checker}': write a name and a command, such as 'mine=cmd:python3 mine.py', \
                 or 'cmd:python3 mine.py'"
            );
        }
        return Ok(NamedChecker::Outside(Box::new(CheckerCommands::new(
            command, patience,
        ))));
    }
    if is_built_in(checker) {
        return Ok(NamedChecker::BuiltIn);
    }
    let names: Vec<_> = CHECKERS.iter().map(|row| row.name).collect();
    bail!(
        "unknown checker '{checker}', use one of: {}, cmd:COMMAND, NAME=cmd:COMMAND",
        names.join(", ")
    )
}

fn is_built_in(name: &str) -> bool {
    detect::checkers(name, &CallFilter::default()).is_some()
}
