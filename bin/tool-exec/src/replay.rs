//! `--replay`: results, and what persons answered, come from a log.

use super::args::Args;
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tool::{CallReplay, RecordedCalls};

/// Reads the recording, and the log that this run goes on with.
///
/// # Errors
/// A file that cannot be read; a recording that is not a log.
pub(crate) fn read(log: &Path, args: &Args) -> anyhow::Result<CallReplay> {
    let mut replay = CallReplay::default();
    lines(log, &mut replay.recorded)?;
    if !replay.recorded.has_stream() {
        bail!(
            "{}: holds no stream of events, so it is not a log of a run; a tape has no results of tools (llm-stream --tape plays it)",
            log.display()
        );
    }
    let own = args.keeping.log.iter().chain(&args.keeping.resume);
    for own in own.filter(|own| own.exists()) {
        lines(own, &mut replay.run)?;
    }
    Ok(replay)
}

fn lines(log: &Path, calls: &mut RecordedCalls) -> anyhow::Result<()> {
    let name = || format!("{}: check the path and its permissions", log.display());
    let file = File::open(log).with_context(name)?;
    for line in BufReader::new(file).split(b'\n') {
        calls.line(&String::from_utf8_lossy(&line.with_context(name)?));
    }
    Ok(())
}
