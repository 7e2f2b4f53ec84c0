//! Names the deviations of providers that recordings show.

use std::path::PathBuf;
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to read
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Names the deviations of providers that recordings show.
///
/// # Errors
/// What is wrong with the arguments or a file.
pub fn report_card(_args: &Args) -> anyhow::Result<Status> {
    anyhow::bail!("not built yet")
}
