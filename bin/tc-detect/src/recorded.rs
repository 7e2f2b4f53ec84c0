//! Finds recorded bodies and tapes among the operands, which `llm-stream --replay` turns into events.

use event::payload::{Error, Message};
use event::{Event, Kind, Scanner};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much of a file is looked at, in bytes.
const LOOKED_AT: u64 = 64 * 1024;

/// What kind of recording a file is, if it is one. Only files on disk are looked at: a pipe can be read only once.
pub fn recorded(path: &Path) -> Option<&'static str> {
    let file = path.metadata().ok().filter(|m| m.is_file()).and_then(|_| File::open(path).ok())?;
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start).ok()?;
    if upstream::tape::is_tape(&start) {
        return Some("a tape");
    }
    let is_body = !has_event(&start) && upstream::recognise(&start, true).is_some();
    is_body.then_some("a provider's answer")
}

/// Whether any line is an event of ours: a provider's lines may have a `type` too.
fn has_event(start: &[u8]) -> bool {
    let mut scanner = Scanner::default();
    start.split(|byte| *byte == b'\n').any(|line| match std::str::from_utf8(line).map(|line| scanner.read(line)) {
        Ok(Ok(event)) => is_ours(&event),
        // The line is longer than the part that was read; commands write the type first.
        _ => begins_as_ours(&String::from_utf8_lossy(line)),
    })
}

fn is_ours(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::Other => false,
        // Providers use this `type` too.
        Kind::Message => Message::read(event).message.with(|message| !message.is_null()),
        Kind::Error => !Error::read(event).source.is_empty(),
        _ => true,
    }
}

fn begins_as_ours(line: &str) -> bool {
    let kind = line.strip_prefix("{\"type\":\"").and_then(|rest| rest.split('"').next()).map(Kind::of);
    match kind {
        None | Some(Kind::Other | Kind::Error) => false,
        Some(Kind::Message) => line.starts_with("{\"type\":\"message\",\"message\""),
        Some(_) => true,
    }
}
