//! Reads frames that repeat the last one except for one string.
//!
//! Nearly all frames of a stream are deltas that differ only in their text, which is 5 of the 290
//! bytes of an OpenAI chunk, and in members that count it or pad it. After such a frame was read in
//! full, the next one is compared with it. If the bytes between these values are equal, only the
//! values are parsed. Where all bytes of the next frame are at hand, they are compared with those
//! of the last one in the body, before its lines are found.

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

/// The members of a frame that may differ from those of the last frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Varying {
    /// Members that have no effect once the stream has started.
    pub unread: &'static [&'static str],
    /// The object with the token counts so far, and the names of those that are read; see
    /// [`crate::turn::Decoder::counts`].
    pub counts: Option<(&'static str, [&'static str; COUNTS])>,
}

const COUNTS: usize = 6;

/// The token counts of [`Varying::counts`].
pub(crate) type Counts = [Option<u64>; COUNTS];

/// A frame that repeats the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatedFrame<'t> {
    pub delta: FrameDelta,
    /// The string of the delta.
    pub piece: Raw<'t>,
    /// The counts, if any of them may differ.
    pub counts: Option<Counts>,
}

/// Returns the counts `names` of the member `name`. Returns `None` if one of them is repeated or is
/// no count, so that another frame with counts in the same places might be read otherwise.
fn counts<'t>(
    data: Raw<'t>,
    name: &str,
    names: [&str; COUNTS],
) -> Option<Vec<(Raw<'t>, HoleValue)>> {
    let mut objects = data.entries().filter(|(key, _)| key == name);
    let (object, None) = (objects.next()?.1, objects.next()) else {
        return None;
    };
    let mut found = Vec::new();
    for (key, value) in object.entries() {
        if let Some(name) = names.iter().position(|name| *name == key) {
            let hole = HoleValue::Count(name);
            if count(value).is_none() || found.iter().any(|(_, other)| *other == hole) {
                return None;
            }
            found.push((value, hole));
        }
    }
    Some(found)
}

/// The maximum size of a frame that is kept, in bytes.
const MAX_KEPT: usize = 1 << 12;

/// The last frame that was a single delta.
#[derive(Debug, Default)]
pub(crate) struct FrameTemplate {
    delta: Option<FrameDelta>,
    name: Option<String>,
    /// The bytes of the frame between its holes. If the frame's place in the body is known, the
    /// bytes of the body before and after it are there too.
    literals: Vec<u8>,
    /// The places of the values that may differ, in order.
    holes: Vec<Hole>,
    /// The numbers of bytes before and after the frame; `None` if its place in the body is unknown.
    around: Option<(usize, usize)>,
}

/// The place of a value that may differ.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The number of bytes of the frame between the hole before and this one.
    literal: usize,
    value: HoleValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoleValue {
    Piece,
    Unread,
    /// The count of this name.
    Count(usize),
}

/// Returns a count that [`crate::turn::count`] would return too.
fn count(value: Raw<'_>) -> Option<u64> {
    u64::try_from(value.i64()?).ok()
}

impl FrameTemplate {
    /// Reads a frame that differs from the kept frame only in its holes. Returns `None` if the frame
    /// must be read in full.
    #[inline]
    pub(crate) fn frame<'t>(&self, name: Option<&str>, text: &'t str) -> Option<RepeatedFrame<'t>> {
        let delta = self.delta?;
        let (before, after) = self.around.unwrap_or_default();
        let literals = &self.literals[before..self.literals.len() - after];
        if self.name.as_deref() != name {
            return None;
        }
        let (frame, length) = self.fit(delta, literals, 0, text.as_bytes())?;
        (length == text.len()).then_some(frame)
    }

    /// Reads the frame at the start of `body`, with the bytes around it, like
    /// [`FrameTemplate::frame`]. Also returns the number of bytes read.
    #[inline]
    pub(crate) fn block<'t>(&self, body: &'t [u8]) -> Option<(RepeatedFrame<'t>, usize)> {
        let (before, _) = self.around?;
        self.fit(self.delta?, &self.literals, before, body)
    }

    /// Compares the start of `bytes` with the literals. The first one has `before` bytes that are
    /// not part of the frame.
    #[inline]
    fn fit<'t>(
        &self,
        delta: FrameDelta,
        mut literals: &[u8],
        mut before: usize,
        bytes: &'t [u8],
    ) -> Option<(RepeatedFrame<'t>, usize)> {
        let (mut rest, mut piece, mut counts) = (bytes, None, None);
        for hole in &self.holes {
            let (literal, others) = literals.split_at(hole.literal + std::mem::take(&mut before));
            literals = others;
            rest = rest.strip_prefix(literal)?;
            if hole.value == HoleValue::Unread {
                // Objects and arrays may have line ends, and be nested too deep inside the frame.
                if let [b'{' | b'[', ..] = rest {
                    return None;
                }
                rest = &rest[Raw::length(rest)?..];
                continue;
            }
            let value = Raw::of_bytes(rest)?;
            rest = &rest[value.text().len()..];
            if let HoleValue::Count(name) = hole.value {
                counts.get_or_insert(Counts::default())[name] = Some(count(value)?);
            } else if value.is_str() && value.text() != "\"\"" {
                piece = Some(value);
            } else {
                // Decoders skip an empty string, so its frame may have less effect than others.
                return None;
            }
        }
        rest = rest.strip_prefix(literals)?;
        let piece = piece?;
        let frame = RepeatedFrame {
            delta,
            piece,
            counts,
        };
        Some((frame, bytes.len() - rest.len()))
    }

    /// Keeps a frame that was read in full, if it was a single delta. `data` is the value of `text`.
    pub(crate) fn keep(
        &mut self,
        name: Option<&str>,
        (text, data): (&str, Raw<'_>),
        effect: &FrameEffect,
        varying: Varying,
    ) {
        let found = effect.only_delta(text).filter(|_| text.len() <= MAX_KEPT);
        let Some((delta, piece)) = found else {
            return;
        };
        (self.delta, self.around) = (Some(delta), None);
        if self.name.as_deref() != name {
            self.name = name.map(str::to_owned);
        }
        let mut values = vec![(piece, HoleValue::Piece)];
        let mut add = |value: Raw<'_>, hole| {
            let start = value.text().as_ptr().addr() - text.as_ptr().addr();
            values.push((start..start + value.text().len(), hole));
        };
        if !varying.unread.is_empty() {
            let unread = data
                .entries()
                .filter(|(key, _)| varying.unread.contains(&key.as_ref()));
            unread.for_each(|(_, value)| add(value, HoleValue::Unread));
        }
        if let Some((name, names)) = varying.counts {
            for (value, hole) in counts(data, name, names).unwrap_or_default() {
                add(value, hole);
            }
        }
        values.sort_by_key(|(place, _)| place.start);
        self.literals.clear();
        self.holes.clear();
        let mut at = 0;
        for (place, value) in values {
            let literal = &text.as_bytes()[at..place.start];
            self.literals.extend_from_slice(literal);
            self.holes.push(Hole {
                literal: literal.len(),
                value,
            });
            at = place.end;
        }
        self.literals.extend_from_slice(&text.as_bytes()[at..]);
    }

    /// Keeps the bytes around a frame that was kept, or that repeated it. `block` is the part of
    /// the body with this frame and no other.
    pub(crate) fn keep_block(&mut self, block: &[u8]) {
        let (Some(delta), None) = (self.delta, self.around) else {
            return;
        };
        // All bytes of the frame are in the last line that is not blank.
        let end = block.trim_ascii_end().len();
        let line = block[..end]
            .iter()
            .rposition(|b| matches!(b, b'\n' | b'\r'));
        let line = &block[line.map_or(0, |end| end + 1)..];
        let frame = match line.strip_prefix(b"data:") {
            Some(data) => data.strip_prefix(b" ").unwrap_or(data),
            None => line,
        };
        let before = block.len() - frame.len();
        // In a body of JSON, a second `[` would not be the start of the list.
        if before > MAX_KEPT || block[..before].contains(&b'[') {
            return;
        }
        let Some((_, length)) = self.fit(delta, &self.literals, 0, &block[before..]) else {
            return;
        };
        let after = &block[before + length..];
        if !after.iter().all(u8::is_ascii_whitespace) || after.len() > MAX_KEPT {
            return;
        }
        self.around = Some((before, after.len()));
        self.literals.splice(..0, block[..before].iter().copied());
        self.literals.extend_from_slice(after);
    }

    /// Forgets the kept frame, because something has happened that may change the effect of such a
    /// frame.
    pub(crate) fn clear(&mut self) {
        self.delta = None;
    }
}
