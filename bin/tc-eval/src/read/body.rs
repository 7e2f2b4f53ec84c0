//! Reads the events of a response body.

use super::settings::{EventOrigin, ReadSettings, Take};
use anyhow::{Result, bail};
use api::{Api, End, Stream};
use event::{Event, Payload};
use std::io::BufRead;

/// Passes the events of a body of `api` to `take`.
pub(super) fn read(
    mut source: impl BufRead,
    api: Api,
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    let mut stream = Stream::new(api, settings.options());
    let mut sink = BodySink {
        take,
        origin: EventOrigin {
            part: 1,
            offset: 0,
            ms: None,
        },
        is_too_long: false,
    };
    if !settings.reads(1) {
        return Ok(());
    }
    let mut bytes = Vec::new();
    if settings.pieces.is_some() {
        sink.origin.offset = source.read_to_end(&mut bytes)? as u64;
        sink.feed_pieces(&mut stream, &bytes, settings);
    }
    // Line by line, so that the offset of each event is the end of its frame.
    while !stream.is_done() && source.read_until(b'\n', &mut bytes)? > 0 {
        sink.origin.offset += bytes.len() as u64;
        stream.push(&bytes, &mut sink);
        bytes.clear();
    }
    stream.finish(End::Eof, &mut sink);
    sink.check(settings)
}

/// Builds events from the payloads that a decoder writes.
pub(super) struct BodySink<'s> {
    pub take: &'s mut Take<'s>,
    pub origin: EventOrigin,
    /// Whether the decoder stopped at a frame longer than the settings allow.
    pub is_too_long: bool,
}

impl BodySink<'_> {
    /// Whether the whole stream was decoded.
    ///
    /// # Errors
    /// Fails if a frame was longer than the settings allow: the events would be incomplete.
    pub(super) fn check(&self, settings: &ReadSettings) -> Result<()> {
        if self.is_too_long {
            let limit = settings
                .max_line
                .map_or_else(|| "64 MiB".to_owned(), |limit| format!("{limit} bytes"));
            bail!("an event is longer than {limit}; raise --max-line if that is right");
        }
        Ok(())
    }

    /// Feeds `stream` in pieces of the sizes in the settings, or at once if they have no sizes.
    pub(super) fn feed_pieces(
        &mut self,
        stream: &mut Stream,
        bytes: &[u8],
        settings: &ReadSettings,
    ) {
        let Some(mut sizes) = settings.pieces else {
            return stream.push(bytes, self);
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().min(rest.len()));
            stream.push(piece, self);
            rest = after;
        }
    }
}

impl event::Sink for BodySink<'_> {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.is_too_long |=
            matches!(payload, Payload::Error(error) if error.code.str() == "frame_too_long");
        (self.take)(&Event::of(payload, None, choice, None), self.origin);
    }
}
