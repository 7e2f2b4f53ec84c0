//! The calls of a stream as a pipeline reads them, and how they compare with those of the label.

use crate::reading::{each_event, to_calls};
use accumulate::AccumulateOptions;
use detect::Checker;
use event::payload::{Retract, RetractReason, StreamStart, ToolCall};
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

/// What was found so far.
struct FoundCalls {
    /// Finds the first event of a call.
    full: Box<dyn Checker>,
    calls: Vec<ReadCall>,
    /// The first event of a call.
    first: Option<Place>,
    /// When the first call was complete, in recorded milliseconds.
    ready_ms: Option<f64>,
}

/// One call.
struct ReadCall {
    index: i64,
    id: String,
    name: String,
    /// The arguments; `None` where they were cut or are not JSON.
    arguments: Option<String>,
    is_repaired: bool,
    is_incomplete: bool,
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
                calls: Vec::new(),
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
        let event = start.as_ref().unwrap_or(event);
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

    /// When the first call was complete, in recorded milliseconds.
    pub(super) fn ready_ms(&self) -> Option<f64> {
        self.found.ready_ms
    }

    /// Compares the calls with those of the label.
    pub(super) fn counts(&mut self, labelled: &[LabelledCall]) -> CallCounts {
        let calls = &mut self.found.calls;
        calls.sort_by_key(|call| call.index);
        let mut left: Vec<&LabelledCall> = labelled.iter().collect();
        let exact =
            calls
                .iter()
                .filter(|call| match left.iter().position(|label| call.is(label)) {
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
                    .all(|(call, label)| call.is(label)),
            repaired: calls.iter().filter(|call| call.is_repaired).count() as u64,
            incomplete: calls.iter().filter(|call| call.is_incomplete).count() as u64,
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
        match kind {
            Kind::ToolCall => self.call(&ToolCall::read(event), place),
            Kind::Retract => self.retract(&Retract::read(event)),
            _ => {}
        }
    }

    fn call(&mut self, call: &ToolCall<'_>, place: Place) {
        let code = call.error.map(|error| error.code.str());
        // Of a log: arguments that another run has refused, although they are whole.
        let refused = call
            .arguments_text
            .filter(|_| code.as_deref() == Some("schema"));
        let refused = refused.map(|text| text.str().into_owned());
        let arguments = call
            .arguments
            .map(|json| json.text().into_owned())
            .or(refused);
        if call.error.is_none() && self.ready_ms.is_none() {
            self.ready_ms = place.ms;
        }
        self.calls.push(ReadCall {
            index: call.index.unwrap_or(self.calls.len() as i64),
            id: call.tool_id.str().into_owned(),
            name: call.tool_name.str().into_owned(),
            arguments,
            is_repaired: call.repairs.is_some(),
            is_incomplete: code.as_deref() == Some("incomplete"),
        });
    }

    /// Takes back a call that turned out not to be a call. A failure of the stream after a call
    /// takes back no call here: the model made that call.
    fn retract(&mut self, retract: &Retract<'_>) {
        if retract.reason == RetractReason::StreamFailed.name() {
            return;
        }
        if let Some(id) = retract.tool_id {
            self.calls.retain(|call| id != call.id.as_str());
        }
        if self.calls.is_empty() {
            (self.first, self.ready_ms) = (None, None);
        }
    }
}

impl ReadCall {
    fn is(&self, label: &LabelledCall) -> bool {
        self.name == label.name
            && match (&self.arguments, &label.arguments) {
                (None, None) => true,
                (Some(read), Some(label)) => match (Raw::parse(read), Raw::parse(label.get())) {
                    (Ok(read), Ok(label)) => json::equal(read, label),
                    _ => false,
                },
                _ => false,
            }
    }
}
