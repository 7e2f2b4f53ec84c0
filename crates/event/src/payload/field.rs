//! The fields of an event kind, described once: [`payload`] makes of a list of fields the struct,
//! its reader, its writer and its schema.

pub(crate) use crate::slot::{LineField, LineMember, LineMembers};
pub(crate) use crate::{Json, Object, Raw, Text};

/// An event kind, made by [`payload`].
pub(crate) trait Fields<'a>: Default {
    /// Its description, for the schema.
    const SCHEMA: KindSchema;

    /// Takes a field, if it is one of this kind's.
    fn take(&mut self, member: LineMember<'a>);

    /// Writes the fields.
    fn write(&self, o: &mut Object<'_>);

    /// Reads the fields of a line.
    #[inline(always)]
    fn of_line(members: LineMembers<'a>) -> Self {
        let mut payload = Self::default();
        for member in members.iter() {
            payload.take(member);
        }
        payload
    }
}

/// How a field of type `T` is read, written and described.
pub(crate) trait Codec<'a, T> {
    /// Whether every event that is written has the field.
    const ALWAYS: bool;
    /// The members of the JSON Schema of the value.
    const SCHEMA: &'static str;
    /// Reads a value; one of another type counts as missing.
    fn read(value: Raw<'a>) -> T;
    /// The same of a member of a line.
    #[inline(always)]
    fn read_member(member: LineMember<'a>) -> T {
        Self::read(member.value())
    }
    /// Writes the member, unless there is nothing to write. `key` has its quotes and its colon.
    fn write(value: &T, key: &'static str, o: &mut Object<'_>);
}

/// A type that has one form in JSON.
pub(crate) trait FieldValue<'a>: Copy {
    /// The members of its JSON Schema.
    const SCHEMA: &'static str;

    /// Reads a value of this type.
    fn read(value: Raw<'a>) -> Option<Self>;
    /// The same of a member of a line.
    #[inline(always)]
    fn read_member(member: LineMember<'a>) -> Option<Self> {
        Self::read(member.value())
    }
    /// Appends the value.
    fn write(self, out: &mut Vec<u8>);
}

/// The codec of a field that names none: a value that is always written, or an `Option` that is
/// left out when it is `None`.
#[derive(Debug)]
pub(crate) struct PlainField;

impl<'a, T: FieldValue<'a> + Default> Codec<'a, T> for PlainField {
    const ALWAYS: bool = true;
    const SCHEMA: &'static str = T::SCHEMA;

    #[inline]
    fn read(value: Raw<'a>) -> T {
        T::read(value).unwrap_or_default()
    }

    #[inline(always)]
    fn read_member(member: LineMember<'a>) -> T {
        T::read_member(member).unwrap_or_default()
    }

    #[inline]
    fn write(value: &T, key: &'static str, o: &mut Object<'_>) {
        value.write(o.member(key));
    }
}

impl<'a, T: FieldValue<'a>> Codec<'a, Option<T>> for PlainField {
    const ALWAYS: bool = false;
    const SCHEMA: &'static str = T::SCHEMA;

    #[inline]
    fn read(value: Raw<'a>) -> Option<T> {
        T::read(value)
    }

    #[inline(always)]
    fn read_member(member: LineMember<'a>) -> Option<T> {
        T::read_member(member)
    }

    #[inline]
    fn write(value: &Option<T>, key: &'static str, o: &mut Object<'_>) {
        if let Some(value) = value {
            value.write(o.member(key));
        }
    }
}

/// A claim that is written only where it is true.
#[derive(Debug)]
pub(crate) struct Flag;

impl<'a> Codec<'a, bool> for Flag {
    const ALWAYS: bool = false;
    const SCHEMA: &'static str = bool::SCHEMA;

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
}

/// A text where other programs may write another value, which counts as its JSON.
#[derive(Debug)]
pub(crate) struct Loose;

impl<'a> Codec<'a, Text<'a>> for Loose {
    const ALWAYS: bool = true;
    const SCHEMA: &'static str = Text::SCHEMA;

    fn read(value: Raw<'a>) -> Text<'a> {
        Text::of(value).unwrap_or_else(|| if value.is_null() { "" } else { value.text() }.into())
    }

    fn write(value: &Text<'a>, key: &'static str, o: &mut Object<'_>) {
        PlainField::write(value, key, o);
    }
}

/// Makes an enum whose values are words, each with the word that is written for it.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// The words of all values, in their order.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word that is written for it.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// The value that this word is written for.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($text => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl<'a> FieldValue<'a> for $name {
            const SCHEMA: &'static str = one_of!($($text)+);

            fn read(value: Raw<'a>) -> Option<Self> {
                Self::of(&value.str()?)
            }

            fn write(self, out: &mut Vec<u8>) {
                Text::from(self.name()).write(out);
            }
        }
    };
}
pub(crate) use words;

/// The schema of a text that is one of these words.
macro_rules! one_of {
    ($first:literal $($word:literal)*) => {
        concat!("\"enum\":[\"", $first, "\"", $(",\"", $word, "\"",)* "]")
    };
}
pub(crate) use one_of;

impl<'a> FieldValue<'a> for Text<'a> {
    const SCHEMA: &'static str = r#""type":"string""#;

    #[inline]
    fn read(value: Raw<'a>) -> Option<Self> {
        Text::of(value)
    }

    // Most fields of most events are texts: this cuts the line once, where a value that is cut
    // again costs twice the checks.
    #[inline(always)]
    fn read_member(member: LineMember<'a>) -> Option<Self> {
        Text::of_member(member)
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        Text::write(self, out);
    }
}

impl<'a> FieldValue<'a> for Json<'a> {
    const SCHEMA: &'static str = "";

    #[inline]
    fn read(value: Raw<'a>) -> Option<Self> {
        (!value.is_null()).then_some(Json::Text(value))
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        Json::write(self, out);
    }
}

impl<'a> FieldValue<'a> for bool {
    const SCHEMA: &'static str = r#""type":"boolean""#;

    #[inline]
    fn read(value: Raw<'a>) -> Option<Self> {
        value.bool()
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl<'a> FieldValue<'a> for $type {
            const SCHEMA: &'static str = if <$type>::MIN == 0 {
                r#""type":"integer","minimum":0"#
            } else {
                r#""type":"integer""#
            };

            #[inline]
            fn read(value: Raw<'a>) -> Option<Self> {
                // Most are an index, of one digit.
                match value.text().as_bytes() {
                    [digit @ b'0'..=b'9'] => Some((digit - b'0').into()),
                    _ => value.text().parse().ok(),
                }
            }

            #[inline]
            fn write(self, out: &mut Vec<u8>) {
                crate::write::push_int(out, self.into());
            }

        }
    )*};
}

integers!(i64 u64 u32 i32);

impl<'a> FieldValue<'a> for f64 {
    const SCHEMA: &'static str = r#""type":"number""#;

    fn read(value: Raw<'a>) -> Option<Self> {
        value.f64().filter(|n| n.is_finite())
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }
}

/// A time, written in milliseconds with at most three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Millis {
    /// The time in microseconds.
    pub micros: u64,
}

impl<'a> FieldValue<'a> for Millis {
    const SCHEMA: &'static str = r#""type":"number","minimum":0"#;

    fn read(value: Raw<'a>) -> Option<Self> {
        let micros = value.f64().filter(|n| *n >= 0.0)? * 1000.0;
        Some(Millis {
            micros: micros.round() as u64,
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = self.micros / 1000;
        let part = self.micros % 1000;
        write!(f, "{whole}")?;
        if part != 0 {
            f.write_str(format!(".{part:03}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}

impl From<std::time::Duration> for Millis {
    fn from(time: std::time::Duration) -> Millis {
        Millis {
            micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// A field as the schema describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSchema {
    pub name: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
    pub is_always_there: bool,
    /// The members of its schema.
    pub schema: &'static str,
}

/// An event kind as the schema describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindSchema {
    pub doc: &'static [&'static str],
    pub fields: &'static [FieldSchema],
}

/// Makes the struct of an event kind from a list of its fields: `name: Type`, with `as Codec` where
/// the codec is not [`PlainField`], and with `= SCHEMA` where the schema is narrower than the type's.
macro_rules! payload {
    ($(#[doc = $doc:literal])+ $name:ident $(<$lt:lifetime>)? {
        $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty $(as $codec:ty)? $(= $schema:expr)?,)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name $(<$lt>)? {
            $($(#[doc = $field_doc])+ pub $field: $type,)+
        }

        impl<'a> Fields<'a> for $name $(<$lt>)? {
            const SCHEMA: KindSchema = KindSchema {
                doc: &[$($doc),+],
                fields: &[$(FieldSchema {
                    name: stringify!($field),
                    doc: &[$($field_doc),+],
                    is_always_there: <or!(($($codec)?) PlainField) as Codec<'_, $type>>::ALWAYS,
                    schema: or!(($($schema)?) <or!(($($codec)?) PlainField) as Codec<'_, $type>>::SCHEMA),
                }),+],
            };

            #[inline(always)]
            fn take(&mut self, member: LineMember<'a>) {
                $(
                    if member.is(const { LineField::of(stringify!($field).as_bytes()) }, stringify!($field)) {
                        self.$field = <or!(($($codec)?) PlainField) as Codec<'_, $type>>::read_member(member);
                        return;
                    }
                )+
            }

            #[inline]
            fn write(&self, o: &mut Object<'_>) {
                $(<or!(($($codec)?) PlainField) as Codec<'_, $type>>::write(
                    &self.$field,
                    concat!("\"", stringify!($field), "\":"),
                    o,
                );)+
            }
        }
    };
}
pub(crate) use payload;

/// What is in the brackets, or else what follows them.
macro_rules! or {
    (() $($other:tt)+) => { $($other)+ };
    (($given:ty) $($other:tt)+) => { $given };
    (($given:expr) $($other:tt)+) => { $given };
}
pub(crate) use or;

#[cfg(test)]
mod tests {
    use super::Millis;

    #[test]
    fn times_have_at_most_three_decimals() {
        for (micros, text) in [
            (0, "0"),
            (1_500, "1.5"),
            (2_000, "2"),
            (100_000, "100"),
            (7, "0.007"),
        ] {
            assert_eq!(Millis { micros }.to_string(), text);
        }
    }
}
