//! Turns one recording (a body, a tape or a log of events) into its events, in this process.

mod body;
mod log;
mod settings;
mod source;
mod tape;

pub use settings::{Form, Origin, ReadSettings, RecordingArgs, api};

use anyhow::{Context, Result, anyhow, bail};
use api::{LOOKED_AT, RecordingForm};
use settings::Take;
use source::Source;
use std::path::Path;

/// Gives each event of the recording to `take`, in order. `bytes` is the whole file; `path` is for
/// messages.
///
/// The events of a body or a tape have no `stream` and no `t`; those of a log are as they were
/// written. Lines of a log that are not events are skipped, unless the settings are strict.
///
/// # Errors
/// When the file is neither a body of a known API nor a tape nor a log, or has no stream of the
/// number `part`.
pub fn each_event(
    path: &Path,
    bytes: &[u8],
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    read(Source::of_bytes(bytes), settings, take).with_context(|| path.display().to_string())
}

/// As [`each_event`], of the file at `path`. A file of more than 1 MiB is read in pieces, but for a
/// tape, which is read whole. `buffer` is memory that calls share.
///
/// # Errors
/// As [`each_event`], and when the file cannot be read.
pub fn each_event_of_file(
    path: &Path,
    buffer: &mut Vec<u8>,
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    let source =
        Source::open(path, buffer).map_err(|e| anyhow!("{e}; check the path and its permissions"));
    source
        .and_then(|source| read(source, settings, take))
        .with_context(|| path.display().to_string())
}

fn read(mut source: Source<'_>, settings: &ReadSettings, take: &mut Take<'_>) -> Result<()> {
    let parts = match RecordingForm::of(source.start()) {
        RecordingForm::Tape => tape::read(&source.whole()?, settings, take)?,
        RecordingForm::Log => log::read(source, settings, take)?,
        RecordingForm::Body => {
            let start = source.start();
            let api = settings
                .api
                .or_else(|| api::recognise(&start[..start.len().min(LOOKED_AT)], true));
            let Some(api) = api else {
                bail!(
                    "neither a body that shows its API nor a tape nor a log of events; name the API of a body"
                );
            };
            body::read(source, api, settings, take)?;
            1
        }
    };
    match settings.part {
        Some(part) if !(1..=parts).contains(&part) => {
            let streams = if parts == 1 {
                "1 stream".to_owned()
            } else {
                format!("{parts} streams")
            };
            bail!("part {part} does not exist; the file has {streams}")
        }
        _ => Ok(()),
    }
}
