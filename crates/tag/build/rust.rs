//! The columns of dialects as Rust expressions.

use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use crate::dialect::params::{ParamForm, Style, Trim, Typing};
use crate::dialect::prompt::{List, Prompt};
use crate::dialect::{
    Dialect, Ends, Form, Framing, FreeText, Header, Keys, Needs, Part, Prefilled, Scope, Section, Shape, StartTag,
};

/// The table, as a slice of dialects.
pub fn table(dialects: &[Dialect]) -> String {
    Rust::rust(&dialects)
}

/// A value that can be written as a Rust expression.
trait Rust {
    fn rust(&self) -> String;
}

impl<T: Rust + ?Sized> Rust for &T {
    fn rust(&self) -> String {
        format!("&{}", (**self).rust())
    }
}

impl<T: Rust> Rust for [T] {
    fn rust(&self) -> String {
        format!("[{}]", self.iter().map(|value| value.rust() + ",\n").collect::<String>())
    }
}

impl<T: Rust> Rust for Option<T> {
    fn rust(&self) -> String {
        self.as_ref().map_or("None".to_owned(), |value| format!("Some({})", value.rust()))
    }
}

impl<A: Rust, B: Rust> Rust for (A, B) {
    fn rust(&self) -> String {
        format!("({}, {})", self.0.rust(), self.1.rust())
    }
}

/// Values whose `Debug` is a Rust expression, after this path.
macro_rules! debug {
    ($($type:ty: $path:literal),+) => {
        $(impl Rust for $type {
            fn rust(&self) -> String {
                format!(concat!($path, "{:?}"), self)
            }
        })+
    };
}

debug!(&'static str: "", bool: "", char: "", u8: "", Scope: "Scope::", Needs: "Needs::", Header: "Header::", Shape: "Shape::");
debug!(Ends: "Ends::", Prefilled: "Prefilled::", List: "List::", Trim: "Trim::");
debug!(ArgumentStyle: "ArgumentStyle::");

/// Structs, with all of their fields.
macro_rules! fields {
    ($($type:ident { $($field:ident),+ })+) => {
        $(impl Rust for $type {
            fn rust(&self) -> String {
                let fields = [$((stringify!($field), Rust::rust(&self.$field))),+];
                let fields = fields.map(|(name, value)| format!("{name}: {value},\n")).concat();
                format!("{} {{ {fields} }}", stringify!($type))
            }
        })+
    };
}

fields! {
    Dialect { name, aliases, models, source, late, read_as, forms, framing, prompt }
    Form { section, call, between, scope, needs }
    Section { open, close, optional, inside, between }
    StartTag { open, end, name, rest }
    Keys { name, arguments, id, write_id, shape }
    FreeText { until, optional, escapes }
    Framing {
        reasoning, prefilled, call_ends_reasoning, dropped, dropped_first, foreign, foreign_lines, tokens, messages
    }
    Prompt { open, close, list, result, results, between }
    ExpressionForm { arguments, prefix, suffix, open, list, separators }
    ParamForm { style, call_closers, trim, cdata, entities, typing, before, round }
}

impl Rust for Part {
    fn rust(&self) -> String {
        match self {
            Part::Mark(marks) => format!("Part::Mark({})", Rust::rust(marks)),
            Part::Maybe { marks, write } => format!("Part::Maybe {{ marks: {}, write: {write} }}", Rust::rust(marks)),
            Part::Space(space) => format!("Part::Space({space:?})"),
            Part::Count => "Part::Count".to_owned(),
            Part::Name { until, header } => {
                format!("Part::Name {{ until: {}, header: {} }}", Rust::rust(until), header.rust())
            }
            Part::Author { until } => format!("Part::Author {{ until: {} }}", Rust::rust(until)),
            Part::Id { until } => format!("Part::Id {{ until: {} }}", Rust::rust(until)),
            Part::Tag(tag) => format!("Part::Tag({})", Rust::rust(tag)),
            Part::Arguments => "Part::Arguments".to_owned(),
            Part::Calls(keys) => format!("Part::Calls({})", Rust::rust(keys)),
            Part::Params(form) => format!("Part::Params({})", Rust::rust(form)),
            Part::Expression(form) => format!("Part::Expression({})", Rust::rust(form)),
            Part::Free(free) => format!("Part::Free({})", Rust::rust(free)),
        }
    }
}

impl Rust for Style {
    fn rust(&self) -> String {
        match self {
            Style::Attribute { open, end, close, name } => format!(
                "Style::Attribute {{ open: {}, end: {end:?}, close: {}, name: {name:?} }}",
                Rust::rust(open),
                Rust::rust(close)
            ),
            // What has no slice in it is written as `Debug` has it.
            other => format!("Style::{other:?}"),
        }
    }
}

impl Rust for Typing {
    fn rust(&self) -> String {
        format!("Typing::{self:?}")
    }
}
