//! What was typed.

use crate::checkers;
use clap::Parser;
use detect::{CallFilter, Risk};
use event::Glob;
use std::path::{Path, PathBuf};
use stdio::Emit;

/// Is there a tool call in this stream?
///
/// Passes every event through and adds one `decision` event to each stream, as early as the checker
/// can. The exit status is the answer: 0 if any stream calls a tool, 1 if none does, 3 if a stream
/// failed before that was decided, or if the input has no events.
#[derive(Debug, Parser)]
#[command(name = "tc-detect", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    #[arg(short, long, value_name = "NAME", default_value = "full", help = checkers::help())]
    pub checker: String,
    /// The largest risk that auto is wrong when it decides no, such as 0.5% or 0.005; with 0 it
    /// waits for the end
    #[arg(long, value_name = "SHARE", default_value = "0.5%")]
    pub risk: Risk,
    /// Count live streams in this file, and let auto decide by them too; replayed streams and files
    /// of events are not counted
    #[arg(long, value_name = "FILE", conflicts_with = "quiet")]
    pub learn: Option<PathBuf>,
    /// Write nothing, and stop reading as soon as the answer is known
    #[arg(short, long, conflicts_with_all = ["then", "or_else", "decide_fd"])]
    pub quiet: bool,
    /// Count only calls of tools whose name matches (* matches any characters, ? matches one)
    #[arg(long, value_name = "GLOB")]
    pub name: Option<String>,
    /// Write the decisions to this file descriptor instead of into the stream
    #[arg(long, value_name = "N", conflicts_with_all = ["then", "or_else"])]
    pub decide_fd: Option<u32>,
    /// Pipe each stream that calls a tool, from its first event, into this command (run by sh)
    #[arg(long, value_name = "CMD")]
    pub then: Option<String>,
    /// Pipe each stream that calls no tool into this command (run by sh)
    #[arg(long = "else", value_name = "CMD")]
    pub or_else: Option<String>,
    #[command(flatten)]
    pub common: args::Common,
}

const EXAMPLES: &str = "\
Examples:
  llm-stream -t tools.json 'Is it raining?' | tc-detect -q && echo 'it calls'
  tc-detect -q -c tag <stream.ndjson || echo 'no call, not even in the text'
  tc-detect -c lookahead:120 stream.ndjson | jq 'select(.type == \"decision\")'
  tc-detect --then 'tc-accumulate | tc-view' --else tc-view <stream.ndjson

With -q a call ends the reading at once. A no ends it only for a stream without a name in a \
pipe, so that its upstream stops; otherwise further streams are read. The exit status of a \
command of --then or --else that fails (128 + N if signal N ended it) replaces the answer.";

/// The name of standard input in the file system.
pub(crate) const STDIN: &str = "/dev/stdin";

impl Args {
    /// What counts as a call.
    pub(crate) fn calls(&self) -> CallFilter {
        CallFilter {
            name: self.name.as_deref().map(Glob::new),
        }
    }

    /// Whether to read on after a stream that calls no tool: with several inputs, and in a file,
    /// which has no upstream that should stop.
    pub(crate) fn others(&self) -> bool {
        let file = |path: &PathBuf| {
            if path.as_os_str() == "-" {
                Path::new(STDIN).is_file()
            } else {
                path.is_file()
            }
        };
        self.files.len() > 1
            || self.files.iter().any(file)
            || (self.files.is_empty() && Path::new(STDIN).is_file())
    }

    /// Whether an input is a file, which holds streams of the past.
    pub(crate) fn is_past(&self) -> bool {
        self.files.iter().any(|path| path.as_os_str() != "-") || Path::new(STDIN).is_file()
    }

    /// The driver's settings.
    pub(crate) fn filter(&self) -> stdio::Filter {
        let mut filter = self.common.filter("tc-detect", self.files.clone());
        if self.quiet {
            (filter.emit, filter.stop_when_settled) = (Emit::Nothing, true);
        }
        filter
    }
}
