//! Turns one recording (a body, a tape or a log of events) into its events, in this process.

use anyhow::Result;
use event::Event;
use std::path::Path;

/// How to read a recording.
#[derive(Clone, Debug, Default)]
pub struct ReadSettings {
    /// The API of a body; without it the body shows its API.
    pub api: Option<upstream::Api>,
    /// Which stream of the file to read, from 1 on; `None`: all.
    pub part: Option<u64>,
    /// The tools of the request as JSON, if known; they become `tools` of `stream_start` where the recording has none.
    pub tools: Option<String>,
    /// `tag` where calls are text, with the dialect.
    pub tools_mode: Option<String>,
    /// See `tools_mode`.
    pub dialect: Option<String>,
}

/// Where an event came from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Which stream of the file it belongs to, from 1 on.
    pub part: u64,
    /// The bytes of the file that had been read when the event was known: its frame ends there. Of a tape, the line.
    pub offset: u64,
    /// Recorded milliseconds since the request; `None` where the recording has no times.
    pub ms: Option<f64>,
}

/// Gives each event of the recording to `take`, in order. `bytes` is the whole file; `path` is for messages.
///
/// # Errors
/// When the file is neither a body of a known API nor a tape nor a log.
pub fn each_event(
    _path: &Path,
    _bytes: &[u8],
    _settings: &ReadSettings,
    _take: &mut dyn FnMut(&Event<'_>, Origin),
) -> Result<()> {
    anyhow::bail!("not built yet")
}
