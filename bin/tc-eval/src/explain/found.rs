//! What there is to explain about one stream.

use super::places::{AskedEvents, EventPlace};
use crate::corpus::CorpusEntry;
use crate::diff::recording;
use crate::evaluate::measure::{self, MeasurePlan};
use crate::recordings::unreadable;
use anyhow::Result;
use score::{Answer, Measured, Outcome, Place};

/// What there is to explain about one stream.
pub(super) struct Explanation<'e> {
    pub entry: &'e CorpusEntry,
    pub measured: &'e Measured,
    /// Whether it calls a tool: by the label, or where it has no answer, by the calls that were
    /// read.
    pub has_tool_call: bool,
    /// The checkers, in the order in which they were named.
    pub checkers: Vec<Explained<'e>>,
    /// The first event of a call.
    pub first_call: Option<EventPlace>,
    /// The calls that were read, as text.
    pub calls: Vec<String>,
    /// The text of choice 0.
    pub text: String,
    /// How many events the stream has.
    pub events: u64,
}

/// One checker on the stream.
pub(super) struct Explained<'e> {
    pub name: &'e str,
    pub outcome: &'e Outcome,
    /// Whether the checker answered as the label does; `None` for an undecided checker. A recording
    /// without a label is judged by its calls.
    pub is_right: Option<bool>,
    /// The deciding event; `None` where the checker does not tell.
    pub event: Option<EventPlace>,
}

impl<'e> Explanation<'e> {
    /// Reads the recording again for the places that were measured.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub(super) fn new(
        entry: &'e CorpusEntry,
        plan: &'e MeasurePlan,
        measured: &'e Measured,
    ) -> Result<Self> {
        let bytes = std::fs::read(&entry.path).map_err(unreadable(&entry.path))?;
        let settings = measure::settings(entry, plan, None)?;
        let number = |place: &Place| place.events;
        let wanted = measured
            .outcomes
            .iter()
            .filter_map(|outcome| outcome.at.as_ref())
            .chain(&measured.first_call);
        let places =
            AskedEvents::read(&entry.path, &bytes, &settings, wanted.map(number).collect())?;
        let has_tool_call = entry
            .label
            .has_tool_call
            .unwrap_or(measured.first_call.is_some());
        let checkers = plan
            .checkers
            .iter()
            .zip(&measured.outcomes)
            .map(|(name, outcome)| Explained {
                name,
                outcome,
                is_right: match outcome.answer {
                    Answer::Yes => Some(has_tool_call),
                    Answer::No => Some(!has_tool_call),
                    Answer::Undecided => None,
                },
                event: outcome
                    .at
                    .and_then(|at| places.events.get(&at.events).cloned()),
            });
        let read = recording::recording(&entry.path, &bytes, &settings, false)?;
        let turns = read
            .conversations
            .iter()
            .flat_map(|conversation| &conversation.turns);
        let calls = turns
            .flat_map(|turn| turn.choices.first())
            .flat_map(|choice| &choice.calls);
        Ok(Explanation {
            entry,
            measured,
            has_tool_call,
            checkers: checkers.collect(),
            first_call: measured
                .first_call
                .and_then(|at| places.events.get(&at.events).cloned()),
            calls: calls
                .map(score::difference::RecordedCall::request)
                .collect(),
            text: places.text,
            events: places.count,
        })
    }

    /// The text of choice 0 before a place, and after it.
    pub(super) fn texts(&self, at: &Place) -> (&str, &str) {
        let end = usize::try_from(at.bytes)
            .unwrap_or(usize::MAX)
            .min(self.text.len());
        self.text.split_at_checked(end).unwrap_or((&self.text, ""))
    }
}
