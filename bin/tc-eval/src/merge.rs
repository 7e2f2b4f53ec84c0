//! Joins the counts of several runs.

use std::path::PathBuf;
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to read
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Joins the counts of several runs.
///
/// # Errors
/// What is wrong with the arguments or a file.
pub fn merge(_args: &Args) -> anyhow::Result<Status> {
    anyhow::bail!("not built yet")
}
