//! What a file on disk holds: a tape, a log of events, or a provider's answer.

use crate::tape::is_tape;
use event::payload::{Error, Message};
use event::{Event, Kind, Scanner};

/// How much of the beginning of a file shows what it holds, in bytes.
pub const LOOKED_AT: usize = 64 * 1024;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingForm {
    /// Recorded requests and responses, see [`crate::tape`].
    Tape,
    /// The events of commands, one a line.
    Log,
    /// Anything else, so perhaps the body of a provider's response;
    /// [`recognise`](crate::recognise()) finds its API.
    Body,
}

impl RecordingForm {
    /// Judges a file by its first bytes, of which the first [`LOOKED_AT`] count.
    pub fn of(start: &[u8]) -> RecordingForm {
        let start = &start[..start.len().min(LOOKED_AT)];
        if is_tape(start) {
            RecordingForm::Tape
        } else if has_event(start) {
            RecordingForm::Log
        } else {
            RecordingForm::Body
        }
    }
}

/// Whether any line is an event of ours: a provider's lines may have a `type` too.
fn has_event(start: &[u8]) -> bool {
    let mut scanner = Scanner::default();
    // An event is an object, and a body of server-sent events has none at the beginning of a line.
    let mut objects = start
        .split(|byte| *byte == b'\n')
        .filter(|line| line.trim_ascii_start().starts_with(b"{"));
    objects.any(
        |line| match std::str::from_utf8(line).map(|line| scanner.read(line)) {
            Ok(Ok(event)) => is_ours(&event),
            // The line is longer than the part that was read; commands write the type first.
            _ => begins_as_ours(&String::from_utf8_lossy(line)),
        },
    )
}

fn is_ours(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::Other => false,
        // Providers use this `type` too.
        Kind::Message => Message::read(event)
            .message
            .with(|message| !message.is_null()),
        Kind::Error => !Error::read(event).source.is_empty(),
        _ => true,
    }
}

fn begins_as_ours(line: &str) -> bool {
    let kind = line
        .strip_prefix("{\"type\":\"")
        .and_then(|rest| rest.split('"').next())
        .map(Kind::of);
    match kind {
        None | Some(Kind::Other | Kind::Error) => false,
        Some(Kind::Message) => line.starts_with("{\"type\":\"message\",\"message\""),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_shows_in_the_first_lines() {
        for (start, form) in [
            ("# a comment\n{\"tape\":1}\n", RecordingForm::Tape),
            ("{\"type\":\"stream_start\",\"v\":1}\n", RecordingForm::Log),
            (
                "a line of another program\n{\"type\":\"content_delta\",\"text\":\"x\"}\n",
                RecordingForm::Log,
            ),
            (
                "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a line that is cut he",
                RecordingForm::Log,
            ),
            (
                "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}",
                RecordingForm::Body,
            ),
            (
                "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
                RecordingForm::Body,
            ),
            (
                "data: {\"type\":\"message_start\"}\n\n",
                RecordingForm::Body,
            ),
            ("", RecordingForm::Body),
        ] {
            assert_eq!(RecordingForm::of(start.as_bytes()), form, "{start}");
        }
    }
}
