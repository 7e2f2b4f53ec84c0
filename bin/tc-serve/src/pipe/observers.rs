//! Who observes the events of an answer beside its client: `/metrics`, a trace, and the access log.

use crate::metrics::AnswerMeter;
use crate::traces::AnswerTrace;
use event::payload::Warning;
use event::{Event, Kind, cut};

/// How many notes about what was left out are kept.
const NOTES: usize = 16;

/// The codes of the warnings that become notes in the access log: what was not sent to the
/// provider, what part of the provider's answer the client does not get, and which option would read
/// a call that stays text. Their messages quote nothing of a conversation, only tokens of the table
/// of dialects and names of parameters and tools.
const NOTED: [&str; 5] = [
    "parameter_left_out",
    "tag_dropped",
    "late_reasoning",
    "tag_unread",
    "extra_text",
];

/// A note for the access log is cut to this many bytes, since it may repeat names from the client's
/// request.
const NOTE: usize = 512;

/// The observers of one answer.
#[derive(Default)]
pub(super) struct AnswerObservers {
    /// Counts the events for `/metrics`; `None` for events that were counted when they were made.
    pub meter: Option<AnswerMeter>,
    /// The trace of an answer that no session keeps.
    pub trace: Option<AnswerTrace>,
    /// What the access log has of the answer.
    pub counts: AnswerCounts,
    /// What was left out, and how often.
    pub notes: Vec<(String, u64)>,
    /// The microseconds from the beginning of the stream to the next event.
    pub at: Option<u64>,
}

/// What the access log has of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerCounts {
    /// Whole calls that the client got.
    pub calls: u64,
    /// Warnings.
    pub warnings: u64,
}

impl AnswerObservers {
    /// Takes the next event.
    pub(super) fn push(&mut self, event: &Event<'_>) {
        if let Some(meter) = &mut self.meter {
            meter.push(event, self.at);
        }
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
        match event.kind() {
            Kind::ToolCall => self.counts.calls += 1,
            Kind::Warning => {
                self.counts.warnings += 1;
                self.note(&Warning::read(event));
            }
            _ => {}
        }
    }

    /// Stores, for the access log, a note of what was left out.
    fn note(&mut self, warning: &Warning<'_>) {
        if !NOTED.iter().any(|code| warning.code == *code) {
            return;
        }
        let message = warning.message.str();
        let message = cut(&message, NOTE);
        if let Some((_, count)) = self.notes.iter_mut().find(|(note, _)| note == message) {
            *count += 1;
        } else if self.notes.len() < NOTES {
            self.notes.push((message.to_owned(), 1));
        }
    }

    /// Takes the end of the answer.
    pub(super) fn finish(&mut self) {
        self.trace.iter_mut().for_each(AnswerTrace::finish);
    }
}
