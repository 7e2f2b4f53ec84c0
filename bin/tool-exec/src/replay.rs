//! `--replay`: takes results and user answers from a log instead of running calls.

use super::args::Args;
use super::store::{look, look_at};
use anyhow::bail;
use std::path::Path;
use tool::CallReplay;

/// Reads the recording, and the log that this run continues.
///
/// # Errors
/// If a file cannot be read, or if the recording is not a log.
pub(crate) fn read(log: &Path, args: &Args) -> anyhow::Result<CallReplay> {
    let mut replay = CallReplay::default();
    look_at([log].into_iter(), &mut replay.recorded)?;
    if !replay.recorded.has_stream() {
        bail!(
            "{}: holds no stream of events, so it is not a log of a run; a tape has no results \
             of tools (llm-stream --tape plays it)",
            log.display()
        );
    }
    look(&args.keeping, &mut replay.run)?;
    Ok(replay)
}
