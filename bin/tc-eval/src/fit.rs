//! Learns the table of the checker `auto` from a corpus.

use std::path::PathBuf;
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to read
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Learns the table of the checker `auto` from a corpus.
///
/// # Errors
/// What is wrong with the arguments or a file.
pub fn fit(_args: &Args) -> anyhow::Result<Status> {
    anyhow::bail!("not built yet")
}
