//! The lines of a session, one after the other.

use event::payload::{self, Payload};
use event::{Event, Scanner};
use std::ops::Range;
use store::StoreError;

/// Hands `take` each line between two offsets, which are ends of lines, with its place in bytes.
/// `read` gives the whole lines from an offset on, and nothing at the end.
///
/// # Errors
/// Those of `read`.
pub(super) fn each(
    read: impl Fn(u64) -> Result<Vec<u8>, StoreError>,
    place: Range<u64>,
    mut take: impl FnMut(&[u8], Range<u64>),
) -> Result<(), StoreError> {
    let mut offset = place.start;
    loop {
        let bytes = read(offset)?;
        if bytes.is_empty() {
            return Ok(());
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let behind = offset + line.len() as u64;
            if behind > place.end {
                return Ok(());
            }
            take(line, offset..behind);
            offset = behind;
        }
    }
}

/// Hands `take` the event of a line, if it is one.
pub(crate) fn event(scanner: &mut Scanner, line: &[u8], take: impl FnOnce(&Event<'_>)) {
    let line = std::str::from_utf8(line.trim_ascii_end()).ok();
    if let Some(event) = line.and_then(|line| scanner.read(line).ok()) {
        take(&event);
    }
}

/// Hands `take` the event of the first of these lines, if it is one.
pub(super) fn first(lines: &[u8], take: impl FnOnce(&Event<'_>)) {
    let line = lines.split(|byte| *byte == b'\n').next();
    event(&mut Scanner::default(), line.unwrap_or_default(), take);
}

/// An event as a line.
pub(crate) fn line(payload: &Payload<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    payload::line(&mut line, payload, None, 0, None);
    line.push(b'\n');
    line
}
