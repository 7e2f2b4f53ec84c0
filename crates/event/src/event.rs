//! One event: a line that was read, or a payload that was not written yet.

use crate::Raw;
use crate::payload::field::Fields;
use crate::payload::{self, *};
use crate::slot::{LineField, LineMembers, LineSlot};
use std::borrow::Cow;

/// One event: its kind, the fields that any event may have, and its payload.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    kind: Kind,
    stream: Option<Raw<'a>>,
    choice: u32,
    source: EventSource<'a>,
}

/// What an event was made from.
#[derive(Clone, Copy, Debug)]
enum EventSource<'a> {
    /// The members of a line, and its `t`.
    Line(LineMembers<'a>, Option<LineSlot>),
    /// A payload, and its `t`.
    Payload(&'a Payload<'a>, Option<Raw<'a>>),
}

impl<'a> Event<'a> {
    /// The event of a payload that a machine wrote, with the name of its stream and its time as
    /// JSON.
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

    /// The event of a line that was read.
    #[inline]
    pub(crate) fn of_line(
        kind: Kind,
        stream: Option<Raw<'a>>,
        choice: u32,
        t: Option<LineSlot>,
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

    /// The line without its line feed: as it came, or as the payload would be written.
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

    /// Its kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the event of a call has an id or a name, even an empty one. Nearly every delta has
    /// neither, and this is cheaper than reading it.
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

    /// Its fields; `None` for an event of [`Kind::Other`].
    #[inline]
    pub fn payload(&self) -> Option<Payload<'a>> {
        match self.source {
            EventSource::Line(members, _) => Payload::of_line(self.kind, members),
            EventSource::Payload(payload, _) => Some(*payload),
        }
    }

    /// The name of its stream, as JSON; `None` is the unnamed stream.
    #[inline]
    pub fn stream(&self) -> Option<Raw<'a>> {
        self.stream
    }

    /// The index of its choice; 0 when the event names none.
    #[inline]
    pub fn choice(&self) -> u32 {
        self.choice
    }

    /// Milliseconds since `stream_start`, as JSON.
    #[inline]
    pub fn t(&self) -> Option<Raw<'a>> {
        match self.source {
            EventSource::Line(members, t) => t.map(|slot| slot.value(members.line)),
            EventSource::Payload(_, t) => t,
        }
    }

    /// The event as one of the unnamed stream, for a reader of one stream, to whom machines hand on
    /// named events and give unnamed ones.
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

    /// The field `key` of a line, unless it is missing or `null`; of a repeated key the last. Not
    /// for the common fields and `type`. An event of a payload has no line: machines and views read
    /// the structs of [`crate::payload`], which works for both.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        let LineMembers { line, slots } = self.slots();
        let slot = slots.iter().rev().find(|s| s.has_key(line, key))?;
        Some(slot.value(line)).filter(|v| !v.is_null())
    }

    /// The string field `key` of a line.
    pub fn get_str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.str()
    }

    /// All fields of a line but `type` and the common ones, in its order.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> + use<'a> {
        let LineMembers { line, slots } = self.slots();
        slots.iter().map(move |s| (s.key(line), s.value(line)))
    }
}

macro_rules! readers {
    ($($name:ident $(<$lt:lifetime>)? = $text:literal,)*) => {$(
        impl $(<$lt>)? $name $(<$lt>)? {
            /// Reads the fields of an event of this kind. One that is missing, is `null` or has
            /// another type takes its default; of a repeated key the last counts.
            // A part of each call: the struct is not copied, and what the caller does not use
            // is not read.
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

/// An event that a struct with this lifetime, or with none, can be read from.
macro_rules! event {
    () => { Event<'_> };
    ($lt:lifetime) => { Event<$lt> };
}

for_each_kind!(readers);
