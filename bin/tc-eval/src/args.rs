//! What was typed.

use clap::{Parser, Subcommand};

/// How good is a checker of tool calls?
///
/// Runs checkers over recorded streams whose truth is known, and prints how often each is right and
/// how early it decides. A corpus is a file `index.ndjson` with one line for each recording, or the
/// folder that holds one.
#[derive(Debug, Parser)]
#[group(skip)]
#[command(
    name = "tc-eval",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Option<EvalCommand>,
    #[command(flatten)]
    pub evaluate: crate::evaluate::Args,
    #[command(flatten)]
    pub common: args::Common,
}

/// What to do instead of evaluating checkers.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Propose the labels of recordings, for you to confirm
    Label(crate::label::Args),
    /// Show where a checker decided on one stream: the event and the bytes of the recording
    Explain(crate::explain::Args),
    /// Compare two recordings by their meaning
    Diff(crate::diff::Args),
    /// Join the counts of several runs of --partial
    Merge(crate::merge::Args),
    /// Learn the table of the checker auto from a corpus
    Fit(crate::fit::Args),
}

const EXAMPLES: &str = "\
Examples:
  tc-eval fixtures --checker first-chunk --checker full
  tc-eval fixtures --checker full --require 'recall>=0.99'";
