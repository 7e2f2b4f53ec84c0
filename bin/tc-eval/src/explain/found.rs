//! The measurements of one stream that `tc-eval explain` shows.

use super::places::{AskedEvents, EventPlace};
use crate::corpus::CorpusEntry;
use crate::diff::recording;
use crate::evaluate::measure::{self, MeasurePlan};
use crate::recordings::unreadable;
use anyhow::Result;
use score::{Answer, Measured, Outcome, Place};

/// The measurements of one stream.
pub(super) struct Explanation<'e> {
    pub entry: &'e CorpusEntry,
    pub measured: &'e Measured,
    /// Whether the stream calls a tool, according to its label. If the label has no answer, this
    /// depends on the parsed calls.
    pub has_tool_call: bool,
    /// The checkers, in the order of the command line.
    pub checkers: Vec<Explained<'e>>,
    /// The first event of a call.
    pub first_call: Option<EventPlace>,
    /// The parsed calls, as text.
    pub calls: Vec<String>,
    /// The text of choice 0.
    pub text: String,
    /// The number of events in the stream.
    pub events: u64,
}

/// The result of one checker.
pub(super) struct Explained<'e> {
    pub name: &'e str,
    pub outcome: &'e Outcome,
    /// Whether the checker's answer equals that of the label; `None` if the checker is undecided.
    /// For a recording without a label, the parsed calls are the expected answer.
    pub is_right: Option<bool>,
    /// The deciding event; `None` if the checker does not report it.
    pub event: Option<EventPlace>,
}

impl<'e> Explanation<'e> {
    /// Reads the recording again to find the bytes of the measured events.
    ///
    /// # Errors
    /// Fails if the recording cannot be read.
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

    /// Returns the text of choice 0 before and after a place.
    pub(super) fn texts(&self, at: &Place) -> (&str, &str) {
        let end = usize::try_from(at.bytes)
            .unwrap_or(usize::MAX)
            .min(self.text.len());
        self.text.split_at_checked(end).unwrap_or((&self.text, ""))
    }
}
