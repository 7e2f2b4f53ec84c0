//! Reads frames that repeat the last one except for one string.
//!
//! Nearly all frames of a stream are deltas that differ only in their text, which is 5 of the 290
//! bytes of an OpenAI chunk. After such a frame was read in full, the next one is compared with it.
//! If the bytes before and after the string are equal, only the string is parsed.

use event::Raw;
use std::ops::Range;

/// The delta that one frame contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameDelta {
    pub choice: u32,
    pub kind: DeltaKind,
}

/// The role of the string in a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaKind {
    Text {
        with_call: bool,
    },
    Refusal,
    Thinking,
    /// A fragment of the arguments of the call with this index.
    Arguments(Option<i64>),
}

/// The effect of reading one frame in full.
#[derive(Debug, Default)]
pub(crate) struct FrameEffect {
    /// The number of events that the frame caused.
    events: usize,
    /// The number of strings that were used as a piece of a text or of a call.
    pieces: usize,
    /// Whether reading the same frame again would have another effect.
    is_unique: bool,
    /// The last piece: its delta, and the address and length of its JSON string.
    last: Option<(FrameDelta, usize, usize)>,
}

impl FrameEffect {
    pub(crate) fn event(&mut self) {
        self.events += 1;
    }

    /// Records an effect that depends on more than the frame, or that a second frame like this one
    /// would not repeat.
    pub(crate) fn unique(&mut self) {
        self.is_unique = true;
    }

    /// Records that the string `piece` was used, and that it decoded to `text`. An empty string has
    /// no effect. Another string can also decode to no text, for example half a surrogate pair;
    /// then the frame does not become a template.
    pub(crate) fn piece(&mut self, choice: u32, kind: DeltaKind, piece: Raw<'_>, text: &str) {
        let json = piece.text();
        if json != "\"\"" {
            self.pieces += 1;
            self.is_unique |= text.is_empty();
            let delta = FrameDelta { choice, kind };
            self.last = Some((delta, json.as_ptr().addr(), json.len()));
        }
    }

    /// Returns the delta of the frame `text`, and the position of its string. Returns `None` if the
    /// frame had any other effect.
    fn only_delta(&self, text: &str) -> Option<(FrameDelta, Range<usize>)> {
        let (delta, address, length) = self.last?;
        let start = address.checked_sub(text.as_ptr().addr())?;
        let place = start..start + length;
        let is_only = self.events == 1 && self.pieces == 1 && !self.is_unique;
        // Some strings are decoded before they are used, so their address is not inside the frame.
        (is_only && text.get(place.clone())?.starts_with('"')).then_some((delta, place))
    }
}

/// The maximum size of a frame that is kept, in bytes.
const MAX_KEPT: usize = 1 << 12;

/// The last frame that was a single delta.
#[derive(Debug, Default)]
pub(crate) struct FrameTemplate {
    delta: Option<FrameDelta>,
    name: Option<String>,
    frame: String,
    /// The position of the delta's string in the frame, including its quotes.
    piece: Range<usize>,
}

impl FrameTemplate {
    /// Returns the delta and the string of a frame that differs from the kept frame only in that
    /// string. Returns `None` if the frame must be read in full.
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
        // Decoders skip an empty string, so its frame may have less effect than others.
        (after == &frame[end..] && piece.text() != "\"\"").then_some((delta, piece))
    }

    /// Keeps a frame that was read in full, if it was a single delta.
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

    /// Forgets the kept frame, because something has happened that may change the effect of such a
    /// frame.
    pub(crate) fn clear(&mut self) {
        self.delta = None;
    }
}
