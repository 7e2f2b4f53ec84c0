//! The trait that each API's file in `stream/` implements.

use crate::turn::Turn;
use event::{Raw, Sink};

/// The rules of one API: turns its frames into calls of [`Turn`], which writes to `out`.
///
/// A decoder never fails a stream. It drops what it does not recognise; what is wrong becomes a
/// `warning` or an `error`. Error objects `{"error":…}` at the top of a frame are taken before it
/// sees them, and so is `[DONE]`.
pub(crate) trait Decoder {
    /// The next frame: the data of a server-sent event (`name` is its `event` field), or a JSON
    /// value of a body that is a sequence of values. When it was the provider's end mark the
    /// decoder calls [`Turn::end_mark`].
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink);

    /// Whether this JSON value is a whole response of the endpoint without streaming, not a frame.
    /// `false` also where frames have the shape of the whole response.
    fn is_whole(&self, _body: Raw<'_>) -> bool {
        false
    }

    /// A whole response of the endpoint without streaming, as the same events. The end of the body
    /// follows.
    fn whole(&mut self, body: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        self.frame(None, body, turn, out);
    }

    /// The stream ends, with an end mark or without: closes what the decoder keeps open.
    /// `stream_end` follows.
    fn finish(&mut self, _turn: &mut Turn, _out: &mut dyn Sink) {}
}
