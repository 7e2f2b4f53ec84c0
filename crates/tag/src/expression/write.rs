//! Calls as expressions, as a model would write them.

use crate::PromptCall;
use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use event::{Raw, quoted};
use std::fmt::Display;

impl ExpressionForm {
    /// The text of calls. Arguments that are not a JSON object are left out. The text reads back as
    /// the same calls, numbers digit for digit: an argument whose name is not an identifier of
    /// Python is written as `**{"a b": 1}`, and a string that holds Gemma's delimiter as a JSON
    /// string with `\u003c` for `<`.
    pub fn write(&self, calls: &[PromptCall<'_>]) -> String {
        let (open, between, close) = match (self.list, self.separators.first()) {
            (true, _) => ("[", ", ".to_owned(), "]"),
            (false, separator) => ("", separator.unwrap_or(&'\n').to_string(), ""),
        };
        format!(
            "{open}{}{close}",
            join(calls.iter().map(|call| self.call(call)), &between)
        )
    }

    fn call(&self, call: &PromptCall<'_>) -> String {
        let arguments = Raw::parse(call.arguments.trim()).ok();
        let members = arguments.iter().flat_map(|a| a.entries());
        let arguments = match self.arguments {
            ArgumentStyle::Python => join(members.map(|(key, value)| argument(&key, value)), ", "),
            ArgumentStyle::Gemma { quote } => {
                join(members.map(|(key, value)| member(&key, value, quote)), ",")
            }
        };
        let close = match self.arguments {
            ArgumentStyle::Python => ')',
            ArgumentStyle::Gemma { .. } => '}',
        };
        format!(
            "{}{}{}{arguments}{close}",
            self.prefix, call.name, self.open
        )
    }
}

fn join(parts: impl Iterator<Item = impl Display>, between: &str) -> String {
    let mut out = String::new();
    for (n, part) in parts.enumerate() {
        out.push_str(if n > 0 { between } else { "" });
        out.push_str(&part.to_string());
    }
    out
}

/// An argument of a call of Python.
fn argument(key: &str, value: Raw<'_>) -> String {
    let value = python(value);
    let own = |c: char| c.is_alphanumeric() || c == '_';
    let name = key.len() <= 128
        && key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key.chars().all(own);
    if name {
        format!("{key}={value}")
    } else {
        format!("**{{{}: {value}}}", quoted(key))
    }
}

fn python(value: Raw<'_>) -> String {
    if value.is_object() {
        let member = |(key, value): (std::borrow::Cow<'_, str>, _)| {
            format!("{}: {}", quoted(&key), python(value))
        };
        return format!("{{{}}}", join(value.entries().map(member), ", "));
    }
    if value.is_array() {
        return format!("[{}]", join(value.items().map(python), ", "));
    }
    match value.text() {
        "null" => "None".to_owned(),
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        // What JSON escapes, Python escapes too.
        text => value.str().map_or_else(|| text.to_owned(), |s| quoted(&s)),
    }
}

/// A member of an object of Gemma.
fn member(key: &str, value: Raw<'_>, quote: &str) -> String {
    let own = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let bare = !key.is_empty() && key.len() <= 128 && key.chars().all(own);
    format!(
        "{}:{}",
        if bare {
            key.to_owned()
        } else {
            string(key, quote)
        },
        gemma(value, quote)
    )
}

fn gemma(value: Raw<'_>, quote: &str) -> String {
    if value.is_object() {
        return format!(
            "{{{}}}",
            join(
                value
                    .entries()
                    .map(|(key, value)| member(&key, value, quote)),
                ","
            )
        );
    }
    if value.is_array() {
        return format!(
            "[{}]",
            join(value.items().map(|item| gemma(item, quote)), ",")
        );
    }
    value
        .str()
        .map_or_else(|| value.text().to_owned(), |s| string(&s, quote))
}

fn string(text: &str, quote: &str) -> String {
    if text.contains(quote) {
        quoted(text).replace('<', "\\u003c")
    } else {
        format!("{quote}{text}{quote}")
    }
}
