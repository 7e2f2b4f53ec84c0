//! The events themselves as the answer.

use api::Failure;
use event::payload::{Error, StreamStart};
use event::{Event, Kind, Text};

/// Events as lines, or as server-sent events whose id is the number of the line.
#[derive(Debug, Default)]
pub struct EventLines {
    /// Whether the lines are server-sent events.
    pub is_sse: bool,
    lines: u64,
    /// The name of the API of the upstream.
    api: String,
    /// Why the answer failed, if it did.
    pub failure: Option<Failure>,
    /// Whether an event with content was written.
    pub has_content: bool,
}

impl EventLines {
    /// No lines yet. `is_sse` makes them server-sent events.
    pub fn new(is_sse: bool) -> EventLines {
        EventLines {
            is_sse,
            ..EventLines::default()
        }
    }

    /// Writes an event.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event.kind() {
            Kind::Error => {
                let error = Error::read(event);
                self.failure
                    .get_or_insert_with(|| Failure::of_event(&error, &self.api));
            }
            Kind::StreamStart => {
                self.api = StreamStart::read(event)
                    .api
                    .map(Text::str)
                    .unwrap_or_default()
                    .into_owned()
            }
            Kind::StreamEnd | Kind::SessionStats | Kind::Warning => {}
            _ => self.has_content = true,
        }
        self.lines += 1;
        if self.is_sse {
            out.extend_from_slice(format!("id: {}\ndata: ", self.lines).as_bytes());
        }
        out.extend_from_slice(event.raw().as_bytes());
        out.extend_from_slice(if self.is_sse { b"\n\n" } else { b"\n" });
    }
}
