//! Writes the parameters of a call as the models of a dialect do.

use super::head::element_name;
use crate::dialect::params::{ParamForm, Style, Typing};
use quick_xml::escape::escape;
use serde_json::{Map, Value};

impl ParamForm {
    /// Appends the parameters of one call.
    pub(crate) fn write(&self, arguments: &Map<String, Value>, out: &mut String) {
        for (name, value) in arguments {
            out.push_str(self.before);
            let close = self.open(name, value, out);
            out.push_str(self.round);
            match self.style {
                Style::Element { prefix } => self.elements(prefix, value, out),
                _ => self.text(value, out),
            }
            out.push_str(self.round);
            out.push_str(&close);
        }
    }

    /// Appends the text before a value, and returns the text after it.
    fn open(&self, name: &str, value: &Value, out: &mut String) -> String {
        match self.style {
            Style::Equals { open, end, close } => {
                out.extend([open, name, end]);
                close.to_owned()
            }
            Style::Attribute {
                open,
                end,
                close,
                name: attribute,
            } => {
                let first = |all: &'static [&'static str]| all.first().copied().unwrap_or_default();
                out.extend([first(open), " ", attribute, "=\"", &escape(name), "\""]);
                match self.typing {
                    Typing::Schema => {}
                    Typing::Flag(flag) => {
                        out.extend([
                            " ",
                            flag,
                            "=\"",
                            if value.is_string() { "true" } else { "false" },
                            "\"",
                        ]);
                    }
                    Typing::Named(attribute) => {
                        out.extend([" ", attribute, "=\"", kind(value), "\""])
                    }
                }
                out.push_str(end);
                first(close).to_owned()
            }
            Style::Pair {
                key,
                kind: typed,
                value: tags,
                gap,
            } => {
                out.extend([key.0, name, key.1, gap]);
                if let Some((open, close)) = typed {
                    out.extend([open, kind(value), close, gap]);
                }
                out.push_str(tags.0);
                tags.1.to_owned()
            }
            Style::Element { prefix } => {
                out.extend([prefix, "<", name, ">"]);
                format!("{prefix}</{name}>")
            }
        }
    }

    fn text(&self, value: &Value, out: &mut String) {
        match value {
            Value::String(text) if self.entities => out.push_str(&escape(text)),
            Value::String(text) => out.push_str(text),
            other => out.push_str(&other.to_string()),
        }
    }

    /// Appends objects and arrays as elements. An object with a key that cannot name an element is
    /// written as JSON.
    fn elements(&self, prefix: &str, value: &Value, out: &mut String) {
        let mut element = |name: &str, value: &Value| {
            out.extend([prefix, "<", name, ">"]);
            self.elements(prefix, value, out);
            out.extend([prefix, "</", name, ">"]);
        };
        match value {
            Value::Object(members)
                if members
                    .keys()
                    .all(|key| !key.is_empty() && element_name(key) == key) =>
            {
                members
                    .iter()
                    .for_each(|(name, value)| element(name, value));
            }
            Value::Array(items) => items.iter().for_each(|item| element("item", item)),
            _ => self.text(value, out),
        }
    }
}

/// The name of the JSON type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
