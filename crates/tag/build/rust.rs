//! The columns of dialects as Rust expressions.

use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use crate::dialect::params::{ParamForm, Style, Trim, Typing};
use crate::dialect::prompt::{Prompt, ToolListStyle};
use crate::dialect::{
    CallKeys, CallPart, CallShape, Dialect, Form, FreeText, KnownTool, NameForm, PromptReasoning,
    ReasoningEnd, Scope, Section, StartTag, TextFraming,
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
        format!(
            "[{}]",
            self.iter()
                .map(|value| value.rust() + ",\n")
                .collect::<String>()
        )
    }
}

impl<T: Rust> Rust for Option<T> {
    fn rust(&self) -> String {
        self.as_ref()
            .map_or("None".to_owned(), |value| format!("Some({})", value.rust()))
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

debug!(&'static str: "", bool: "", char: "", u8: "", Scope: "Scope::", KnownTool: "KnownTool::", NameForm: "NameForm::", CallShape: "CallShape::");
debug!(ReasoningEnd: "ReasoningEnd::", PromptReasoning: "PromptReasoning::", ToolListStyle: "ToolListStyle::", Trim: "Trim::");
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
    CallKeys { name, arguments, id, write_id, shape }
    FreeText { until, optional, escapes }
    TextFraming {
        reasoning, prefilled, call_ends_reasoning, dropped, dropped_first, foreign, foreign_lines, tokens, messages
    }
    Prompt { open, close, list, result, results, between }
    ExpressionForm { arguments, prefix, suffix, open, list, separators }
    ParamForm { style, call_closers, trim, cdata, entities, typing, before, round }
}

impl Rust for CallPart {
    fn rust(&self) -> String {
        match self {
            CallPart::Mark(marks) => format!("CallPart::Mark({})", Rust::rust(marks)),
            CallPart::Maybe { marks, write } => {
                format!(
                    "CallPart::Maybe {{ marks: {}, write: {write} }}",
                    Rust::rust(marks)
                )
            }
            CallPart::Space(space) => format!("CallPart::Space({space:?})"),
            CallPart::Count => "CallPart::Count".to_owned(),
            CallPart::Name { until, header } => {
                format!(
                    "CallPart::Name {{ until: {}, header: {} }}",
                    Rust::rust(until),
                    header.rust()
                )
            }
            CallPart::Author { until } => {
                format!("CallPart::Author {{ until: {} }}", Rust::rust(until))
            }
            CallPart::Id { until } => format!("CallPart::Id {{ until: {} }}", Rust::rust(until)),
            CallPart::Tag(tag) => format!("CallPart::Tag({})", Rust::rust(tag)),
            CallPart::Arguments => "CallPart::Arguments".to_owned(),
            CallPart::Calls(keys) => format!("CallPart::Calls({})", Rust::rust(keys)),
            CallPart::Params(form) => format!("CallPart::Params({})", Rust::rust(form)),
            CallPart::Expression(form) => format!("CallPart::Expression({})", Rust::rust(form)),
            CallPart::Free(free) => format!("CallPart::Free({})", Rust::rust(free)),
        }
    }
}

impl Rust for Style {
    fn rust(&self) -> String {
        match self {
            Style::Attribute {
                open,
                end,
                close,
                name,
            } => format!(
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
