//! Proposes the labels of recordings.

use std::path::PathBuf;
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to read
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Proposes the labels of recordings.
///
/// # Errors
/// What is wrong with the arguments or a file.
pub fn label(_args: &Args) -> anyhow::Result<Status> {
    anyhow::bail!("not built yet")
}
