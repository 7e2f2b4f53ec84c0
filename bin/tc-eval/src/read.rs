//! Turns one recording (a body, a tape or a log of events) into its events, in this process.

mod body;
mod log;
mod source;
mod tape;

use crate::split::Sizes;
use anyhow::{Context, Result, anyhow, bail};
use event::Event;
use json::ToolList;
use source::Source;
use std::path::Path;
use upstream::{LOOKED_AT, RecordingForm, StreamOptions};

/// How to read a recording.
#[derive(Clone, Debug, Default)]
pub struct ReadSettings {
    /// The API of a body; without it the body shows its API.
    pub api: Option<upstream::Api>,
    /// Which stream of the file to read, from 1 on; `None`: all.
    pub part: Option<u64>,
    /// The requested model; used where the recording names none.
    pub model: Option<String>,
    /// The tools of the request as JSON in any provider's shape, if known; they become `tools` of `stream_start` where the recording
    /// has none. A list that cannot be read counts as unknown.
    pub tools: Option<String>,
    /// `tag` where calls are text, with the dialect.
    pub tools_mode: Option<String>,
    /// See `tools_mode`.
    pub dialect: Option<String>,
    /// The most bytes of one frame of a body or one line of a log; 64 MiB by default.
    pub max_line: Option<usize>,
    /// Whether a line of a log that is not an event is an error; by default it is skipped.
    pub strict: bool,
    /// The sizes of the pieces in which bytes reach the decoder; by default lines, or the reads of a tape.
    pub pieces: Option<Sizes>,
}

/// Where an event came from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Origin {
    /// Which stream of the file it belongs to, from 1 on. 0 for an event of a log that lies between streams, such as a result.
    pub part: u64,
    /// The bytes of the file that had been read when the event was known: its frame ends there, or its line of a log or a tape.
    pub offset: u64,
    /// Recorded milliseconds: of a tape since the request, of a log since the beginning of the stream (its field `t`). `None` where the
    /// recording has no times.
    pub ms: Option<f64>,
}

/// Takes the events of a recording.
type Take<'t> = dyn FnMut(&Event<'_>, Origin) + 't;

/// Gives each event of the recording to `take`, in order. `bytes` is the whole file; `path` is for messages.
///
/// The events of a body or a tape have no `stream` and no `t`; those of a log are as they were written. Lines of a log that are not
/// events are skipped, unless the settings are strict.
///
/// # Errors
/// When the file is neither a body of a known API nor a tape nor a log, or has no stream of the number `part`.
pub fn each_event(path: &Path, bytes: &[u8], settings: &ReadSettings, take: &mut Take<'_>) -> Result<()> {
    read(Source::of_bytes(bytes), settings, take).with_context(|| path.display().to_string())
}

/// As [`each_event`], of the file at `path`. A file of more than 1 MiB is read in pieces, but for a tape, which is read whole.
/// `buffer` is memory that calls share.
///
/// # Errors
/// As [`each_event`], and when the file cannot be read.
pub fn each_event_of_file(
    path: &Path,
    buffer: &mut Vec<u8>,
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    let source = Source::open(path, buffer).map_err(|e| anyhow!("{e}; check the path and its permissions"));
    source.and_then(|source| read(source, settings, take)).with_context(|| path.display().to_string())
}

fn read(mut source: Source<'_>, settings: &ReadSettings, take: &mut Take<'_>) -> Result<()> {
    let parts = match RecordingForm::of(source.start()) {
        RecordingForm::Tape => tape::read(&source.whole()?, settings, take)?,
        RecordingForm::Log => log::read(source, settings, take)?,
        RecordingForm::Body => {
            let start = source.start();
            let api = settings.api.or_else(|| upstream::recognise(&start[..start.len().min(LOOKED_AT)], true));
            let Some(api) = api else {
                bail!("neither a body that shows its API nor a tape nor a log of events; name the API of a body");
            };
            body::read(source, api, settings, take)?;
            1
        }
    };
    match settings.part {
        Some(part) if !(1..=parts).contains(&part) => {
            let streams = if parts == 1 { "1 stream".to_owned() } else { format!("{parts} streams") };
            bail!("part {part} does not exist; the file has {streams}")
        }
        _ => Ok(()),
    }
}

impl ReadSettings {
    /// Whether the stream of this number is read.
    fn reads(&self, part: u64) -> bool {
        self.part.is_none_or(|wanted| wanted == part)
    }

    /// The tools in OpenAI's shape, on one line; `None` where they are unknown.
    fn tools(&self) -> Option<String> {
        openai_tools(self.tools.as_deref()?)
    }

    /// The fields of `stream_start` where the recording has none of them.
    fn options(&self) -> StreamOptions {
        let tools = self.tools();
        let tools_mode = self.tools_mode.clone().or_else(|| tools.as_deref().map(native_or_none));
        StreamOptions {
            tools,
            tools_mode,
            dialect: self.dialect.clone(),
            model: self.model.clone(),
            max_frame: self.max_line,
            ..StreamOptions::default()
        }
    }
}

/// A list of tools in any provider's shape as a list in OpenAI's, on one line. `None` if it cannot be read.
fn openai_tools(json: &str) -> Option<String> {
    Some(ToolList::read(json).ok()?.openai(|_| true))
}

/// The `tools_mode` of a request with these tools.
fn native_or_none(tools: &str) -> String {
    if tools == "[]" { "none" } else { "native" }.to_owned()
}
