//! The events of a body.

use super::origin::{Origin, Take};
use super::settings::ReadSettings;
use super::source::Source;
use anyhow::Result;
use event::{Event, Payload};
use upstream::{Api, End, Stream};

/// Gives the events of the body of `api` to `take`.
pub(super) fn read(source: Source<'_>, api: Api, settings: &ReadSettings, take: &mut Take<'_>) -> Result<()> {
    let mut stream = Stream::new(api, settings.options());
    let mut sink = Sink { take, origin: Origin { part: 1, offset: 0, ms: None } };
    if !settings.reads(1) {
        return Ok(());
    }
    source.each_piece(|bytes| {
        sink.feed(&mut stream, bytes, settings);
        Ok(!stream.is_done())
    })?;
    stream.finish(End::Eof, &mut sink);
    Ok(())
}

/// Makes events of what a decoder writes.
pub(super) struct Sink<'s> {
    pub take: &'s mut Take<'s>,
    pub origin: Origin,
}

impl Sink<'_> {
    /// Feeds `stream` line by line, so that the offset of each event is the end of its frame, or in the pieces of the settings.
    fn feed(&mut self, stream: &mut Stream, bytes: &[u8], settings: &ReadSettings) {
        if settings.pieces.is_some() {
            self.origin.offset += bytes.len() as u64;
            return self.feed_pieces(stream, bytes, settings);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.origin.offset += line.len() as u64;
            stream.push(line, self);
        }
    }

    /// Feeds `stream` in the pieces of the settings, if they have any.
    pub fn feed_pieces(&mut self, stream: &mut Stream, bytes: &[u8], settings: &ReadSettings) {
        let Some(mut sizes) = settings.pieces else { return stream.push(bytes, self) };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().min(rest.len()));
            stream.push(piece, self);
            rest = after;
        }
    }
}

impl event::Sink for Sink<'_> {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        (self.take)(&Event::of(payload, None, choice, None), self.origin);
    }

    fn line(&mut self, _: &str) {}
}
