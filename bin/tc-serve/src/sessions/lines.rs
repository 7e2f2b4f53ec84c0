//! Splits a session into lines, and lines into events.

use event::payload::{self, Payload};
use event::{Event, Scanner};
use std::ops::Range;
use store::StoreError;

/// Returns the lines of `bytes`, each with its line feed and its place in the session. The first
/// line begins at `offset`.
pub(crate) fn lines(bytes: &[u8], offset: u64) -> impl Iterator<Item = (&[u8], Range<u64>)> {
    let mut end = offset;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.map(move |line| {
        let start = end;
        end += line.len() as u64;
        (line, start..end)
    })
}

/// Calls `take` with each line from `offset` to the end of the session, and the line's place.
/// `read` returns the whole lines from an offset on, and nothing at the end.
///
/// # Errors
/// Those of `read`.
pub(super) fn each(
    read: impl Fn(u64) -> Result<Vec<u8>, StoreError>,
    mut offset: u64,
    mut take: impl FnMut(&[u8], Range<u64>),
) -> Result<(), StoreError> {
    loop {
        let bytes = read(offset)?;
        if bytes.is_empty() {
            return Ok(());
        }
        for (line, place) in lines(&bytes, offset) {
            offset = place.end;
            take(line, place);
        }
    }
}

/// Parses a line as an event. Returns `None` if it is not an event.
pub(crate) fn event<'e>(scanner: &'e mut Scanner, line: &'e [u8]) -> Option<Event<'e>> {
    let line = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    scanner.read(line).ok()
}

/// Calls `take` with the event of the first of these lines, if it is one.
pub(super) fn first(bytes: &[u8], take: impl FnOnce(&Event<'_>)) {
    let mut scanner = Scanner::default();
    if let Some((line, _)) = lines(bytes, 0).next()
        && let Some(event) = event(&mut scanner, line)
    {
        take(&event);
    }
}

/// Returns an event as a line.
pub(crate) fn line(payload: &Payload<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    payload::line(&mut line, payload, None, 0, None);
    line.push(b'\n');
    line
}
