//! Learns the table of the checker `auto` from corpora, and tests tables on streams from which they
//! were not learned.

mod folds;
mod streams;
mod test;

use crate::draft;
use anyhow::Result;
use detect::auto::AutoTable;
use folds::Folds;
use std::path::PathBuf;
use stdio::Status;
use test::FoldedTest;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files `index.ndjson`, or folders that hold one
    #[arg(required = true)]
    pub corpora: Vec<PathBuf>,
    /// Write the table to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "folds")]
    pub output: Option<PathBuf>,
    /// Write no table: split the sources of the streams into N parts, and test on each part a table
    /// that was learned from the other parts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub folds: Option<u64>,
    /// A checker to test [default: auto]
    #[arg(short, long = "checker", value_name = "NAME", requires = "folds")]
    pub checkers: Vec<String>,
    /// Test as if the tools of the requests were unknown
    #[arg(long, requires = "folds")]
    pub hide_tools: bool,
    /// Another number splits the sources in another way
    #[arg(long, value_name = "N", default_value_t = 0, requires = "folds")]
    pub seed: u64,
}

/// Writes the table learned from corpora, or with `--folds` the scores of such tables on other
/// sources.
///
/// # Errors
/// Fails if the arguments, a corpus, a recording or the output are invalid.
pub(crate) fn fit(args: &Args, common: &args::Common) -> Result<Status> {
    if let Some(count) = args.folds {
        let checkers = if args.checkers.is_empty() {
            vec!["auto".to_owned()]
        } else {
            args.checkers.clone()
        };
        let test = FoldedTest {
            checkers,
            folds: Folds {
                count,
                seed: args.seed,
            },
            hide_tools: args.hide_tools,
        };
        return test.run(&args.corpora, common);
    }
    let mut table = AutoTable::default();
    streams::each(&args.corpora, |entry| {
        table.add(&streams::observe(&entry)?);
        Ok(())
    })?;
    let text = table.to_string();
    match &args.output {
        Some(path) => draft::write(path, &text)?,
        None => crate::print(&text)?,
    }
    Ok(Status::Done)
}
