//! Shows where a checker decided on one stream, and why.

use std::path::PathBuf;
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to read
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Shows where a checker decided on one stream, and why.
///
/// # Errors
/// What is wrong with the arguments or a file.
pub fn explain(_args: &Args) -> anyhow::Result<Status> {
    anyhow::bail!("not built yet")
}
