//! One event: a parsed line, or a payload that has not been written yet.

use crate::payload::field::Fields;
use crate::payload::{self, *};
use crate::slot::{LineField, LineMembers, LineSlot, LineValue};
use crate::{Raw, Text};
use std::borrow::Cow;

/// One event: its kind, the fields that any event can have, and its payload.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    kind: Kind,
    stream: Option<Raw<'a>>,
    choice: u32,
    source: EventSource<'a>,
}

/// What the event was created from.
#[derive(Clone, Copy, Debug)]
enum EventSource<'a> {
    /// The members of a line, and the line's `t`.
    Line(LineMembers<'a>, Option<&'a LineValue>),
    /// A payload, and the event's `t`.
    Payload(&'a Payload<'a>, Option<Raw<'a>>),
}

impl<'a> Event<'a> {
    /// Returns the event for a payload that a machine wrote. `stream` (the name of the stream) and
    /// `t` (the time) are JSON.
    pub fn of(
        payload: &'a Payload<'a>,
        stream: Option<Raw<'a>>,
        choice: u32,
        t: Option<Raw<'a>>,
    ) -> Self {
        Event {
            kind: payload.kind(),
            stream,
            choice,
            source: EventSource::Payload(payload, t),
        }
    }

    /// Returns the event for a parsed line.
    #[inline]
    pub(crate) fn of_line(
        kind: Kind,
        stream: Option<Raw<'a>>,
        choice: u32,
        t: Option<&'a LineValue>,
        line: &'a str,
        slots: &'a [LineSlot],
    ) -> Self {
        Event {
            kind,
            stream,
            choice,
            source: EventSource::Line(LineMembers { line, slots }, t),
        }
    }

    /// Returns the event as a line without its line feed: the input line unchanged, or the line
    /// that the payload would be written as.
    pub fn raw(&self) -> Cow<'a, str> {
        match self.source {
            EventSource::Line(members, _) => Cow::Borrowed(members.line),
            EventSource::Payload(payload, t) => {
                let mut line = Vec::new();
                let text = |raw: Option<Raw<'a>>| raw.map(Raw::text);
                payload::line(&mut line, payload, text(self.stream), self.choice, text(t));
                Cow::Owned(String::from_utf8(line).unwrap_or_default())
            }
        }
    }

    /// Returns the kind of the event.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the event has the id or the name of a call, even an empty one. Nearly all deltas
    /// have neither, and this check is cheaper than reading the whole delta.
    #[inline]
    pub fn names_call(&self) -> bool {
        match self.source {
            EventSource::Line(members, _) => members
                .slots
                .iter()
                .any(|s| matches!(s.field, LineField::ToolId | LineField::ToolName)),
            EventSource::Payload(Payload::ToolCallDelta(delta), _) => {
                delta.tool_id.is_some() || delta.tool_name.is_some()
            }
            EventSource::Payload(payload, _) => matches!(payload, Payload::ToolCall(_)),
        }
    }

    /// Returns the text of a `content_delta`, `refusal_delta` or `thinking`. This is cheaper than
    /// reading the whole delta.
    #[inline]
    pub fn text(&self) -> Text<'a> {
        match self.source {
            EventSource::Line(members, _) => members
                .iter()
                .rfind(|member| member.is(LineField::Text, "text"))
                .and_then(Text::of_member)
                .unwrap_or_default(),
            EventSource::Payload(Payload::ContentDelta(delta), _) => delta.text,
            EventSource::Payload(Payload::RefusalDelta(delta), _) => delta.text,
            EventSource::Payload(Payload::Thinking(delta), _) => delta.text,
            EventSource::Payload(..) => Text::default(),
        }
    }

    /// Returns the length in bytes of the unescaped [`Event::text`]. Nearly always this is cheaper
    /// than reading the text.
    #[inline]
    pub fn text_len(&self) -> usize {
        if let EventSource::Line(LineMembers { line, slots }, _) = self.source {
            let text = |slot: &&LineSlot| slot.field == LineField::Text;
            let last = slots.iter().rev().find(text);
            if let Some(length) = last.and_then(|slot| slot.value.plain_len(line)) {
                return length;
            }
        }
        self.read_text_len()
    }

    /// The rest of [`Event::text_len`], which few texts need.
    #[inline(never)]
    fn read_text_len(&self) -> usize {
        self.text().len()
    }

    /// Returns the fields of the event; `None` for an event of [`Kind::Other`].
    #[inline]
    pub fn payload(&self) -> Option<Payload<'a>> {
        match self.source {
            EventSource::Line(members, _) => Payload::of_line(self.kind, members),
            EventSource::Payload(payload, _) => Some(*payload),
        }
    }

    /// Returns the name of the event's stream, as JSON; `None` for the unnamed stream.
    #[inline]
    pub fn stream(&self) -> Option<Raw<'a>> {
        self.stream
    }

    /// Returns the index of the event's choice; 0 if the event has no `choice`.
    #[inline]
    pub fn choice(&self) -> u32 {
        self.choice
    }

    /// Returns the milliseconds since `stream_start`, as JSON; `None` if the event has no `t`.
    #[inline]
    pub fn t(&self) -> Option<Raw<'a>> {
        match self.source {
            EventSource::Line(members, t) => t.map(|value| value.get(members.line)),
            EventSource::Payload(_, t) => t,
        }
    }

    /// Returns the event without the name of its stream. Machines forward named events but emit
    /// unnamed ones; a reader of a single stream uses this to treat them alike.
    #[inline]
    pub fn unnamed(self) -> Self {
        Event {
            stream: None,
            ..self
        }
    }

    fn slots(&self) -> LineMembers<'a> {
        match self.source {
            EventSource::Line(members, _) => members,
            EventSource::Payload(..) => LineMembers {
                line: "",
                slots: &[],
            },
        }
    }

    /// Returns the field `key` of a line, or `None` if it is missing or `null`. If the key is
    /// repeated, the last value counts. `type` and the common fields are not found here. An event
    /// of a payload has no line, so machines and views read the structs in [`crate::payload`]
    /// instead, which support both.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        let LineMembers { line, slots } = self.slots();
        let slot = slots.iter().rev().find(|s| s.has_key(line, key))?;
        Some(slot.value.get(line)).filter(|v| !v.is_null())
    }

    /// Returns the field `key` of a line if it is a string.
    pub fn get_str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.str()
    }

    /// Iterates over the fields of a line in their order, without `type` and the common fields.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> + use<'a> {
        let LineMembers { line, slots } = self.slots();
        slots.iter().map(move |s| (s.key(line), s.value.get(line)))
    }
}

macro_rules! readers {
    ($($name:ident $(<$lt:lifetime>)? = $text:literal,)*) => {$(
        impl $(<$lt>)? $name $(<$lt>)? {
            /// Reads the fields of an event of this kind. A field that is missing, `null` or of
            /// another type gets its default. If a key is repeated, the last value counts.
            // Inlined, so that the struct is not copied and fields that the caller does not use are
            // not read.
            #[inline(always)]
            pub fn read(event: &event!($($lt)?)) -> Self {
                match event.source {
                    EventSource::Line(members, _) => $name::of_line(members),
                    EventSource::Payload(Payload::$name(payload), _) => *payload,
                    EventSource::Payload(..) => $name::default(),
                }
            }
        }
    )*};
}

/// The event type from which a struct with this lifetime, or without a lifetime, is read.
macro_rules! event {
    () => { Event<'_> };
    ($lt:lifetime) => { Event<$lt> };
}

for_each_kind!(readers);
