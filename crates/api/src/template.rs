//! Frames that repeat the last one except for one string.
//!
//! Nearly all frames of a stream are deltas that differ in their text alone: of the 290 bytes of a
//! chunk of OpenAI's, the text has five. After a full reading of such a frame the next one is
//! compared with it, and where the bytes before and behind the string are equal, only the string is
//! parsed.

use event::Raw;
use std::ops::Range;

/// The delta that one frame was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameDelta {
    pub choice: u32,
    pub kind: DeltaKind,
}

/// What the string of a delta is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaKind {
    Text {
        with_call: bool,
    },
    Refusal,
    Thinking,
    /// A piece of the arguments of the call with this index.
    Arguments(Option<i64>),
}

/// What the reading of one frame did.
#[derive(Debug, Default)]
pub(crate) struct FrameEffect {
    /// The number of events.
    events: usize,
    /// The number of strings that were taken as pieces of a text or of a call.
    pieces: usize,
    /// The same frame again would do something else.
    is_unique: bool,
    /// The last piece: its delta, its address and its length.
    last: Option<(FrameDelta, usize, usize)>,
}

impl FrameEffect {
    pub(crate) fn event(&mut self) {
        self.events += 1;
    }

    /// Something changed that depends on more than the frame, or that a second frame changes again.
    pub(crate) fn unique(&mut self) {
        self.is_unique = true;
    }

    /// A string was taken, and `text` is its text. An empty string does nothing; another one may be
    /// without text, as half a surrogate pair is.
    pub(crate) fn piece(&mut self, choice: u32, kind: DeltaKind, piece: Raw<'_>, text: &str) {
        let is_written = !text.is_empty();
        let text = piece.text();
        if text != "\"\"" {
            self.pieces += 1;
            self.is_unique |= !is_written;
            let delta = FrameDelta { choice, kind };
            self.last = Some((delta, text.as_ptr().addr(), text.len()));
        }
    }

    /// The delta that the frame `text` was, and the place of its string. `None` if it did anything
    /// else.
    fn only_delta(&self, text: &str) -> Option<(FrameDelta, Range<usize>)> {
        let (delta, address, length) = self.last?;
        let start = address.checked_sub(text.as_ptr().addr())?;
        let place = start..start + length;
        let is_only = self.events == 1 && self.pieces == 1 && !self.is_unique;
        // Some strings are decoded before they are taken, and do not lie in the frame.
        (is_only && text.get(place.clone())?.starts_with('"')).then_some((delta, place))
    }
}

/// The longest frame that is kept, in bytes.
const MAX_KEPT: usize = 1 << 12;

/// The last frame, if it was a single delta.
#[derive(Debug, Default)]
pub(crate) struct FrameTemplate {
    delta: Option<FrameDelta>,
    name: Option<String>,
    frame: String,
    /// Where the string of the delta lies in the frame, with its quotes.
    piece: Range<usize>,
}

impl FrameTemplate {
    /// The delta of a frame that differs from the last one in the string of the delta alone.
    #[inline]
    pub(crate) fn delta<'t>(
        &self,
        name: Option<&str>,
        text: &'t str,
    ) -> Option<(FrameDelta, Raw<'t>)> {
        let delta = self.delta?;
        let (frame, Range { start, end }) = (self.frame.as_bytes(), self.piece.clone());
        let is_like = text.as_bytes().starts_with(&frame[..=start]) && self.name.as_deref() == name;
        if !is_like {
            return None;
        }
        let piece = Raw::parse_prefix(&text[start..]).ok()?;
        let after = &text.as_bytes()[start + piece.text().len()..];
        // Decoders skip an empty string, so it may do less than others.
        (after == &frame[end..] && piece.text() != "\"\"").then_some((delta, piece))
    }

    /// Keeps a frame that was read in full, if it was one delta.
    pub(crate) fn keep(&mut self, name: Option<&str>, text: &str, effect: &FrameEffect) {
        let found = effect.only_delta(text).filter(|_| text.len() <= MAX_KEPT);
        let Some((delta, piece)) = found else {
            return;
        };
        (self.delta, self.piece) = (Some(delta), piece);
        if self.name.as_deref() != name {
            self.name = name.map(str::to_owned);
        }
        text.clone_into(&mut self.frame);
    }

    /// Forgets the frame: what follows may have changed what it does.
    pub(crate) fn clear(&mut self) {
        self.delta = None;
    }
}
