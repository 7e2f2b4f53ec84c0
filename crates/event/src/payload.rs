//! The fields of each kind of event. A line has `type` first, then `stream`, `choice` and `t`, then
//! these fields in their order.
//!
//! Each kind is described once, as a list of fields with their types (`payload/`). Its struct, its
//! reader, its writer and its part of `docs/events.schema.json` are generated from that list.

mod call;
pub(crate) mod field;
mod session;
mod stream;

use crate::Object;
use field::{Fields, KindSchema, LineMembers};

pub use call::*;
pub use field::Millis;
pub use session::*;
pub use stream::*;

/// Generates [`Kind`], [`Payload`] and the schema.
macro_rules! kinds {
    ($($name:ident $(<$lt:lifetime>)? = $text:literal,)*) => {
        /// The kind of an event, which is its `type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $text, "`")] $name,)*
            /// Any other `type`. Such events are forwarded.
            Other,
        }

        impl Kind {
            /// Returns the kind for an unescaped `type` value.
            #[inline]
            pub fn of(name: &str) -> Kind {
                match name {
                    $($text => Kind::$name,)*
                    _ => Kind::Other,
                }
            }

            /// Returns the `type` value of this kind.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => $text,)*
                    Kind::Other => "other",
                }
            }
        }

        /// The fields of an event of a known kind, borrowed.
        #[derive(Clone, Copy, Debug)]
        pub enum Payload<'a> {
            $(#[doc = concat!("`", $text, "`")] $name($name $(<$lt>)?),)*
        }

        impl<'a> Payload<'a> {
            /// Returns the kind of the event.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Payload::$name(_) => Kind::$name,)*
                }
            }

            /// Returns the fields of an event of this kind; `None` for [`Kind::Other`].
            pub(crate) fn of_line(kind: Kind, members: LineMembers<'a>) -> Option<Self> {
                Some(match kind {
                    $(Kind::$name => Payload::$name($name::of_line(members)),)*
                    Kind::Other => return None,
                })
            }

            #[inline]
            fn write(&self, o: &mut Object<'_>) {
                match self {
                    $(Payload::$name(payload) => payload.write(o),)*
                }
            }
        }

        $(
            impl<'a> From<$name $(<$lt>)?> for Payload<'a> {
                #[inline]
                fn from(payload: $name $(<$lt>)?) -> Self {
                    Payload::$name(payload)
                }
            }
        )*

        const KINDS: &[(&str, KindSchema)] = &[$(($text, $name::SCHEMA)),*];
    };
}

/// Calls the macro `$then` with every kind: the struct of its fields, and its `type`.
macro_rules! for_each_kind {
    ($then:ident) => {
        $then! {
            StreamStart<'a> = "stream_start",
            Thinking<'a> = "thinking",
            ContentDelta<'a> = "content_delta",
            RefusalDelta<'a> = "refusal_delta",
            ToolCallDelta<'a> = "tool_call_delta",
            ServerItem<'a> = "server_item",
            Details<'a> = "details",
            SessionStats = "session_stats",
            StreamEnd<'a> = "stream_end",
            Decision<'a> = "decision",
            ToolCall<'a> = "tool_call",
            ToolCallPartial<'a> = "tool_call_partial",
            Retract<'a> = "retract",
            Approval<'a> = "approval",
            ToolUse<'a> = "tool_use",
            ToolProgress<'a> = "tool_progress",
            ToolResult<'a> = "tool_result",
            Message<'a> = "message",
            Request<'a> = "request",
            Warning<'a> = "warning",
            Error<'a> = "error",
            Session<'a> = "session",
            Response<'a> = "response",
            ResponseEnd<'a> = "response_end",
            Cancel<'a> = "cancel",
            Lease<'a> = "lease",
        }
    };
}
pub(crate) use for_each_kind;

for_each_kind!(kinds);

impl Kind {
    /// Whether an event of this kind starts a stream if no stream with its name is open.
    #[inline]
    pub fn begins_stream(self) -> bool {
        matches!(
            self,
            Kind::StreamStart
                | Kind::Thinking
                | Kind::ContentDelta
                | Kind::RefusalDelta
                | Kind::ToolCallDelta
                | Kind::ToolCall
                | Kind::Error
                | Kind::StreamEnd
        )
    }
}

/// Writes one line without its line feed. `stream` and `t` are JSON; `choice` is omitted if it is
/// 0.
pub fn line(
    out: &mut Vec<u8>,
    payload: &Payload<'_>,
    stream: Option<&str>,
    choice: u32,
    t: Option<&str>,
) {
    envelope(out, payload, stream, choice);
    time(out, t);
    fields(out, payload);
    out.push(b'}');
}

/// Writes the start of a line: the members before `t`.
pub(crate) fn envelope(
    out: &mut Vec<u8>,
    payload: &Payload<'_>,
    stream: Option<&str>,
    choice: u32,
) {
    let mut o = Object::open(out);
    let start = o.member("\"type\":\"");
    start.extend_from_slice(payload.kind().name().as_bytes());
    start.push(b'"');
    if let Some(stream) = stream {
        o.member("\"stream\":").extend_from_slice(stream.as_bytes());
    }
    if choice != 0 {
        o.int("choice", choice);
    }
}

/// Writes `t` after the envelope.
#[inline]
pub(crate) fn time(out: &mut Vec<u8>, t: Option<&str>) {
    if let Some(t) = t {
        out.extend_from_slice(b",\"t\":");
        out.extend_from_slice(t.as_bytes());
    }
}

/// Writes the members after `t`.
pub(crate) fn fields(out: &mut Vec<u8>, payload: &Payload<'_>) {
    payload.write(&mut Object::resume(out));
}

/// The members of the schema that apply to all events.
const ANY_EVENT: &str = r#""$schema":"https://json-schema.org/draft/2020-12/schema",
    "title":"An event of the toolpipe protocol, version 1",
    "description":"One line of the protocol. Of each type these are the fields that the commands write; any event may have further ones.",
    "type":"object",
    "properties":{
        "type":{"description":"What the event is. A type that is not listed here passes through.","type":"string"},
        "stream":{"description":"The name of its stream, when several share a pipe.","type":"string"},
        "choice":{"description":"The index of its choice, when the request asked for several; absent is 0.","type":"integer","minimum":0},
        "t":{"description":"Milliseconds since `stream_start`; on replay the recorded time.","type":"number","minimum":0}},
    "required":["type"]"#;

/// Returns the JSON Schema (2020-12) of one line, as JSON. Events of types that this version does
/// not know are always valid.
pub fn schema() -> String {
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.member(ANY_EVENT);
    o.array("allOf", |a| {
        for (name, _) in KINDS {
            a.raw(&format!(
                r##"{{"if":{{"properties":{{"type":{{"const":"{name}"}}}}}},"then":{{"$ref":"#/$defs/{name}"}}}}"##
            ));
        }
    });
    o.object("$defs", |o| {
        for (name, kind) in KINDS {
            o.object(name, |o| describe(o, name, kind));
        }
    });
    o.close();
    String::from_utf8(out).unwrap_or_default()
}

/// Writes the members of the schema of the events of type `name`.
fn describe(o: &mut Object<'_>, name: &str, kind: &KindSchema) {
    let join = |doc: &[&str]| doc.join("").trim_start().to_owned();
    o.str("description", &join(kind.doc));
    o.object("properties", |o| {
        o.raw("type", &format!(r#"{{"const":"{name}"}}"#));
        for field in kind.fields {
            o.object(field.name, |o| {
                o.str("description", &join(field.doc));
                if !field.schema.is_empty() {
                    o.member(field.schema);
                }
            });
        }
    });
    o.array("required", |a| {
        for field in kind.fields.iter().filter(|field| field.is_always_there) {
            a.str(field.name);
        }
    });
}
