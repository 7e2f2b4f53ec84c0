//! The full reading of recorded streams: `tag-parse` and `tc-accumulate` in this process.

use accumulate::Accumulate;
use event::payload::StreamStart;
use event::{Chain, Event, Kind, Machine, Payload, Sink};
use std::collections::HashMap;
use std::rc::Rc;
use tag::Streams;

/// Reads the streams of one recording to their calls. Deltas pass too.
pub struct FullReading {
    tag: Streams,
    options: Rc<accumulate::Options>,
    /// The open streams by their number.
    open: HashMap<u64, Box<dyn Machine>>,
}

/// Takes the events of a reading, and whether each is one that the recording has.
pub type TakeReading<'t> = dyn FnMut(&Event<'_>, bool) + 't;

impl FullReading {
    /// A reading that takes calls out of the text of streams of tag mode.
    pub fn new() -> Self {
        let options = Rc::new(accumulate::Options {
            keep_deltas: true,
            ..accumulate::Options::default()
        });
        FullReading {
            tag: Streams::new(tag::Options::default()),
            options,
            open: HashMap::new(),
        }
    }

    /// Takes the next event of the stream `number`, and gives what a pipe of the two commands would
    /// write for it.
    pub fn push(&mut self, number: u64, event: &Event<'_>, take: &mut TakeReading<'_>) {
        let machine = || machine(&self.tag, &self.options, event);
        let pipe = self.open.entry(number).or_insert_with(machine);
        pipe.push(
            event,
            &mut EachEvent {
                event: Some(event),
                take,
            },
        );
        if event.kind() == Kind::StreamEnd {
            self.open.remove(&number);
        }
    }

    /// Handles the end of a stream that has none of its own.
    pub fn finish(&mut self, number: u64, take: &mut TakeReading<'_>) {
        if let Some(mut pipe) = self.open.remove(&number) {
            pipe.finish(&mut EachEvent { event: None, take });
        }
    }
}

/// The machine of the stream that `first` begins. `tag-parse` would also read a stream without
/// `tools_mode`; a recorded body has none, and its calls are native.
fn machine(
    tag: &Streams,
    options: &Rc<accumulate::Options>,
    first: &Event<'_>,
) -> Box<dyn Machine> {
    let options = Rc::clone(options);
    let mode = (first.kind() == Kind::StreamStart)
        .then(|| StreamStart::read(first).tools_mode)
        .flatten();
    if mode.is_none_or(|mode| mode.str() != "tag") {
        return Box::new(Accumulate::new(options));
    }
    Box::new(Chain::new(tag.begin(first), move |_: &Event<'_>| {
        Accumulate::new(Rc::clone(&options))
    }))
}

/// A sink that hands on what a machine passes and writes, as events.
pub struct EachEvent<'o, 'e, 't> {
    /// The event at hand; `None` at the end of the stream.
    pub event: Option<&'o Event<'e>>,
    /// Takes the events.
    pub take: &'o mut TakeReading<'t>,
}

impl Sink for EachEvent<'_, '_, '_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            (self.take)(event, true);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        (self.take)(&Event::of(payload, None, choice, None), false);
    }
}
