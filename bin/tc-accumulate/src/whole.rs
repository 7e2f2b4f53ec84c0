//! One whole response for each stream (`--as`).

use accumulate::Accumulate;
use api::WholeResponse;
use event::{Event, Kind, Machine, Sink};
use stdio::RawLines;

/// A stream that becomes one response.
pub(crate) struct OpenResponse {
    /// Merges its deltas.
    pub merging: Accumulate,
    /// The response so far.
    pub response: WholeResponse,
    /// Where the response goes at the end.
    pub lines: RawLines,
}

impl Machine for OpenResponse {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let mut sink = self.response.sink(Some(event), out);
        self.merging.push(event, &mut sink);
        drop(sink);
        if event.kind() == Kind::StreamEnd {
            self.lines.push(self.response.finish(Some(event)));
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        let mut sink = self.response.sink(None, out);
        self.merging.finish(&mut sink);
        drop(sink);
        self.lines.push(self.response.finish(None));
    }
}
