//! Finds recorded bodies and tapes among the operands, which `llm-stream --replay` turns into
//! events.

use api::{LOOKED_AT, RecordingForm, recognise};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What kind of recording a file is, if it is one. Only files on disk are looked at: a pipe can be
/// read only once.
pub fn recorded(path: &Path) -> Option<&'static str> {
    let file = path
        .metadata()
        .ok()
        .filter(|m| m.is_file())
        .and_then(|_| File::open(path).ok())?;
    let mut start = Vec::new();
    file.take(LOOKED_AT as u64).read_to_end(&mut start).ok()?;
    match RecordingForm::of(&start) {
        RecordingForm::Tape => Some("a tape"),
        RecordingForm::Log => None,
        RecordingForm::Body => recognise(&start, true).map(|_| "a provider's answer"),
    }
}
