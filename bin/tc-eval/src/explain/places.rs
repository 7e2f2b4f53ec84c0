//! Finds the bytes of a recording that caused each event of a stream.

use crate::diff::lines::LineCounter;
use crate::read::{self, ReadSettings};
use anyhow::Result;
use api::RecordingForm;
use event::payload::{ContentDelta, RefusalDelta};
use event::{Event, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// An event of a stream, and the bytes that caused it.
#[derive(Clone, Debug)]
pub(super) struct EventPlace {
    /// The number of the event in the stream, from 1 on.
    pub number: u64,
    /// The event as a line of a log.
    pub event: String,
    /// The range of its bytes in the recording: its frame, or its line of a log or a tape.
    pub range: Range<usize>,
    /// The lines of the recording that contain these bytes, from 1 on.
    pub lines: (u64, u64),
    /// The bytes as text, with invalid UTF-8 replaced.
    pub excerpt: String,
}

/// The requested events, and the text of choice 0.
#[derive(Debug, Default)]
pub(super) struct AskedEvents {
    pub events: BTreeMap<u64, EventPlace>,
    pub text: String,
    /// The number of events in the stream.
    pub count: u64,
}

impl AskedEvents {
    /// Reads the stream of `bytes` that `settings` select, and keeps the events whose numbers are
    /// in `wanted`. Events are numbered as in an evaluation.
    ///
    /// # Errors
    /// Fails like [`read::each_event`].
    pub(super) fn read(
        path: &Path,
        bytes: &[u8],
        settings: &ReadSettings,
        wanted: BTreeSet<u64>,
    ) -> Result<Self> {
        let form = RecordingForm::of(bytes);
        let mut lines = LineCounter::of(bytes);
        let mut places = AskedEvents::default();
        // Where the frame at hand ends, and the one before it.
        let (mut end, mut before) = (0, 0);
        read::each_event(path, bytes, settings, &mut |event, origin| {
            let offset = usize::try_from(origin.offset)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            if offset != end {
                (before, end) = (end, offset);
            }
            if origin.part == 0 || event.kind() == Kind::Decision {
                return;
            }
            places.count += 1;
            places.add_text(event);
            if wanted.contains(&places.count) {
                let range = frame(bytes, before..end, form);
                let place = EventPlace {
                    number: places.count,
                    event: event.raw().into_owned(),
                    lines: (
                        lines.number(range.start as u64 + 1),
                        lines.number(range.end as u64),
                    ),
                    excerpt: String::from_utf8_lossy(&bytes[range.clone()]).into_owned(),
                    range,
                };
                places.events.insert(places.count, place);
            }
        })?;
        Ok(places)
    }

    fn add_text(&mut self, event: &Event<'_>) {
        match event.kind() {
            _ if event.choice() != 0 => {}
            Kind::ContentDelta => self.text.push_str(&ContentDelta::read(event).text.str()),
            Kind::RefusalDelta => self.text.push_str(&RefusalDelta::read(event).text.str()),
            _ => {}
        }
    }
}

/// The last frame of a range, with the line ends behind it: the last line of a log or a tape, of
/// Server-Sent Events what follows the last blank line, and of any other body all of it.
fn frame(bytes: &[u8], range: Range<usize>, form: RecordingForm) -> Range<usize> {
    let text = &bytes[range.start..range.start + bytes[range.clone()].trim_ascii_end().len()];
    let is_field = |line: &[u8]| line.starts_with(b"data:") || line.starts_with(b"event:");
    let is_body = form == RecordingForm::Body;
    if is_body && !text.split(|byte| *byte == b'\n').any(is_field) {
        return range;
    }
    let mut start = range.start;
    let mut at = range.start;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if line.ends_with(b"\n") && (!is_body || line.trim_ascii().is_empty()) {
            start = at;
        }
    }
    start..range.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_the_last_one_of_a_range() {
        let of = |text: &str, from: usize, form| {
            let range = frame(text.as_bytes(), from..text.len(), form);
            text[range].to_owned()
        };
        let body = RecordingForm::Body;
        assert_eq!(
            of(
                "event: a\r\ndata: 1\r\n\r\n: ping\n\nevent: b\ndata: 2\n\n",
                0,
                body
            ),
            "event: b\ndata: 2\n\n"
        );
        assert_eq!(of("x{\"a\":1}\n", 1, body), "{\"a\":1}\n");
        assert_eq!(of("{\n\n\"a\":1}\n", 0, body), "{\n\n\"a\":1}\n");
        assert_eq!(of("# c\n[0]\n[1]\n", 0, RecordingForm::Tape), "[1]\n");
        assert_eq!(of("{}\n{1}", 0, RecordingForm::Log), "{1}");
        assert_eq!(of("", 0, RecordingForm::Log), "");
    }
}
