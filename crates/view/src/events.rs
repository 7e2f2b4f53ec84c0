//! `events`: the events themselves, for the next command of a pipe.

use crate::surface::FormRow;
use event::{Event, View, safe_json};

pub(crate) const ROW: FormRow = FormRow {
    name: "events",
    help: "The events themselves, one per line, as they arrive",
    view: |surface| {
        Box::new(EventsView {
            for_terminal: surface.is_terminal,
        })
    },
};

/// Writes each event as the line that it was read from.
#[derive(Debug)]
struct EventsView {
    /// Whether the output goes to a terminal, so that hidden characters become JSON escapes.
    for_terminal: bool,
}

impl View for EventsView {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let line = event.raw();
        match self.for_terminal {
            true => out.extend_from_slice(safe_json(&line).as_bytes()),
            false => out.extend_from_slice(line.as_bytes()),
        }
        out.push(b'\n');
    }

    fn finish(&mut self, _: &mut Vec<u8>) {}
}
