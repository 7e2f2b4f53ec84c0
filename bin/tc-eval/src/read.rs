//! Reads one recording (a body, a tape or an event log) as events, within this process.

mod body;
mod log;
mod settings;
mod tape;

pub(crate) use settings::{AnswerKind, EventOrigin, ReadSettings, RecordingArgs, api, dialect};

use crate::recordings::unreadable;
use anyhow::{Context, Result, bail};
use api::{LOOKED_AT, RecordingForm};
use score::forms::counted;
use settings::Take;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Passes each event of the recording to `take`, in order. `bytes` is the whole file; `path` is
/// used in messages.
///
/// The events of a body or a tape have no `stream` and no `t`; those of a log are unchanged. Lines
/// of a log that are not events are skipped, unless the settings are strict.
///
/// # Errors
/// Fails if the file is not a body of a known API, a tape or a log, or if it has no stream with the
/// number `part`.
pub(crate) fn each_event(
    path: &Path,
    bytes: &[u8],
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    read(bytes, settings, take).with_context(|| path.display().to_string())
}

/// Like [`each_event`], for the file at `path`. The file is read line by line, unless it is a tape.
///
/// # Errors
/// Fails like [`each_event`], and if the file cannot be read.
pub(crate) fn each_event_of_file(
    path: &Path,
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    let file = File::open(path).map_err(unreadable(path))?;
    let file = BufReader::with_capacity(LOOKED_AT, file);
    read(file, settings, take).with_context(|| path.display().to_string())
}

fn read(mut source: impl BufRead, settings: &ReadSettings, take: &mut Take<'_>) -> Result<()> {
    let start = source.fill_buf()?;
    let parts = match RecordingForm::of(start) {
        RecordingForm::Tape => {
            let mut bytes = Vec::new();
            source.read_to_end(&mut bytes)?;
            tape::read(&bytes, settings, take)?
        }
        RecordingForm::Log => log::read(source, settings, take)?,
        RecordingForm::Body => {
            let shown = || api::recognise(&start[..start.len().min(LOOKED_AT)], true);
            let Some(api) = settings.api.or_else(shown) else {
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
            let streams = counted(parts, "stream");
            bail!("part {part} does not exist; the file has {streams}")
        }
        _ => Ok(()),
    }
}
