//! `--replay`: results, and what persons answered, come from a log.

use super::args::Args;
use super::store::{look, look_at};
use anyhow::bail;
use std::path::Path;
use tool::CallReplay;

/// Reads the recording, and the log that this run goes on with.
///
/// # Errors
/// A file that cannot be read; a recording that is not a log.
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
