//! The calls that a pipeline parses from a stream, compared with those of the label.

use crate::reading::{arguments, calls_alone, each_event, is_taken_back, made_calls, to_calls};
use accumulate::AccumulateOptions;
use conversation::{Call, CallChange, Change, Talk};
use detect::Checker;
use event::payload::{CallErrorCode, StreamStart};
use event::{Event, Kind, Machine, Payload, Raw};
use score::{CallCounts, LabelledCall, Place};
use std::rc::Rc;
use tag::Tag;

/// Reads the calls of choice 0 of one stream.
pub(super) struct ChoiceCallReader {
    machine: Box<dyn Machine>,
    has_tag: bool,
    found: FoundCalls,
}

/// The calls found so far.
struct FoundCalls {
    /// Finds the first event of a call.
    full: Box<dyn Checker>,
    talk: Talk,
    /// The first event of a call.
    first: Option<Place>,
    /// The recorded time at which the first call was complete, in milliseconds.
    ready_ms: Option<f64>,
}

impl ChoiceCallReader {
    /// A reader of one stream. `tag` is the parser of its text in tag mode, `full` the checker of
    /// that name.
    pub(super) fn new(tag: Option<Tag>, full: Box<dyn Checker>) -> Self {
        let options = AccumulateOptions {
            keep_deltas: true,
            no_message: true,
            ..AccumulateOptions::default()
        };
        ChoiceCallReader {
            has_tag: tag.is_some(),
            machine: to_calls(tag, &Rc::new(options)),
            found: FoundCalls {
                full,
                talk: calls_alone(false),
                first: None,
                ready_ms: None,
            },
        }
    }

    /// Takes the next event of the stream; `place` counts up to it.
    pub(super) fn push(&mut self, event: &Event<'_>, place: Place) {
        let kind = event.kind();
        let is_text = matches!(
            kind,
            Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking
        );
        if event.choice() != 0 || is_text && !self.has_tag {
            return;
        }
        // The tools are left out on purpose: a call whose arguments do not fit their schema is
        // still the call that the model made.
        let start = (kind == Kind::StreamStart).then(|| StreamStart {
            tools: None,
            ..StreamStart::read(event)
        });
        let start = start.map(Payload::from);
        let start = start.as_ref().map(|start| Event::of(start, None, 0, None));
        let event = &start.as_ref().unwrap_or(event).unnamed();
        let ChoiceCallReader { machine, found, .. } = self;
        let take = &mut |event: &Event<'_>, is_passed| found.take(event, is_passed, place);
        machine.push(event, &mut each_event(Some(event), take));
    }

    /// Handles the end of a stream without a `stream_end`.
    pub(super) fn finish(&mut self, place: Place) {
        let ChoiceCallReader { machine, found, .. } = self;
        let take = &mut |event: &Event<'_>, is_passed| found.take(event, is_passed, place);
        machine.finish(&mut each_event(None, take));
    }

    /// The first event of a call.
    pub(super) fn first(&self) -> Option<Place> {
        self.found.first
    }

    /// The recorded time at which the first call was complete, in milliseconds.
    pub(super) fn ready_ms(&self) -> Option<f64> {
        self.found.ready_ms
    }

    /// Compares the calls with those of the label.
    pub(super) fn counts(&self, labelled: &[LabelledCall]) -> CallCounts {
        let calls = made_calls(&self.found.talk);
        let mut left: Vec<&LabelledCall> = labelled.iter().collect();
        let exact =
            calls
                .iter()
                .filter(|call| match left.iter().position(|label| is(call, label)) {
                    Some(at) => {
                        left.swap_remove(at);
                        true
                    }
                    None => false,
                });
        let exact = exact.count() as u64;
        CallCounts {
            expected: labelled.len() as u64,
            read: calls.len() as u64,
            exact,
            is_in_order: calls.len() == labelled.len()
                && calls
                    .iter()
                    .zip(labelled)
                    .all(|(call, label)| is(call, label)),
            repaired: count(&calls, |call| call.repairs.is_some()),
            incomplete: count(&calls, |call| {
                let refusal = call.refusal.as_ref();
                refusal.is_some_and(|why| why.code == CallErrorCode::Incomplete.name())
            }),
        }
    }
}

impl FoundCalls {
    fn take(&mut self, event: &Event<'_>, is_passed: bool, place: Place) {
        let kind = event.kind();
        // A call that is made of deltas begins with them.
        let is_call = kind == Kind::ToolCallDelta || kind == Kind::ToolCall && is_passed;
        if is_call && self.first.is_none() {
            let verdict = self.full.push(event);
            let is_call = verdict.is_some_and(|verdict| verdict.tool_call);
            self.first = is_call.then_some(place);
        }
        let Change::Call(at, change) = self.talk.push(event) else {
            return;
        };
        let call = &self.talk.calls()[at];
        match change {
            CallChange::Merged if call.refusal.is_none() => {
                self.ready_ms = self.ready_ms.or(place.ms);
            }
            CallChange::Retracted if is_taken_back(call) && made_calls(&self.talk).is_empty() => {
                (self.first, self.ready_ms) = (None, None);
            }
            _ => {}
        }
    }
}

fn count(calls: &[&Call], is: impl Fn(&Call) -> bool) -> u64 {
    calls.iter().filter(|call| is(call)).count() as u64
}

/// Whether the label has this call.
fn is(call: &Call, label: &LabelledCall) -> bool {
    call.name == label.name
        && match (arguments(call), &label.arguments) {
            (None, None) => true,
            (Some(read), Some(label)) => {
                Raw::parse(label.get()).is_ok_and(|label| json::equal(read, label))
            }
            _ => false,
        }
}
