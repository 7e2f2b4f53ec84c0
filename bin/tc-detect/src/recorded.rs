//! Recorded bodies and tapes that are given in place of events: `llm-stream --replay` makes events of them.

use event::{Event, Kind, Scanner};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much of a file is looked at.
const LOOKED_AT: u64 = 64 * 1024;

/// What a file is, if it is a recording and not events. Only files on disk are looked at, since a pipe can be read once.
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

/// Whether a line is an event of ours. Other lines with a `type` may be a provider's.
fn has_event(start: &[u8]) -> bool {
    let mut scanner = Scanner::default();
    let lines = start.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.into_iter().any(|line| scanner.read(line).is_ok_and(|event| is_ours(&event)))
}

fn is_ours(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::Other => false,
        // Providers have a `type` of this name too.
        Kind::Message => event.get("message").is_some(),
        Kind::Error => event.get("source").is_some(),
        _ => true,
    }
}
