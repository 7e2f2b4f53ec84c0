//! Reads recorded streams with `tag-parse` and `tc-accumulate` within this process.

use accumulate::Accumulate;
use conversation::{Call, Keep, Refusal, Talk};
use event::payload::{CallErrorCode, RetractReason, StreamStart};
use event::{Chain, Emitted, Event, Kind, Machine, Raw, SinkOf};
use std::collections::HashMap;
use std::rc::Rc;
use tag::{Streams, Tag};

/// Reads the streams of one recording into calls. Deltas are forwarded too.
pub(crate) struct FullReading {
    tag: Streams,
    options: Rc<accumulate::AccumulateOptions>,
    /// The open streams, by number.
    open: HashMap<u64, Box<dyn Machine>>,
}

/// Receives the events of a reading; the flag says whether the recording contains the event.
pub(crate) type TakeReading<'t> = dyn FnMut(&Event<'_>, bool) + 't;

impl FullReading {
    /// Creates a reader that parses calls in the text of streams in tag mode.
    pub(crate) fn new() -> Self {
        let options = Rc::new(accumulate::AccumulateOptions {
            keep_deltas: true,
            ..accumulate::AccumulateOptions::default()
        });
        FullReading {
            tag: Streams::new(tag::TagOptions::default()),
            options,
            open: HashMap::new(),
        }
    }

    /// Handles the next event of stream `number`, and passes to `take` the events that a pipe of
    /// the two commands would write for it.
    pub(crate) fn push(&mut self, number: u64, event: &Event<'_>, take: &mut TakeReading<'_>) {
        let machine = || machine(&self.tag, &self.options, event);
        let pipe = self.open.entry(number).or_insert_with(machine);
        pipe.push(event, &mut each_event(Some(event), take));
        if event.kind() == Kind::StreamEnd {
            self.open.remove(&number);
        }
    }

    /// Handles the end of a stream that has no `stream_end`.
    pub(crate) fn finish(&mut self, number: u64, take: &mut TakeReading<'_>) {
        if let Some(mut pipe) = self.open.remove(&number) {
            pipe.finish(&mut each_event(None, take));
        }
    }
}

/// Creates a conversation that keeps no texts, and keeps results only if `results` is true.
pub(crate) fn calls_alone(results: bool) -> Talk {
    Talk::new(Keep {
        text: false,
        arguments: true,
        results,
    })
}

/// Returns the calls that the model made in one stream, in the order in which they started.
pub(crate) fn made_calls(talk: &Talk) -> Vec<&Call> {
    let calls = talk.calls().iter().map(|(_, call)| call);
    let made = calls.filter(|call| call.is_merged && !is_taken_back(call));
    let mut made: Vec<&Call> = made.collect();
    made.sort_by_key(|call| call.index);
    made
}

/// Returns the arguments that the model wrote; `None` if they were cut off or are not JSON.
/// Arguments that do not match the tool's schema are returned, because the model did write them.
pub(crate) fn arguments(call: &Call) -> Option<Raw<'_>> {
    let is_written = |why: &Refusal| why.code == CallErrorCode::Schema.name();
    let arguments = Raw::parse(&call.arguments).ok();
    arguments.filter(|_| call.refusal.as_ref().is_none_or(is_written))
}

/// Whether the call turned out not to be a call. A call whose stream failed later still counts as
/// made.
pub(crate) fn is_taken_back(call: &Call) -> bool {
    let reason = call.retracted.as_deref();
    reason.is_some_and(|reason| reason != RetractReason::StreamFailed.name())
}

/// Returns the machine for the stream that `first` starts. Unlike `tag-parse`, it does not parse
/// the text of a stream without `tools_mode`: a recorded body has no such member, and its calls are
/// native.
fn machine(
    tag: &Streams,
    options: &Rc<accumulate::AccumulateOptions>,
    first: &Event<'_>,
) -> Box<dyn Machine> {
    let mode = (first.kind() == Kind::StreamStart)
        .then(|| StreamStart::read(first).tools_mode)
        .flatten();
    let is_text = mode.is_some_and(|mode| mode.str() == "tag");
    to_calls(is_text.then(|| tag.begin(first)), options)
}

/// Returns a machine that reads one stream into calls; `tag` parses those in the text.
pub(crate) fn to_calls(
    tag: Option<Tag>,
    options: &Rc<accumulate::AccumulateOptions>,
) -> Box<dyn Machine> {
    let options = Rc::clone(options);
    match tag {
        None => Box::new(Accumulate::new(options)),
        Some(tag) => Box::new(Chain::new(tag, move |_: &Event<'_>| {
            Accumulate::new(Rc::clone(&options))
        })),
    }
}

/// Returns a sink that passes the forwarded and written events of a machine to `take`. `event` is
/// the current event; `None` at the end of the stream.
pub(crate) fn each_event<'s>(
    event: Option<&'s Event<'_>>,
    take: &'s mut TakeReading<'_>,
) -> SinkOf<impl FnMut(Emitted<'_>) + 's> {
    SinkOf(move |emitted: Emitted<'_>| match emitted {
        Emitted::Passed => {
            if let Some(event) = event {
                take(event, true);
            }
        }
        Emitted::Written(choice, payload) => take(&Event::of(payload, None, choice, None), false),
    })
}
