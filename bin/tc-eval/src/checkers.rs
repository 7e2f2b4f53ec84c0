//! The checkers that `--checker` and `--decisions` name.

mod answer;
mod command;
mod decisions;
mod lines;
mod process;

use crate::evaluate::judge::Judges;
use anyhow::{Result, bail};
use command::Commands;
use decisions::Decisions;
use detect::{CHECKERS, CallFilter};
use std::time::Duration;

/// The options of checkers outside of this process.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How long a cmd: checker may take to read or to answer before its stream counts as undecided
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = event::unit::time)]
    pub checker_timeout: Duration,
    /// Decisions that were made elsewhere, as one more checker of that name; may be given several times
    #[arg(long, value_name = "NAME=FILE")]
    pub decisions: Vec<String>,
}

/// A checker by its name.
pub enum Checker {
    /// One of `detect`, which each thread makes for itself.
    BuiltIn,
    /// One outside of this process.
    Outside(Box<dyn Judges>),
}

/// The checkers that `--checker` names, then those of `--decisions`, each with its name in reports.
///
/// # Errors
/// When a name is unknown (the message lists all names), is given twice, or a file of decisions cannot be opened.
pub fn find_all(names: &[String], args: &Args) -> Result<Vec<(String, Checker)>> {
    let mut found: Vec<(String, Checker)> = Vec::new();
    for name in names {
        found.push((name.clone(), find_one(name, args.checker_timeout)?));
    }
    for named in &args.decisions {
        let decisions = Decisions::open(named)?;
        found.push((decisions.name().to_owned(), Checker::Outside(Box::new(decisions))));
    }
    for (index, (name, _)) in found.iter().enumerate() {
        if found[..index].iter().any(|(other, _)| other == name) {
            bail!("two checkers have the name '{name}', remove one or give --decisions another name");
        }
    }
    Ok(found)
}

/// The checker of that name, where a command may take 30 seconds to answer.
///
/// # Errors
/// When the name is unknown; the message lists all names.
pub fn find(name: &str) -> Result<Checker> {
    find_one(name, Duration::from_secs(30))
}

fn find_one(name: &str, patience: Duration) -> Result<Checker> {
    if let Some(command) = name.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            bail!("--checker cmd: has no command, write one behind it, such as 'cmd:python3 mine.py'");
        }
        return Ok(Checker::Outside(Box::new(Commands::new(command, patience))));
    }
    if detect::checkers(name, &CallFilter::default()).is_some() {
        return Ok(Checker::BuiltIn);
    }
    let names: Vec<_> = CHECKERS.iter().map(|row| row.name).collect();
    bail!("unknown checker '{name}', use one of: {}, cmd:COMMAND", names.join(", "))
}
