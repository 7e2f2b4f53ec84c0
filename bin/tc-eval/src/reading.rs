//! The full reading of recorded streams: `tag-parse` and `tc-accumulate` in this process.

use crate::read::{self, EventOrigin, ReadSettings};
use accumulate::Accumulate;
use anyhow::Result;
use event::payload::StreamStart;
use event::{Chain, Emitted, Event, Kind, Machine, SinkOf};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;
use tag::{Streams, Tag};

/// Reads the streams of one recording to their calls. Deltas pass too.
pub(crate) struct FullReading {
    tag: Streams,
    options: Rc<accumulate::AccumulateOptions>,
    /// The open streams by their number.
    open: HashMap<u64, Box<dyn Machine>>,
}

/// Takes the events of a reading, and whether each is one that the recording has.
pub(crate) type TakeReading<'t> = dyn FnMut(&Event<'_>, bool) + 't;

impl FullReading {
    /// A reading that takes calls out of the text of streams of tag mode.
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

    /// Takes the next event of the stream `number`, and gives what a pipe of the two commands would
    /// write for it.
    pub(crate) fn push(&mut self, number: u64, event: &Event<'_>, take: &mut TakeReading<'_>) {
        let machine = || machine(&self.tag, &self.options, event);
        let pipe = self.open.entry(number).or_insert_with(machine);
        pipe.push(event, &mut each_event(Some(event), take));
        if event.kind() == Kind::StreamEnd {
            self.open.remove(&number);
        }
    }

    /// Handles the end of a stream that has none of its own.
    pub(crate) fn finish(&mut self, number: u64, take: &mut TakeReading<'_>) {
        if let Some(mut pipe) = self.open.remove(&number) {
            pipe.finish(&mut each_event(None, take));
        }
    }
}

/// What is made of one stream of a recording.
pub(crate) trait StreamReader: Default {
    /// Takes the next event as the recording has it.
    fn push(&mut self, event: &Event<'_>, origin: EventOrigin);

    /// Takes the next event of the full reading.
    fn read(&mut self, event: &Event<'_>);
}

/// The streams of the recording `bytes` of the file at `path`, by their numbers.
///
/// # Errors
/// As [`read::each_event`].
pub(crate) fn streams<S: StreamReader>(
    path: &Path,
    bytes: &[u8],
    settings: &ReadSettings,
) -> Result<BTreeMap<u64, S>> {
    let mut streams: BTreeMap<u64, S> = BTreeMap::new();
    let mut reading = FullReading::new();
    read::each_event(path, bytes, settings, &mut |event, origin| {
        if origin.part > 0 {
            let stream = streams.entry(origin.part).or_default();
            stream.push(event, origin);
            reading.push(origin.part, event, &mut |event, _| stream.read(event));
        }
    })?;
    for (part, stream) in &mut streams {
        reading.finish(*part, &mut |event, _| stream.read(event));
    }
    Ok(streams)
}

/// The machine of the stream that `first` begins. `tag-parse` would also read a stream without
/// `tools_mode`; a recorded body has none, and its calls are native.
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

/// A machine that reads one stream to its calls, which `tag` takes out of the text.
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

/// A sink that hands on what a machine passes and writes, as events. `event` is the one at hand;
/// `None` at the end of the stream.
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
