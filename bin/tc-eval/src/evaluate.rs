//! Evaluates checkers over corpora.

#[allow(dead_code, reason = "the parts that use it are being built")]
pub mod judge;

use std::path::PathBuf;
use stdio::Status;

/// The arguments of an evaluation.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files `index.ndjson`, or folders that hold one
    #[arg(required = true)]
    pub corpora: Vec<PathBuf>,
    /// A checker; may be given several times
    #[arg(short, long = "checker", value_name = "NAME")]
    pub checkers: Vec<String>,
}

/// Runs the checkers and writes the report.
///
/// # Errors
/// What is wrong with the arguments, a corpus or a checker.
pub fn evaluate(_args: &Args) -> anyhow::Result<Status> {
    anyhow::bail!("not built yet")
}
