//! The fields of an event kind, described once: [`payload`] makes of a list of fields the struct,
//! its reader, its writer and its schema.

use crate::slot::Member;
use crate::{Json, Object, Raw, Text};
use std::marker::PhantomData;

/// How a field of type `T` is read, written and described.
pub(crate) trait Codec<'a, T> {
    /// Whether every event that is written has the field.
    const ALWAYS: bool;
    /// Reads a value; one of another type counts as missing.
    fn read(value: Raw<'a>) -> T;
    /// The same of a member of a line.
    #[inline(always)]
    fn read_member(member: Member<'a>) -> T {
        Self::read(member.value())
    }
    /// Writes the member, unless there is nothing to write. `key` has its quotes and its colon.
    fn write(value: &T, key: &'static str, o: &mut Object<'_>);
    /// Writes the JSON Schema of the value.
    fn schema(o: &mut Object<'_>);
}

/// A type that has one form in JSON.
pub(crate) trait Value<'a>: Copy {
    /// Reads a value of this type.
    fn read(value: Raw<'a>) -> Option<Self>;
    /// The same of a member of a line.
    #[inline(always)]
    fn read_member(member: Member<'a>) -> Option<Self> {
        Self::read(member.value())
    }
    /// Appends the value.
    fn write(self, out: &mut Vec<u8>);
    /// Writes its JSON Schema.
    fn schema(o: &mut Object<'_>);
}

/// The codec of a field that names none: a value that is always written, or an `Option` that is
/// left out when it is `None`.
#[derive(Debug)]
pub(crate) struct Plain;

impl<'a, T: Value<'a> + Default> Codec<'a, T> for Plain {
    const ALWAYS: bool = true;

    #[inline]
    fn read(value: Raw<'a>) -> T {
        T::read(value).unwrap_or_default()
    }

    #[inline(always)]
    fn read_member(member: Member<'a>) -> T {
        T::read_member(member).unwrap_or_default()
    }

    #[inline]
    fn write(value: &T, key: &'static str, o: &mut Object<'_>) {
        value.write(o.member(key));
    }

    fn schema(o: &mut Object<'_>) {
        T::schema(o);
    }
}

impl<'a, T: Value<'a>> Codec<'a, Option<T>> for Plain {
    const ALWAYS: bool = false;

    #[inline]
    fn read(value: Raw<'a>) -> Option<T> {
        T::read(value)
    }

    #[inline(always)]
    fn read_member(member: Member<'a>) -> Option<T> {
        T::read_member(member)
    }

    #[inline]
    fn write(value: &Option<T>, key: &'static str, o: &mut Object<'_>) {
        if let Some(value) = value {
            value.write(o.member(key));
        }
    }

    fn schema(o: &mut Object<'_>) {
        T::schema(o);
    }
}

/// A claim that is written only where it is true.
#[derive(Debug)]
pub(crate) struct Flag;

impl<'a> Codec<'a, bool> for Flag {
    const ALWAYS: bool = false;

    #[inline]
    fn read(value: Raw<'a>) -> bool {
        value.bool() == Some(true)
    }

    #[inline]
    fn write(value: &bool, key: &'static str, o: &mut Object<'_>) {
        if *value {
            value.write(o.member(key));
        }
    }

    fn schema(o: &mut Object<'_>) {
        bool::schema(o);
    }
}

/// A text where other programs may write another value, which counts as its JSON.
#[derive(Debug)]
pub(crate) struct Loose;

impl<'a> Codec<'a, Text<'a>> for Loose {
    const ALWAYS: bool = true;

    fn read(value: Raw<'a>) -> Text<'a> {
        Text::of(value).unwrap_or_else(|| if value.is_null() { "" } else { value.text() }.into())
    }

    fn write(value: &Text<'a>, key: &'static str, o: &mut Object<'_>) {
        Plain::write(value, key, o);
    }

    fn schema(o: &mut Object<'_>) {
        Text::schema(o);
    }
}

/// [`Plain`], with a schema of its own.
#[derive(Debug)]
pub(crate) struct As<D>(PhantomData<D>);

/// A schema that is narrower than that of the type.
pub(crate) trait Describe {
    /// Writes it.
    fn schema(o: &mut Object<'_>);
}

impl<'a, D: Describe, T> Codec<'a, T> for As<D>
where
    Plain: Codec<'a, T>,
{
    const ALWAYS: bool = <Plain as Codec<'a, T>>::ALWAYS;

    #[inline]
    fn read(value: Raw<'a>) -> T {
        Plain::read(value)
    }

    #[inline]
    fn write(value: &T, key: &'static str, o: &mut Object<'_>) {
        Plain::write(value, key, o);
    }

    fn schema(o: &mut Object<'_>) {
        D::schema(o);
    }
}

/// Writes the schema of a text that is one of `words`.
pub(crate) fn one_of<'w>(o: &mut Object<'_>, words: impl IntoIterator<Item = &'w str>) {
    o.array("enum", |list| {
        for word in words {
            list.str(word);
        }
    });
}

impl<'a> Value<'a> for Text<'a> {
    #[inline]
    fn read(value: Raw<'a>) -> Option<Self> {
        Text::of(value)
    }

    // Most fields of most events are texts: this cuts the line once, where a value that is cut
    // again costs twice the checks.
    #[inline(always)]
    fn read_member(member: Member<'a>) -> Option<Self> {
        Text::of_member(member)
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        Text::write(self, out);
    }

    fn schema(o: &mut Object<'_>) {
        o.str("type", "string");
    }
}

impl<'a> Value<'a> for Json<'a> {
    #[inline]
    fn read(value: Raw<'a>) -> Option<Self> {
        (!value.is_null()).then_some(Json::Text(value))
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        Json::write(self, out);
    }

    fn schema(_: &mut Object<'_>) {}
}

impl<'a> Value<'a> for bool {
    #[inline]
    fn read(value: Raw<'a>) -> Option<Self> {
        value.bool()
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }

    fn schema(o: &mut Object<'_>) {
        o.str("type", "boolean");
    }
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl<'a> Value<'a> for $type {
            #[inline]
            fn read(value: Raw<'a>) -> Option<Self> {
                value.text().parse().ok()
            }

            #[inline]
            fn write(self, out: &mut Vec<u8>) {
                crate::write::push_int(out, self.into());
            }

            fn schema(o: &mut Object<'_>) {
                o.str("type", "integer");
                if <$type>::MIN == 0 {
                    o.int("minimum", 0);
                }
            }
        }
    )*};
}

integers!(i64 u64 u32 i32);

impl<'a> Value<'a> for f64 {
    fn read(value: Raw<'a>) -> Option<Self> {
        value.f64().filter(|n| n.is_finite())
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }

    fn schema(o: &mut Object<'_>) {
        o.str("type", "number");
    }
}

/// A time, written in milliseconds with at most three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Millis {
    /// The time in microseconds.
    pub micros: u64,
}

impl<'a> Value<'a> for Millis {
    fn read(value: Raw<'a>) -> Option<Self> {
        let micros = value.f64().filter(|n| *n >= 0.0)? * 1000.0;
        Some(Millis {
            micros: micros.round() as u64,
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        let (whole, part) = (self.micros / 1000, self.micros % 1000);
        out.extend_from_slice(whole.to_string().as_bytes());
        if part != 0 {
            out.extend_from_slice(format!(".{part:03}").trim_end_matches('0').as_bytes());
        }
    }

    fn schema(o: &mut Object<'_>) {
        o.str("type", "number").int("minimum", 0);
    }
}

/// A field as the schema describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSchema {
    pub name: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
    pub is_always_there: bool,
    pub schema: fn(&mut Object<'_>),
}

/// An event kind as the schema describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindSchema {
    pub doc: &'static [&'static str],
    pub fields: &'static [FieldSchema],
}

impl KindSchema {
    /// Writes the members of the JSON Schema of the events of type `name`.
    pub fn write(self, o: &mut Object<'_>, name: &str) {
        let join = |doc: &[&str]| {
            doc.iter()
                .map(|line| line.trim())
                .collect::<Vec<_>>()
                .join(" ")
        };
        o.str("description", &join(self.doc));
        o.object("properties", |o| {
            o.object("type", |o| {
                o.str("const", name);
            });
            for field in self.fields {
                o.object(field.name, |o| {
                    o.str("description", &join(field.doc));
                    (field.schema)(o);
                });
            }
        });
        o.array("required", |a| {
            for field in self.fields.iter().filter(|field| field.is_always_there) {
                a.str(field.name);
            }
        });
    }
}

/// Makes the struct of an event kind from a list of its fields: `name: Type` or
/// `name: Type as Codec`.
macro_rules! payload {
    ($(#[doc = $doc:literal])+ $name:ident $(<$lt:lifetime>)? {
        $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty $(as $codec:ty)?,)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name $(<$lt>)? {
            $($(#[doc = $field_doc])+ pub $field: $type,)+
        }

        impl $(<$lt>)? $name $(<$lt>)? {
            pub(crate) const SCHEMA: $crate::payload::field::KindSchema = $crate::payload::field::KindSchema {
                doc: &[$($doc),+],
                fields: &[$($crate::payload::field::FieldSchema {
                    name: stringify!($field),
                    doc: &[$($field_doc),+],
                    is_always_there: <$crate::payload::field::codec!($($codec)?) as $crate::payload::field::Codec<'_, $type>>::ALWAYS,
                    schema: <$crate::payload::field::codec!($($codec)?) as $crate::payload::field::Codec<'_, $type>>::schema,
                }),+],
            };

            /// Takes a field, if it is one of this kind's.
            #[inline(always)]
            pub(crate) fn take(&mut self, member: $crate::payload::field::member!($($lt)?)) {
                $(
                    if member.is(const { $crate::slot::Field::of(stringify!($field).as_bytes()) }, stringify!($field)) {
                        self.$field = <$crate::payload::field::codec!($($codec)?) as $crate::payload::field::Codec<'_, $type>>::read_member(member);
                        return;
                    }
                )+
            }

            /// Writes the fields.
            #[inline]
            pub(crate) fn write(&self, o: &mut $crate::Object<'_>) {
                $(<$crate::payload::field::codec!($($codec)?) as $crate::payload::field::Codec<'_, $type>>::write(
                    &self.$field,
                    concat!("\"", stringify!($field), "\":"),
                    o,
                );)+
            }
        }
    };
}
pub(crate) use payload;

/// The codec of a field.
macro_rules! codec {
    () => {
        $crate::payload::field::Plain
    };
    ($codec:ty) => {
        $codec
    };
}
pub(crate) use codec;

/// A member of a line that a struct with this lifetime, or with none, can be read from.
macro_rules! member {
    () => { $crate::slot::Member<'_> };
    ($lt:lifetime) => { $crate::slot::Member<$lt> };
}
pub(crate) use member;

/// The members of a line, likewise.
macro_rules! members {
    () => { $crate::slot::Members<'_> };
    ($lt:lifetime) => { $crate::slot::Members<$lt> };
}
pub(crate) use members;
