//! The fields of each kind of event. `type` comes first, then `stream`, `choice` and `t`, then
//! these in their order.
//!
//! Each kind is described once, as a list of fields with their types (`payload/`); its struct, its
//! reader, its writer and its part of `docs/events.schema.json` are made from that list.

mod call;
mod delta;
mod field;
mod message;
mod notice;
mod request;
mod schema;
mod stream;
mod tool;

use crate::kind::for_each_kind;
use crate::slot::Members;
use crate::{Kind, Object};

pub use call::*;
pub use delta::*;
pub use field::Millis;
pub use message::*;
pub use notice::*;
pub use request::*;
pub use schema::schema;
pub use stream::*;
pub use tool::*;

macro_rules! payloads {
    ($($name:ident $(<$lt:lifetime>)? = $text:literal,)*) => {
        /// The fields of an event of a known kind, borrowed.
        #[derive(Clone, Copy, Debug)]
        pub enum Payload<'a> {
            $(#[doc = concat!("`", $text, "`")] $name($name $(<$lt>)?),)*
        }

        impl<'a> Payload<'a> {
            /// Its `type`.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Payload::$name(_) => Kind::$name,)*
                }
            }

            /// The fields of an event of this kind; `None` for [`Kind::Other`].
            pub(crate) fn of_line(kind: Kind, members: Members<'a>) -> Option<Self> {
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

            impl $(<$lt>)? $name $(<$lt>)? {
                #[inline(always)]
                pub(crate) fn of_line(members: field::members!($($lt)?)) -> Self {
                    let mut payload = Self::default();
                    members.iter().for_each(|member| payload.take(member));
                    payload
                }
            }
        )*
    };
}

for_each_kind!(payloads);

/// Writes one line (without its line feed): `stream` and `t` are JSON, `choice` is left out when it
/// is 0.
pub fn line(
    out: &mut Vec<u8>,
    payload: &Payload<'_>,
    stream: Option<&str>,
    choice: u32,
    t: Option<&str>,
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
    if let Some(t) = t {
        o.member("\"t\":").extend_from_slice(t.as_bytes());
    }
    payload.write(&mut o);
    o.close();
}
