//! What is kept on disk, as it was typed.

use clap::Args;
use std::path::PathBuf;

/// What is kept on disk.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is kept")]
pub struct Keeping {
    /// Keep results of tools that have a `cache` time in this folder, in place of
    /// ~/.cache/toolpipe/results
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Neither take results from the cache nor keep any
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
    /// Print what the cache holds as JSON (entries, bytes, how many are expired, and the same for
    /// each tool), and stop
    #[arg(long)]
    pub cache_stats: bool,
    /// How much of an output the model reads, unless its tool has its own `max_result`: head and
    /// tail, the whole goes into a file
    #[arg(long, value_name = "BYTES", default_value = "128K", value_parser = args::bytes)]
    pub max_result: usize,
    /// How much the files of whole outputs may take up, under ~/.cache/toolpipe/outputs; the oldest
    /// make room; 0 keeps none
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = event::unit::size)]
    pub keep_outputs: u64,
    /// Append all that goes to standard output to this file too, synced before each call starts and
    /// after it ends; read it first as --resume does
    #[arg(short, long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Lock the file on standard input, for all processes that have it open, and stop; `react` has
    /// no other lock where flock(1) is missing
    #[arg(long, hide = true)]
    pub lock_input: bool,
    /// Sync a line to this file before each call starts, and its result after it has ended
    #[arg(long, value_name = "LOG")]
    pub journal: Option<PathBuf>,
    /// A log or journal of an earlier run: a call that it answers does not run again, and its last
    /// turn is finished
    #[arg(long, value_name = "LOG")]
    pub resume: Vec<PathBuf>,
}
