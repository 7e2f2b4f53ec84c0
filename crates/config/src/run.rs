//! Runs a command whose options have defaults in the file and in the environment.

use crate::resolve::{Configured, Spec};
use crate::show;
use anyhow::Result;
use clap::{Command, Parser};
use std::process::ExitCode;
use stdio::Status;

/// The option that shows what is configured.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ShowArgs {
    /// Print the value of each option and where it is from (the command line, a variable, a line of
    /// ~/.config/toolpipe/config.toml), and stop
    #[arg(long, help_heading = "Common options")]
    show_config: bool,
}

/// Runs a command as [`args::run_with`] does, with the defaults of its options; `work` also gets
/// what else the file has for it. The option of [`ShowArgs`] prints the values in place of that.
pub fn run<A: Parser>(
    spec: Spec,
    remedy: impl Fn(&str) -> Option<String>,
    work: impl FnOnce(A, Configured) -> Result<Status>,
) -> ExitCode {
    let defaults = |command: &Command, matches: &clap::ArgMatches| {
        let configured = Configured::new(spec, command, matches)?;
        let defaults = configured.defaults(command)?;
        let shown = match matches.get_flag("show_config") {
            true => Some(show::lines(&configured, command)?),
            false => None,
        };
        Ok((defaults, (configured, shown)))
    };
    args::run_with_defaults(remedy, defaults, |args, (configured, shown)| match shown {
        Some(lines) => show::print(&lines),
        None => work(args, configured),
    })
}
